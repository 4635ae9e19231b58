//! A lease with real sockets: a container on a bridge, and a server of a few
//! lines behind another port.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use podwire_netlink::route::link::LinkFlags;
use podwire_netlink::route::link_change::{ChangeLink, DeleteLink};
use podwire_netlink::route::link_new::{End, NewKind, NewLink};
use podwire_netlink::route::{Device as Name, MacAddress, RouteSocket};
use podwire_sys::netns::NetNs;
use podwire_sys::packet::PacketSocket;

use super::*;
use crate::daemon::exchange::Heard;
use crate::daemon::guest_port::GuestPort;
use crate::frame::{self, End as Station};
use crate::key::tests::key;
use crate::machine::{Identity, Timing};
use crate::message::Direction;
use crate::record::FORM;

const SERVER: Station =
    Station { hardware: [2, 0, 0, 0, 0, 2], address: Ipv4Addr::new(10, 0, 0, 1) };
const TIMING: Timing = Timing { answer: Duration::from_secs(1), pause: Duration::from_secs(1) };

struct Scene {
    tools: Tools,
    lease: Lease,
    server: PacketSocket,
    _container: NetNs,
    _folder: tempfile::TempDir,
}

/// The thread is in the host during the test.
fn scene(test: impl FnOnce(&mut Scene)) {
    let (host, container) = (NetNs::anonymous().unwrap(), NetNs::anonymous().unwrap());
    host.run(|| {
        let mut routes = RouteSocket::open().unwrap();
        let kind = NewKind::Bridge { vlan_filtering: None, default_pvid: None };
        let bridge = routes.create_link(&NewLink::new(End::new("br0"), kind).up()).unwrap();
        let mac = MacAddress(SERVER.hardware);
        let pair = NewLink::veth(End::new("srv0"), End::new("srv1").mac(mac));
        let port = routes.create_link(&pair.master(bridge.index).up()).unwrap();
        let server = routes.link_by_name("srv1").unwrap().unwrap();
        routes.apply(&ChangeLink::new(server.device()).up()).unwrap();
        let inside = End::new("eth0").namespace(container.as_fd());
        let pair = NewLink::veth(End::new("veth1"), inside).master(bridge.index).up();
        let end = routes.create_link(&pair).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        store.prepare().unwrap();
        let home = NetNs::current().unwrap();
        let (prefix, boot) = (String::new(), "this".to_owned());
        let mut host = Host { home, routes, prefix, boot, guest_port: GuestPort::default() };
        let path = format!("/proc/self/fd/{}", container.as_fd().as_raw_fd());
        let found = host.inspect(&path, "eth0").unwrap();
        for port in [&port, &end] {
            let link = host.routes.wait_operational(port.device(), Duration::from_secs(5));
            assert!(link.unwrap().unwrap().flags.contains(LinkFlags::LOWER_UP));
        }
        let identity = Identity {
            hardware: found.hardware,
            client: b"\0c1".to_vec(),
            requested: vec![1, 3],
            provided: Vec::new(),
            broadcast: true,
        };
        let record = Record {
            form: FORM,
            key: key("c1"),
            place: found.place,
            host: found.host,
            identity: identity.clone(),
            server_hardware: None,
            priority: None,
            phase: Phase::New,
        };
        let mark = record.key.mark().unwrap();
        let machine = Machine::acquire(identity, TIMING, 7, None, 0, Some(60_000));
        test(&mut Scene {
            tools: Tools { host, store, metrics: Metrics::default() },
            lease: Lease::new(mark, record, machine, false),
            server: PacketSocket::open_udp(server.index, 67).unwrap(),
            _container: container,
            _folder: folder,
        });
    })
    .unwrap();
}

