//! The keys of `ipvlan`.

use podwire_netlink::route::link_kind::{IpvlanIsolation, IpvlanMode};
use podwire_plugin::{Addresses, Request};
use podwire_resources::child_link::{ChildKind, Parent, ParentName};
use podwire_spec::error::Error;
use podwire_spec::operation::Operation;
use podwire_spec::result::CniResult;

use super::child::{Config, parent};
use super::keys;

/// Reads them. `flag` is an addition to the reference: how the children of a
/// master reach each other.
///
/// # Errors
/// Code 6 for a value of the wrong type, code 7 for one that can't be served.
pub(super) fn read(
    request: &Request<'_>,
    operation: Operation,
    config: &mut Config,
) -> Result<(), Error> {
    let object = request.object();
    let mode = match object.text_of("mode")?.as_deref() {
        None | Some("l2") => IpvlanMode::L2,
        Some("l3") => IpvlanMode::L3,
        Some("l3s") => IpvlanMode::L3s,
        Some(other) => {
            return Err(Error::config(format!("unknown ipvlan mode: {other:?}"))
                .with_details("mode is one of l2, l3, l3s"));
        }
    };
    let isolation = match object.text_of("flag")?.as_deref() {
        None | Some("bridge") => IpvlanIsolation::Bridge,
        Some("private") => IpvlanIsolation::Private,
        Some("vepa") => IpvlanIsolation::Vepa,
        Some(other) => {
            return Err(Error::config(format!("unknown ipvlan flag: {other:?}"))
                .with_details("flag is one of bridge, private, vepa"));
        }
    };
    config.kind = ChildKind::Ipvlan { mode, isolation };
    config.mtu = keys::mtu(object)?;
    let configured = parent(object)?;
    if operation != Operation::Add {
        // The result of the plugins before this one is known to ADD only.
        config.parent = Some(configured).filter(|one| one.name != ParentName::DefaultRoute);
        return Ok(());
    }
    let previous = request.prev_result()?;
    config.parent = Some(match &previous {
        Some(previous) if configured.name == ParentName::DefaultRoute => {
            Parent { name: ParentName::Named(chained_master(previous)?), ..configured }
        }
        _ => configured,
    });
    if config.addresses == Addresses::None && previous.is_some_and(|one| !one.ips.is_empty()) {
        config.addresses = Addresses::PrevResult;
    }
    Ok(())
}

/// Behind other plugins, the one interface that they made is the master.
fn chained_master(previous: &CniResult) -> Result<String, Error> {
    let mut named = previous.interfaces.iter().filter(|interface| !interface.name.is_empty());
    match (named.next(), named.next()) {
        (Some(interface), None) => Ok(interface.name.clone()),
        _ => {
            Err(Error::config("chained master failure. PrevResult lacks a single named interface")
                .with_details("set master to the name of the device that ipvlan is to share"))
        }
    }
}
