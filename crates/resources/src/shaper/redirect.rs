//! The filter that sends what comes in by a host end to an ifb.

use podwire_netlink::route::tc::filter::{Match, Verdict};
use podwire_netlink::route::tc::{
    AddQdisc, AddRedirect, DeleteFilter, DeleteQdisc, Filter, Handle, QdiscKind,
};
use podwire_netlink::route::{Link, RouteSocket};
use podwire_plugin::OwnerMark;
use podwire_spec::error::Error;

use super::ifb;
use crate::kernel::{Kernel, refused};

/// The qdisc that holds it.
const INGRESS: Handle = Handle::new(0xffff, 0);
/// Its rank, as the Go plugin's.
const RANK: u16 = 1;

/// Sends everything that comes in by `host` to `ifb`.
pub(super) fn add(socket: &mut RouteSocket, host: &Link, ifb: &Link) -> Result<(), Error> {
    let ingress = AddQdisc::ingress(host.device());
    match socket.apply(&ingress) {
        // Somebody's filters are here already; ours stands beside them.
        Err(error) if error.is_exists() && has_ingress(socket, host)? => {
            remove_from(socket, host, &[], false)?;
        }
        outcome => outcome.map_err(refused)?,
    }
    let redirect = AddRedirect {
        device: host.device(),
        parent: INGRESS,
        priority: RANK,
        matching: Match::Everything,
        verdict: Verdict::RedirectTo(ifb.device()),
    };
    socket.apply(&redirect).map_err(refused)
}

fn has_ingress(socket: &mut RouteSocket, host: &Link) -> Result<bool, Error> {
    let all = socket.qdiscs_of(host.device()).map_err(refused)?;
    Ok(all.iter().any(|qdisc| qdisc.kind == QdiscKind::Ingress && qdisc.handle == INGRESS))
}

/// Indexes of the links that what comes in by `host` is sent to: all of it, or
/// a part of it.
pub(super) fn targets(socket: &mut RouteSocket, host: &Link) -> Result<Vec<(u32, bool)>, Error> {
    let filters = socket.filters_of(host.device(), INGRESS).map_err(refused)?;
    let target = |filter: &Filter| {
        // 0 when the link is gone.
        let index = filter.redirect.filter(|index| *index != 0)?;
        Some((index, filter.picks(Match::Everything)))
    };
    Ok(filters.iter().filter_map(target).collect())
}

/// Whether what comes in by `host` is sent to an ifb of this owner.
pub(super) fn leads_to_owned(
    kernel: &mut Kernel,
    host: &Link,
    owner: &OwnerMark,
) -> Result<bool, Error> {
    for (index, _) in targets(kernel.host()?, host)? {
        let ifb = kernel.host()?.link_by_index(index).map_err(refused)?;
        if ifb.is_some_and(|ifb| ifb::is_ours(&ifb, owner)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes the filters that lead to `ifbs` or, at our rank, to a link that is
/// gone; with the last filter the qdisc.
pub(super) fn remove(socket: &mut RouteSocket, host: &Link, ifbs: &[Link]) -> Result<(), Error> {
    remove_from(socket, host, ifbs, true)
}

fn remove_from(
    socket: &mut RouteSocket,
    host: &Link,
    ifbs: &[Link],
    with_qdisc: bool,
) -> Result<(), Error> {
    let filters = socket.filters_of(host.device(), INGRESS).map_err(refused)?;
    let is_to_go = |filter: &&Filter| match filter.redirect {
        Some(0) => filter.priority == RANK,
        Some(index) => ifbs.iter().any(|ifb| ifb.index == index),
        None => false,
    };
    let (to_go, others): (Vec<_>, Vec<_>) = filters.iter().partition(is_to_go);
    if to_go.is_empty() {
        return Ok(());
    }
    if others.is_empty() && with_qdisc {
        let delete = DeleteQdisc { device: host.device(), parent: Handle::INGRESS };
        return gone(socket.apply(&delete));
    }
    for filter in to_go {
        let (device, priority, protocol) = (host.device(), filter.priority, filter.protocol);
        let delete = DeleteFilter { device, parent: INGRESS, priority, protocol };
        gone(socket.apply(&delete))?;
    }
    Ok(())
}

fn gone(outcome: Result<(), podwire_netlink::Error>) -> Result<(), Error> {
    match outcome {
        Err(error) if !error.is_not_found() => Err(refused(error)),
        _ => Ok(()),
    }
}
