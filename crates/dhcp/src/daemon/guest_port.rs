//! A port of a bridge for a frame or a few.
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

use crate::machine::Millis;

/// The port, and the other end of its pair.
const PORT: &str = "podwire-dhcp0";
const OUTSIDE: &str = "podwire-dhcp1";
/// High addresses: a bridge without one of its own takes its ports' lowest.
const PORT_ADDRESS: MacAddress = MacAddress([0xfe, 0xff, 0xff, 0xff, 0xff, 0xf0]);
const OUTSIDE_ADDRESS: MacAddress = MacAddress([0xfe, 0xff, 0xff, 0xff, 0xff, 0xf1]);
/// How long the port may take to come up. It takes milliseconds.
const WAIT: Duration = Duration::from_millis(500);
/// How long it stays behind the last frame, in milliseconds: many containers
/// may go at once, and making and removing it takes longer than anything else
/// that the daemon does.
const LINGER: Millis = 100;

/// The port, while it's there.
#[derive(Debug, Default)]
pub(super) struct GuestPort {
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    bridge: u32,
    vlan: Option<u16>,
    socket: PacketSocket,
    until: Millis,
}

impl GuestPort {
    /// When it is to be removed.
    pub(super) fn due(&self) -> Option<Millis> {
        self.open.as_ref().map(|open| open.until)
    }

    /// Removes it if it isn't used any more.
    pub(super) fn wake(&mut self, routes: &mut RouteSocket, now: Millis) {
        if self.due().is_some_and(|due| due <= now) {
            self.close(routes);
        }
    }

    /// Removes it, also one that a killed daemon has left.
    pub(super) fn close(&mut self, routes: &mut RouteSocket) {
        self.open = None;
        match routes.link_by_name(PORT) {
            Ok(None) => {}
            Ok(Some(_)) | Err(_) => {
                if let Err(error) = routes.apply(&DeleteLink(Device::named(PORT)))
                    && !error.is_not_found()
                {
                    log::warn!("{error}");
                }
            }
        }
    }

    /// Sends a frame into a bridge as if from a port, in a VLAN where one is
    /// given.
    ///
    /// # Errors
    /// When the kernel makes no such port.
    pub(super) fn send(
        &mut self,
        routes: &mut RouteSocket,
        bridge: u32,
        vlan: Option<u16>,
        frame: &[u8],
        now: Millis,
    ) -> Result<(), String> {
        let open = match self.open.take() {
            Some(open) if (open.bridge, open.vlan) == (bridge, vlan) => open,
            _ => {
                self.close(routes);
                Open { bridge, vlan, socket: make(routes, bridge, vlan)?, until: 0 }
            }
        };
        let outcome = open.socket.send(frame).map_err(|error| error.to_string());
        self.open = Some(Open { until: now + LINGER, ..open });
        if outcome.is_err() {
            self.close(routes);
        }
        outcome
    }
}

/// Makes the port, which is there even if it fails.
fn make(routes: &mut RouteSocket, bridge: u32, vlan: Option<u16>) -> Result<PacketSocket, String> {
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
    PacketSocket::open_sender(outside.index).map_err(|error| error.to_string())
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
                let left = NewLink::veth(End::new(PORT), End::new(OUTSIDE));
                routes.create_link(&left).unwrap();
                let mut port = GuestPort::default();
                for now in [0, 1] {
                    port.send(&mut routes, bridge.index, None, &frame, now).unwrap();
                    let limit = rustix::event::Timespec { tv_sec: 5, tv_nsec: 0 };
                    let input = rustix::event::PollFlags::IN;
                    let mut sockets = [rustix::event::PollFd::new(&receiver, input)];
                    rustix::event::poll(&mut sockets, Some(&limit)).unwrap();
                    let mut buffer = [0; 100];
                    assert_eq!(receiver.receive(&mut buffer).unwrap(), Some(frame.as_slice()));
                }
                assert_eq!(port.due(), Some(1 + LINGER));
                port.wake(&mut routes, LINGER);
                assert!(routes.link_by_name(PORT).unwrap().is_some());
                port.wake(&mut routes, 1 + LINGER);
                assert!(routes.link_by_name(PORT).unwrap().is_none());
                assert_eq!(port.due(), None);
                assert!(port.send(&mut routes, 99, None, &frame, 2).is_err());
                assert!(routes.link_by_name(PORT).unwrap().is_none());
            })
            .unwrap();
    }
}
