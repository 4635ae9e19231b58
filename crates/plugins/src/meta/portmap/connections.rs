//! Connections that the kernel tracks and that a change of mappings makes
//! wrong.
//!
//! A UDP sender that never pauses keeps its connection alive, and with it the
//! translation it began with: to a container that is gone, or to nobody while
//! there is a container now (B013). So both ADD and DEL have the kernel forget
//! those connections, and only those (B034): UDP, to the mapped port, and
//! first sent to the mapping's address, to an address of this host, or by
//! translation to the container.

use std::collections::BTreeMap;
use std::net::IpAddr;

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::conntrack::{Connection, ConntrackSocket};
use podwire_netlink::nft::conntrack_status::DESTINATION_NAT;
use podwire_netlink::route::{RouteSocket, routes::RouteKind};
use podwire_resources::Kernel;

use super::layout;
use super::mapping::{Mapping, Protocol};

/// Has the kernel forget connections of UDP mappings. Best effort: without it
/// senders are served as soon as they pause for half a minute.
pub(super) fn forget(kernel: &mut Kernel, address: IpAddr, mappings: &[Mapping]) {
    let udp: Vec<_> = mappings.iter().filter(|mapping| mapping.protocol == Protocol::Udp).collect();
    if udp.is_empty() {
        return;
    }
    let outcome = kernel
        .host()
        .map_err(|error| error.to_string())
        .and_then(|host| forget_each(host, address, &udp).map_err(|error| error.to_string()));
    match outcome {
        Ok(0) => {}
        Ok(count) => log::debug!("{count} tracked UDP connections forgotten"),
        Err(error) => log::warn!(
            "UDP senders may keep reaching what was behind their port before, since tracked \
             connections could not be forgotten: {error}"
        ),
    }
}

fn forget_each(
    host: &mut RouteSocket,
    address: IpAddr,
    udp: &[&Mapping],
) -> Result<usize, NetlinkError> {
    let mut socket = ConntrackSocket::open()?;
    let version = layout::version_of(address);
    let candidates = socket.matching(Some(version), |connection| {
        udp.iter().any(|mapping| is_for_port(connection, mapping))
    })?;
    let mut local = BTreeMap::new();
    let mut forgotten = 0;
    for connection in candidates {
        let mut concerned = false;
        for mapping in udp.iter().filter(|mapping| is_for_port(&connection, mapping)) {
            concerned |= is_translated_to(&connection, address, mapping);
            concerned |= match mapping.host_address() {
                Some(wanted) => connection.original.destination == wanted,
                None => is_local(host, &mut local, connection.original.destination)?,
            };
        }
        if !concerned {
            continue;
        }
        match socket.delete(&connection.original, connection.zone) {
            Ok(()) => forgotten += 1,
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(forgotten)
}

fn is_for_port(connection: &Connection, mapping: &Mapping) -> bool {
    connection.original.protocol == mapping.protocol.number()
        && connection.original.destination_port() == Some(mapping.host_port)
}

fn is_translated_to(connection: &Connection, address: IpAddr, mapping: &Mapping) -> bool {
    connection.status & DESTINATION_NAT != 0
        && connection.reply.source == address
        && connection.reply.source_port() == Some(mapping.container_port)
}

/// Whether an address is this host's, asked once for each.
fn is_local(
    host: &mut RouteSocket,
    known: &mut BTreeMap<IpAddr, bool>,
    address: IpAddr,
) -> Result<bool, NetlinkError> {
    if let Some(known) = known.get(&address) {
        return Ok(*known);
    }
    let route = host.route_to(address)?;
    let is_local = route.is_some_and(|route| route.kind == RouteKind::LOCAL);
    known.insert(address, is_local);
    Ok(is_local)
}
