//! Limits on a part of the traffic: an htb that sorts by the other side's
//! address.
//!
//! Packets of the limited part wait in one class; the others pass without one.
//! The release of the Go plugin that had this (1.5) compared the destination in
//! both directions, which on the way to the container is the container itself,
//! and gave the limited class twice its rate.

use ipnet::IpNet;
use podwire_netlink::route::tc::filter::{Match, Verdict};
use podwire_netlink::route::tc::{
    AddClass, AddQdisc, AddRedirect, Class, Filter, Handle, QdiscKind, Tbf,
};
use podwire_netlink::route::{Change, Link, RouteSocket};
use podwire_plugin::Difference;
use podwire_spec::error::Error;

use super::shaping::{ROOT, Scope, Shaping, is_depth};
use crate::kernel::refused;

/// The class of what is limited, as the Go plugin numbered it.
const LIMITED: Handle = Handle::new(1, 0x30);
/// The queue in it.
const QUEUE: Handle = Handle::new(0x30, 0);
/// No class: past all limits.
const FREE: Handle = ROOT;
/// The Go plugin's class for what isn't limited, a very fast one.
const GO_FREE: Handle = Handle::new(1, 1);
/// Ranks of the filters of each IP version, as the Go plugin's.
const RANKS: (u16, u16) = (16, 15);

/// Minor number of the class for what no filter picks; 0 for none.
fn default_class(scope: &Scope) -> u32 {
    match scope {
        Scope::Only(_) => 0,
        Scope::All | Scope::Except(_) => LIMITED.0 & 0xffff,
    }
}

/// The root of the tree.
pub(super) fn root(scope: &Scope) -> QdiscKind {
    QdiscKind::Htb { default_class: default_class(scope) }
}

/// The subnets that filters pick, and where their packets go.
fn sorted(scope: &Scope) -> (&[IpNet], Handle) {
    match scope {
        Scope::All => (&[], LIMITED),
        Scope::Only(nets) => (nets, LIMITED),
        Scope::Except(nets) => (nets, FREE),
    }
}

/// Hangs class, queue and filters below the root, if there are any.
pub(super) fn fill(
    shaping: &Shaping,
    bucket: &Tbf,
    socket: &mut RouteSocket,
    link: &Link,
) -> Result<(), Error> {
    if shaping.scope == Scope::All {
        return Ok(());
    }
    let device = link.device();
    let burst = bucket.limit.saturating_sub(waiting(bucket));
    let class = AddClass {
        device,
        parent: ROOT,
        handle: LIMITED,
        rate: bucket.rate,
        ceiling: bucket.rate,
        burst,
        ceiling_burst: burst,
    };
    let bytes = QdiscKind::Bfifo { limit: bucket.limit };
    let queue = AddQdisc::below(device, LIMITED, QUEUE, bytes);
    let (nets, class_of_nets) = sorted(&shaping.scope);
    let filters: Vec<_> = nets
        .iter()
        .map(|net| AddRedirect {
            device,
            parent: ROOT,
            priority: if matches!(net, IpNet::V4(_)) { RANKS.0 } else { RANKS.1 },
            matching: shaping.direction.with(*net),
            verdict: Verdict::Class(class_of_nets),
        })
        .collect();
    let mut changes: Vec<&dyn Change> = vec![&class, &queue];
    changes.extend(filters.iter().map(|filter| filter as &dyn Change));
    socket.apply_all(&changes).map_err(refused)
}

/// The part of a bucket's limit that isn't its depth.
fn waiting(bucket: &Tbf) -> u32 {
    Tbf::new(bucket.rate, 0, super::shaping::LATENCY).limit
}

/// Compares the tree with what is there: ours, or one of the Go plugin 1.5,
/// which made one for every limit.
pub(super) fn check(
    shaping: &Shaping,
    default: u32,
    socket: &mut RouteSocket,
    link: &Link,
    found: &mut Vec<Difference>,
) -> Result<(), Error> {
    let name = |what: &str| format!("{what} on {}", link.name);
    let classes = socket.classes_of(link.device()).map_err(refused)?;
    let is_go = classes.iter().any(|class| class.handle == GO_FREE);
    if shaping.scope == Scope::All && !is_go {
        found.push(Difference::new(name("limit"), "qdisc tbf", "qdisc htb"));
        return Ok(());
    }
    let Some(class) = classes.iter().find(|class| class.handle == LIMITED) else {
        found.push(Difference::missing(name(&format!("class {LIMITED}"))));
        return Ok(());
    };
    let bucket = shaping.limit.bucket(link.mtu);
    if !is_kept_by(class, &bucket, is_go) {
        found.push(Difference::new(
            name("limit"),
            format!("{} bytes/s", bucket.rate),
            format!(
                "{} to {} bytes/s, bucket of {} ticks",
                class.rate, class.ceiling, class.buffer
            ),
        ));
    }
    let free = if is_go { GO_FREE } else { FREE };
    let wanted_default = match default_class(&shaping.scope) {
        0 => free.0 & 0xffff,
        class => class,
    };
    if default != wanted_default {
        found.push(Difference::new(
            name("class of other packets"),
            format!("1:{wanted_default:x}"),
            format!("1:{default:x}"),
        ));
    }
    let filters = socket.filters_of(link.device(), ROOT).map_err(refused)?;
    compare_filters(shaping, is_go, &filters, &name, found);
    Ok(())
}

fn is_kept_by(class: &Class, bucket: &Tbf, is_go: bool) -> bool {
    let own = || class.ceiling == bucket.rate && is_depth(class.buffer, bucket.buffer);
    class.rate == bucket.rate && (is_go || own())
}

fn compare_filters(
    shaping: &Shaping,
    is_go: bool,
    filters: &[Filter],
    name: &dyn Fn(&str) -> String,
    found: &mut Vec<Difference>,
) {
    let (nets, class) = sorted(&shaping.scope);
    let class = if is_go && class == FREE { GO_FREE } else { class };
    for net in nets {
        let own = shaping.direction.with(*net);
        let go = Match::Destination(*net);
        let is_there = filters.iter().any(|filter| {
            filter.class == Some(class) && (filter.picks(own) || is_go && filter.picks(go))
        });
        if !is_there {
            found.push(Difference::missing(name(&format!("filter for {net}"))));
        }
    }
    if filters.len() > nets.len() {
        found.push(Difference::new(
            name("filters"),
            nets.len().to_string(),
            filters.len().to_string(),
        ));
    }
}
