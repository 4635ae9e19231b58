//! A port of a bridge for the length of one frame.
//!
//! A frame that is sent through a bridge's own device reaches its ports, but
//! neither a server on the bridge itself nor, where ports are told apart by
//! VLAN, those of another VLAN than the bridge's. So it comes in by a port, as the
//! container's frames did.

use std::time::Duration;

use podwire_netlink::Error;
use podwire_netlink::route::bridge::{ChangeVlans, VlanFlags};
use podwire_netlink::route::link_change::{ChangeLink, DeleteLink};
use podwire_netlink::route::link_new::{End, NewLink};
use podwire_netlink::route::{Device, MacAddress, RouteSocket};
use podwire_sys::packet::PacketSocket;

/// The port, and the other end of its pair.
const PORT: &str = "podwire-dhcp0";
const OUTSIDE: &str = "podwire-dhcp1";
/// High addresses: a bridge without one of its own takes its ports' lowest.
const PORT_ADDRESS: MacAddress = MacAddress([0xfe, 0xff, 0xff, 0xff, 0xff, 0xf0]);
const OUTSIDE_ADDRESS: MacAddress = MacAddress([0xfe, 0xff, 0xff, 0xff, 0xff, 0xf1]);
/// How long the port may take to come up. It takes milliseconds.
const WAIT: Duration = Duration::from_millis(500);

/// Sends a frame into a bridge as if from a port, in a VLAN where one is given.
///
/// # Errors
/// When the kernel makes no such port.
pub(super) fn send(
    routes: &mut RouteSocket,
    bridge: u32,
    vlan: Option<u16>,
    frame: &[u8],
) -> Result<(), String> {
    // One that a killed daemon has left.
    if routes.link_by_name(PORT).is_ok_and(|left| left.is_some()) {
        remove(routes);
    }
    let outcome = make_and_send(routes, bridge, vlan, frame);
    remove(routes);
    outcome
}

fn make_and_send(
    routes: &mut RouteSocket,
    bridge: u32,
    vlan: Option<u16>,
    frame: &[u8],
) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    let ends = (End::new(PORT).mac(PORT_ADDRESS), End::new(OUTSIDE).mac(OUTSIDE_ADDRESS));
    let pair = NewLink::veth(ends.0, ends.1).master(bridge).up();
    let port = routes.create_link(&pair).map_err(text)?;
    if let Some(vlan) = vlan {
        let flags = VlanFlags::PVID | VlanFlags::UNTAGGED;
        routes.apply(&ChangeVlans::add(port.device(), vlan, flags)).map_err(text)?;
    }
    let outside = routes.link_by_name(OUTSIDE).map_err(text)?.ok_or("the port vanished")?;
    routes.apply(&ChangeLink::new(outside.device()).up()).map_err(text)?;
    routes.wait_operational(port.device(), WAIT).map_err(text)?;
    PacketSocket::open_sender(outside.index)
        .and_then(|socket| socket.send(frame))
        .map_err(|error| error.to_string())
}

fn remove(routes: &mut RouteSocket) {
    if let Err(error) = routes.apply(&DeleteLink(Device::named(PORT)))
        && !error.is_not_found()
    {
        log::warn!("{error}");
    }
}

#[cfg(test)]
mod tests {
    use podwire_netlink::route::link_new::NewKind;
    use podwire_sys::netns::NetNs;

    use super::*;
    use crate::frame::{self, EVERYONE, End as Station};

    #[test]
    fn the_bridge_itself_hears_the_frame_and_nothing_stays() {
        let namespace = NetNs::anonymous().unwrap();
        namespace
            .run(|| {
                let mut routes = RouteSocket::open().unwrap();
                let kind = NewKind::Bridge { vlan_filtering: None, default_pvid: None };
                let bridge = NewLink::new(End::new("br0"), kind).up();
                let bridge = routes.create_link(&bridge).unwrap();
                let receiver = PacketSocket::open_udp(bridge.index, 67).unwrap();
                let client =
                    Station { hardware: [2, 0, 0, 0, 0, 9], address: [10, 0, 0, 9].into() };
                let server = Station { hardware: EVERYONE, address: [10, 0, 0, 1].into() };
                let frame = frame::to_server(client, server, None, b"release");
                for _ in 0..2 {
                    send(&mut routes, bridge.index, None, &frame).unwrap();
                    let limit = rustix::event::Timespec { tv_sec: 5, tv_nsec: 0 };
                    let input = rustix::event::PollFlags::IN;
                    let mut sockets = [rustix::event::PollFd::new(&receiver, input)];
                    rustix::event::poll(&mut sockets, Some(&limit)).unwrap();
                    let mut buffer = [0; 100];
                    assert_eq!(receiver.receive(&mut buffer).unwrap(), Some(frame.as_slice()));
                }
                assert!(routes.link_by_name(PORT).unwrap().is_none());
                let left = NewLink::veth(End::new(PORT), End::new(OUTSIDE));
                routes.create_link(&left).unwrap();
                send(&mut routes, bridge.index, None, &frame).unwrap();
                assert!(routes.link_by_name(PORT).unwrap().is_none());
                assert!(send(&mut routes, 99, None, &frame).is_err());
            })
            .unwrap();
    }
}
