//! The least that a process can do for the end state of a plugin's ADD or
//! DEL: a handful of netlink messages, nothing checked, nothing kept.
//!
//! `floor exit`, `floor attach NETNS BRIDGE HOST_END ADDRESS GATEWAY`,
//! `floor detach HOST_END`.

use std::error::Error;
use std::os::fd::AsFd;

use podwire_netlink::route::address::AddAddress;
use podwire_netlink::route::link_change::{ChangeLink, DeleteLink};
use podwire_netlink::route::link_new::{End, NewLink};
use podwire_netlink::route::routes::{AddRoute, Route, RouteMode};
use podwire_netlink::route::{Device, RouteSocket};
use podwire_sys::netns::NetNs;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["exit"] => Ok(()),
        ["attach", netns, bridge, host_end, address, gateway] => {
            attach(netns, bridge, host_end, address, gateway)
        }
        ["detach", host_end] => {
            Ok(RouteSocket::open()?.apply(&DeleteLink(Device::named(host_end)))?)
        }
        _ => {
            Err("floor exit | attach NETNS BRIDGE HOST_END ADDRESS GATEWAY | detach HOST_END"
                .into())
        }
    }
}

fn attach(
    netns: &str,
    bridge: &str,
    host_end: &str,
    address: &str,
    gateway: &str,
) -> Result<(), Box<dyn Error>> {
    let netns = NetNs::open(netns)?;
    let mut host = RouteSocket::open()?;
    let bridge = host.link_by_name(bridge)?.ok_or("the bridge is missing")?;
    let pair = NewLink::veth(End::new(host_end), End::new("eth0").namespace(netns.as_fd()));
    let end = host.create_link(&pair)?;
    let mut container = netns.run(RouteSocket::open)??;
    let inside = container.link_by_name("eth0")?.ok_or("eth0 is missing")?;
    let mut route = Route::new("0.0.0.0/0".parse()?);
    route.gateway = Some(gateway.parse()?);
    route.output = Some(inside.index);
    container.apply_all(&[
        &AddAddress::new(inside.device(), address.parse()?),
        &ChangeLink::new(inside.device()).up(),
        &AddRoute { route: &route, mode: RouteMode::Beside, output_name: "eth0" },
    ])?;
    host.apply_all(&[
        &ChangeLink::new(end.device()).up(),
        &ChangeLink::new(end.device()).master(bridge.index),
    ])?;
    Ok(())
}