/// Waits until a frame is there; a busy machine delivers late.
fn wait_for(socket: impl AsFd) {
    let limit = rustix::event::Timespec { tv_sec: 5, tv_nsec: 0 };
    let mut sockets = [rustix::event::PollFd::new(&socket, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut sockets, Some(&limit)).unwrap();
}

impl Scene {
    /// The next message that reaches the server.
    fn heard(&self) -> Option<Message> {
        wait_for(&self.server);
        let mut buffer = [0; 2048];
        let frame = self.server.receive(&mut buffer).unwrap()?;
        Some(Message::decode(&frame[42..]).unwrap())
    }

    /// Lets the server answer the last question, and the lease take it.
    fn answer(&mut self, question: &Message, kind: Kind, now: Millis) -> Outcome {
        let mut message = crate::terms::tests::reply(kind, [10, 0, 0, 9]);
        message.direction = Direction::Reply;
        message.transaction = question.transaction;
        message.hardware = question.hardware;
        let to = Station { hardware: frame::EVERYONE, address: Ipv4Addr::BROADCAST };
        let mut frame = frame::to_server(SERVER, to, None, &message.encode());
        frame[34..38].copy_from_slice(&[0, 67, 0, 68]);
        self.server.send(&frame).unwrap();
        let exchange = self.lease.exchange.as_ref().unwrap();
        wait_for(exchange);
        match exchange.hear() {
            Heard::Message(arrived) => {
                self.lease.receive(&mut self.tools, &arrived.message, arrived.hardware, now)
            }
            other => panic!("{other:?}"),
        }
    }

    fn kept(&self) -> Vec<Phase> {
        let found = self.tools.store.load().unwrap();
        found.good.into_iter().map(|(_, record)| record.phase).collect()
    }

    fn acquire(&mut self) {
        assert_eq!(self.lease.wake(&mut self.tools, 0), Outcome::Continues);
        let discover = self.heard().unwrap();
        assert!(self.kept().is_empty());
        assert_eq!(self.answer(&discover, Kind::Offer, 1), Outcome::Continues);
        let request = self.heard().unwrap();
        assert!(matches!(self.kept()[..], [Phase::Requested { .. }]));
        assert_eq!(self.answer(&request, Kind::Ack, 2), Outcome::Held);
        assert!(matches!(self.kept()[..], [Phase::Held { .. }]));
        assert!(self.lease.exchange.is_none(), "nothing is open at rest");
    }
}

#[test]
fn b085_a_lease_is_on_the_disk_before_anybody_is_told() {
    scene(|scene| {
        scene.acquire();
        assert_eq!(scene.lease.record.server_hardware, Some(SERVER.hardware));
        assert_eq!(scene.tools.metrics.acquired, 1);
    });
}

#[test]
fn b085_an_address_is_given_back_from_the_host_when_the_interface_has_gone() {
    scene(|scene| {
        scene.acquire();
        scene.tools.host.routes.apply(&DeleteLink(Name::named("veth1"))).unwrap();
        let due = scene.lease.due().unwrap();
        assert!(matches!(scene.lease.wake(&mut scene.tools, due), Outcome::Ended(_)));
        let release = scene.heard().unwrap();
        assert_eq!(release.kind, Kind::Release);
        assert_eq!(release.client, Ipv4Addr::new(10, 0, 0, 9));
        assert!(scene.kept().is_empty());
        assert_eq!(scene.tools.metrics.released_from_host, 1);
    });
}

#[test]
fn an_address_is_given_back_from_inside_while_the_interface_is_there() {
    scene(|scene| {
        scene.acquire();
        scene.lease.give_back(&mut scene.tools);
        assert_eq!(scene.heard().unwrap().kind, Kind::Release);
        assert_eq!(scene.tools.metrics.released_inside, 1);
        assert!(scene.kept().is_empty());
    });
}

#[test]
fn a_socket_without_an_answer_is_closed() {
    scene(|scene| {
        scene.acquire();
        // Rebinding is by the segment, whatever addresses the interface has.
        scene.lease.wake(&mut scene.tools, 90_000);
        assert!(scene.lease.exchange.is_some());
        scene.lease.close_at = Some(90_001);
        assert_eq!(scene.lease.due(), Some(90_001));
        scene.lease.wake(&mut scene.tools, 90_001);
        assert!(scene.lease.exchange.is_none());
        assert!(scene.lease.due().unwrap() > 90_001);
    });
}

#[test]
fn a_lease_that_ran_out_says_so_on_the_disk() {
    scene(|scene| {
        scene.acquire();
        assert_eq!(scene.lease.wake(&mut scene.tools, 200_000), Outcome::Continues);
        assert!(matches!(scene.kept()[..], [Phase::Lost { .. }]));
        let discover = scene.heard().unwrap();
        assert_eq!(discover.kind, Kind::Discover);
        assert_eq!(scene.answer(&discover, Kind::Offer, 200_001), Outcome::Continues);
        let request = scene.heard().unwrap();
        assert!(matches!(scene.kept()[..], [Phase::Lost { .. }]), "until there is another");
        assert_eq!(scene.answer(&request, Kind::Ack, 200_002), Outcome::Held);
        assert!(matches!(scene.kept()[..], [Phase::Held { .. }]));
        assert_eq!(scene.tools.metrics.expired, 1);
    });
}
