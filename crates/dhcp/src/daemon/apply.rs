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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use podwire_netlink::route::link_change::ChangeLink;
    use podwire_netlink::route::link_new::{End, NewLink};
    use podwire_sys::netns::NetNs;

    use super::*;
    use crate::message::Kind;
    use crate::terms::tests::reply;

    fn terms(address: [u8; 4], router: [u8; 4]) -> Terms {
        let mut message = reply(Kind::Ack, address);
        message.options.set(crate::message::code::ROUTERS, router.to_vec());
        Terms::read(&message, None).unwrap()
    }

    /// Runs a test with an interface that has what a lease gave, and one route
    /// that somebody else made.
    fn with_lease(old: &Terms, test: impl FnOnce(&mut RouteSocket, Device<'_>)) {
        let namespace = NetNs::anonymous().unwrap();
        namespace
            .run(|| {
                let mut socket = RouteSocket::open().unwrap();
                let pair = NewLink::veth(End::new("eth0"), End::new("peer")).up();
                let link = socket.create_link(&pair).unwrap();
                let peer = socket.link_by_name("peer").unwrap().unwrap();
                socket.apply(&ChangeLink::new(peer.device()).up()).unwrap();
                replace(link.device(), None, old, &[], None).unwrap();
                let mut other = Route::new("192.0.2.0/24".parse().unwrap());
                other.gateway = Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3)));
                other.output = Some(link.index);
                let add = AddRoute { route: &other, mode: RouteMode::Replace, output_name: "eth0" };
                socket.apply(&add).unwrap();
                test(&mut socket, link.device());
            })
            .unwrap();
    }

    fn state(socket: &mut RouteSocket, device: Device<'_>) -> Vec<String> {
        let mut state: Vec<_> = socket
            .addresses_of(device)
            .unwrap()
            .iter()
            .filter(|found| found.address.addr().is_ipv4())
            .map(|found| found.address.to_string())
            .collect();
        for route in routes_of(socket, device).unwrap() {
            let gateway = route.gateway.map(|at| at.to_string()).unwrap_or_default();
            state.push(format!("{} {gateway}", route.destination));
        }
        state.sort();
        state
    }

    #[test]
    fn a_new_address_takes_the_place_of_the_old_with_its_routes() {
        let old = terms([10, 0, 0, 9], [10, 0, 0, 1]);
        with_lease(&old, |socket, device| {
            assert_eq!(
                state(socket, device),
                ["0.0.0.0/0 10.0.0.1", "10.0.0.9/24", "192.0.2.0/24 10.0.0.3"]
            );
            let new = terms([10, 0, 0, 77], [10, 0, 0, 2]);
            assert_eq!(replace(device, Some(&old), &new, &[], Some(50)).unwrap(), Applied::Yes);
            assert_eq!(
                state(socket, device),
                ["0.0.0.0/0 10.0.0.2", "10.0.0.77/24", "192.0.2.0/24 10.0.0.3"]
            );
            let default = routes_of(socket, device).unwrap();
            assert!(default.iter().any(|it| it.is_default() && it.priority == Some(50)));
        });
    }

    #[test]
    fn another_router_takes_the_place_of_the_old() {
        let old = terms([10, 0, 0, 9], [10, 0, 0, 1]);
        with_lease(&old, |socket, device| {
            let new = terms([10, 0, 0, 9], [10, 0, 0, 2]);
            assert_eq!(replace(device, Some(&old), &new, &[], None).unwrap(), Applied::Yes);
            assert_eq!(
                state(socket, device),
                ["0.0.0.0/0 10.0.0.2", "10.0.0.9/24", "192.0.2.0/24 10.0.0.3"]
            );
        });
    }

    #[test]
    fn what_was_lost_comes_back_with_the_next_lease() {
        let old = terms([10, 0, 0, 9], [10, 0, 0, 1]);
        with_lease(&old, |socket, device| {
            let routes = take_away(device, &old).unwrap();
            assert!(state(socket, device).is_empty());
            assert!(take_away(device, &old).unwrap().is_empty());
            replace(device, None, &old, &routes, None).unwrap();
            assert_eq!(
                state(socket, device),
                ["0.0.0.0/0 10.0.0.1", "10.0.0.9/24", "192.0.2.0/24 10.0.0.3"]
            );
        });
    }

    #[test]
    fn an_interface_that_others_configure_is_left_alone() {
        let old = terms([10, 0, 0, 9], [10, 0, 0, 1]);
        with_lease(&old, |socket, device| {
            let before = state(socket, device);
            let (stranger, new) =
                (terms([10, 0, 0, 8], [10, 0, 0, 1]), terms([10, 0, 0, 7], [10, 0, 0, 1]));
            let outcome = replace(device, Some(&stranger), &new, &[], None).unwrap();
            assert_eq!((outcome, state(socket, device)), (Applied::NotOurs, before));
        });
    }
}
