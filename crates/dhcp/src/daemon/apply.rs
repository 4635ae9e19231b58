//! What a server changes while the container runs: its address and routes.
//!
//! Only what the lease before has put on the interface is touched. Where the old
//! address isn't there, somebody else configures the interface, and the change
//! is only told.

use std::net::IpAddr;

use ipnet::IpNet;
use podwire_netlink::Error;
use podwire_netlink::route::address::{AddAddress, DeleteAddress};
use podwire_netlink::route::family::{Family, Scope, TABLE_MAIN};
use podwire_netlink::route::routes::{
    AddRoute, DeleteRoute, Route, RouteFilter, RouteMode, RouteProtocol,
};
use podwire_netlink::route::{Device, RouteSocket};

use crate::message;
use crate::terms::Terms;

/// Whether something was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Applied {
    /// The interface has the new address.
    Yes,
    /// The old address wasn't there, so nothing was touched.
    NotOurs,
}

/// Puts new terms in the place of old ones, in the calling thread's namespace.
pub(super) fn replace(
    device: Device<'_>,
    old: Option<&Terms>,
    new: &Terms,
    remembered: &[Route],
    priority: Option<u32>,
) -> Result<Applied, Error> {
    let mut socket = RouteSocket::open()?;
    let mut kept = remembered.to_vec();
    if let Some(old) = old {
        let Some(address) = address_of(&mut socket, device, old)? else {
            return Ok(Applied::NotOurs);
        };
        if old.network() == new.network() {
            remove_stale_routes(&mut socket, device, old, new);
        } else {
            kept = routes_of(&mut socket, device)?;
            // First, or the new one would be its secondary and go with it.
            socket.apply(&DeleteAddress { device, address })?;
        }
    }
    if old.is_none_or(|old| old.network() != new.network())
        && let Some(network) = new.network()
    {
        match socket.apply(&AddAddress::new(device, network.into())) {
            Err(error) if error.is_exists() => {}
            other => other?,
        }
    }
    let of_old = |route: &Route| {
        let before = old.map_or(&[][..], |old| old.routes.as_slice());
        before
            .iter()
            .filter_map(|route| kernel_route(route, device, None))
            .any(|known| known.destination == route.destination && known.gateway == route.gateway)
    };
    let wanted: Vec<_> =
        new.routes.iter().filter_map(|route| kernel_route(route, device, priority)).collect();
    kept.retain(|route| {
        !of_old(route) && !wanted.iter().any(|one| one.destination == route.destination)
    });
    // Routes on the link first: others go through gateways on them.
    let (near, far): (Vec<_>, Vec<_>) =
        wanted.iter().chain(&kept).partition(|route| route.gateway.is_none());
    for route in near.into_iter().chain(far) {
        let change = AddRoute { route, mode: RouteMode::Replace, output_name: device.name() };
        if let Err(error) = socket.apply(&change) {
            log::warn!("{error}");
        }
    }
    Ok(Applied::Yes)
}

/// Removes routes that the old terms had and the new ones haven't.
fn remove_stale_routes(socket: &mut RouteSocket, device: Device<'_>, old: &Terms, new: &Terms) {
    for route in old.routes.iter().filter(|route| !new.routes.contains(route)) {
        let Some(route) = kernel_route(route, device, None) else { continue };
        let any_like_it =
            Route { scope: Scope::NOWHERE, protocol: RouteProtocol::UNSPECIFIED, ..route };
        let change = DeleteRoute { route: &any_like_it, output_name: device.name() };
        if let Err(error) = socket.apply(&change) {
            log::info!("{error}");
        }
    }
}

/// Takes an address off the interface that may not be used any more, and
/// returns the routes that go with it.
pub(super) fn take_away(device: Device<'_>, terms: &Terms) -> Result<Vec<Route>, Error> {
    let mut socket = RouteSocket::open()?;
    let Some(address) = address_of(&mut socket, device, terms)? else { return Ok(Vec::new()) };
    let routes = routes_of(&mut socket, device)?;
    socket.apply(&DeleteAddress { device, address })?;
    Ok(routes)
}

/// The leased address, with the prefix it was put on with.
fn address_of(
    socket: &mut RouteSocket,
    device: Device<'_>,
    terms: &Terms,
) -> Result<Option<IpNet>, Error> {
    let addresses = socket.addresses_of(device)?;
    let leased = IpAddr::V4(terms.address);
    Ok(addresses.into_iter().map(|found| found.address).find(|found| found.addr() == leased))
}

/// The routes through the interface that somebody made.
fn routes_of(socket: &mut RouteSocket, device: Device<'_>) -> Result<Vec<Route>, Error> {
    let filter =
        RouteFilter { family: Some(Family::V4), table: Some(TABLE_MAIN), output: device.index() };
    let mut routes = socket.routes(filter)?;
    routes.retain(|route| route.protocol != RouteProtocol::KERNEL && route.next_hops.is_empty());
    for route in &mut routes {
        route.preferred_source = None;
    }
    Ok(routes)
}

fn kernel_route(
    route: &message::Route,
    device: Device<'_>,
    priority: Option<u32>,
) -> Option<Route> {
    let mut made = Route::new(IpNet::V4(route.network()?));
    made.gateway = route.gateway.map(IpAddr::V4);
    made.output = device.index();
    made.priority = priority;
    if made.gateway.is_none() {
        made.scope = Scope::LINK;
    }
    Some(made)
}
