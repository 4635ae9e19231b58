//! Interfaces.

use std::os::fd::AsFd;

use podwire_netlink::route::address::AddAddress;
use podwire_netlink::route::link_change::{ChangeLink, DeleteLink};
use podwire_netlink::route::link_kind::MacvlanMode;
use podwire_netlink::route::link_new::{End, NewKind, NewLink};
use podwire_netlink::route::routes::{AddRoute, Route, RouteMode};
use podwire_netlink::route::{Device, Link, RouteSocket};
use podwire_sys::netns::NetNs;
use podwire_sys::tun::{Tap, create};

use crate::Outcome;

/// What the interface is called in the container.
const INSIDE: &str = "eth0";

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A pair into a bridge; an address and a default route in the container.
pub(crate) fn bridge(
    netns: &str,
    bridge: &str,
    host_end: &str,
    address: &str,
    gateway: &str,
) -> Result<NetNs> {
    let netns = NetNs::open(netns)?;
    let mut host = RouteSocket::open()?;
    let bridge = link(&mut host, bridge)?;
    let pair = NewLink::veth(End::new(host_end), End::new(INSIDE).namespace(netns.as_fd()));
    // Both could be part of the pair's birth, one message fewer; but then the
    // kernel waits some milliseconds for a grace period.
    host.apply(&pair)?;
    let end = Device::named(host_end);
    host.apply_all(&[&ChangeLink::new(end).up(), &ChangeLink::new(end).master(bridge.index)])?;
    address_inside(&netns, address, Some(gateway))?;
    Ok(netns)
}

/// A pair with the gateway's address on the host, and a host route.
pub(crate) fn ptp(netns: &str, host_end: &str, address: &str, gateway: &str) -> Outcome {
    let netns = NetNs::open(netns)?;
    let mut host = RouteSocket::open()?;
    let pair = NewLink::veth(End::new(host_end), End::new(INSIDE).namespace(netns.as_fd())).up();
    let end = host.create_link(&pair)?;
    address_inside(&netns, address, Some(gateway))?;
    let container = format!("{}/32", address.split('/').next().unwrap_or_default());
    let mut route = Route::new(container.parse()?);
    route.output = Some(end.index);
    host.apply_all(&[
        &AddAddress::new(end.device(), format!("{gateway}/32").parse()?),
        &AddRoute { route: &route, mode: RouteMode::Beside, output_name: host_end },
    ])?;
    Ok(())
}

/// A macvlan, born in the container.
pub(crate) fn macvlan(netns: &str, parent: &str, address: &str) -> Outcome {
    let netns = NetNs::open(netns)?;
    let mut host = RouteSocket::open()?;
    let parent = link(&mut host, parent)?;
    let kind = NewKind::Macvlan { mode: MacvlanMode::Bridge, broadcast_queue_length: None };
    let new = NewLink::new(End::new(INSIDE).namespace(netns.as_fd()), kind);
    host.apply(&new.parent(parent.index))?;
    address_inside(&netns, address, None)
}

/// A TAP device, made in the container.
pub(crate) fn tap(netns: &str, address: &str) -> Outcome {
    let netns = NetNs::open(netns)?;
    netns.run(|| create(&Tap { name: INSIDE, owner: None, group: None, multi_queue: false }))??;
    address_inside(&netns, address, None)
}

/// A device of the host, moved into the container under its name there.
pub(crate) fn move_in(netns: &str, device: &str, address: &str) -> Outcome {
    let netns = NetNs::open(netns)?;
    let mut host = RouteSocket::open()?;
    let found = link(&mut host, device)?;
    host.apply(&ChangeLink::new(found.device()).namespace(netns.as_fd()).name(INSIDE))?;
    address_inside(&netns, address, None)
}

/// The device back on the host.
pub(crate) fn move_out(netns: &str, device: &str) -> Outcome {
    let (netns, host) = (NetNs::open(netns)?, NetNs::current()?);
    let mut container = netns.run(RouteSocket::open)??;
    let found = link(&mut container, INSIDE)?;
    Ok(container.apply(&ChangeLink::new(found.device()).namespace(host.as_fd()).name(device))?)
}

/// `lo`, up.
pub(crate) fn loopback(netns: &str) -> Outcome {
    let netns = NetNs::open(netns)?;
    Ok(netns.run(RouteSocket::open)??.apply(&ChangeLink::new(Device::named("lo")).up())?)
}

pub(crate) fn unlink(name: &str) -> Outcome {
    Ok(RouteSocket::open()?.apply(&DeleteLink(Device::named(name)))?)
}

pub(crate) fn inside_unlink(netns: &str) -> Outcome {
    let netns = NetNs::open(netns)?;
    Ok(netns.run(RouteSocket::open)??.apply(&DeleteLink(Device::named(INSIDE)))?)
}

pub(crate) fn link(socket: &mut RouteSocket, name: &str) -> Result<Link> {
    Ok(socket.link_by_name(name)?.ok_or_else(|| format!("{name} is missing"))?)
}

fn address_inside(netns: &NetNs, address: &str, gateway: Option<&str>) -> Outcome {
    let mut container = netns.run(RouteSocket::open)??;
    let inside = link(&mut container, INSIDE)?;
    let address = AddAddress::new(inside.device(), address.parse()?);
    let up = ChangeLink::new(inside.device()).up();
    let Some(gateway) = gateway else {
        return Ok(container.apply_all(&[&address, &up])?);
    };
    let mut route = Route::new("0.0.0.0/0".parse()?);
    route.gateway = Some(gateway.parse()?);
    route.output = Some(inside.index);
    let route = AddRoute { route: &route, mode: RouteMode::Beside, output_name: INSIDE };
    Ok(container.apply_all(&[&address, &up, &route])?)
}
