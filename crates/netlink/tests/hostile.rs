//! Whatever bytes come in, reading ends, in time and without a panic.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // Tests fail by panicking.

mod support;

use podwire_netlink::attribute::Attributes;
use podwire_netlink::message::Requests;
use podwire_netlink::reply::Replies;
use podwire_netlink::route::bridge::decode_vlans;
use podwire_netlink::route::link_new::{End, NewKind, NewLink};
use podwire_netlink::route::neighbour::Neighbour;
use podwire_netlink::route::tc::filter::{Match, Verdict};
use podwire_netlink::route::tc::{
    AddQdisc, AddRedirect, Class, Filter, Handle, Qdisc, QdiscKind, Tbf,
};
use podwire_netlink::route::{Address, Change, Device, Link, Route, Rule};
use proptest::prelude::*;

/// Reads the bytes as everything that the kernel could send.
fn read_all(bytes: &[u8]) {
    let _ = Link::decode(bytes);
    let _ = Address::decode(bytes);
    let _ = Route::decode(bytes);
    let _ = Rule::decode(bytes);
    let _ = Neighbour::decode(bytes);
    let _ = Qdisc::decode(bytes);
    let _ = Class::decode(bytes);
    let _ = Filter::decode(bytes);
    let _ = decode_vlans(bytes);
    assert!(Attributes::new(bytes).count() <= bytes.len() / 4 + 1);
    let replies = Replies::new(bytes);
    let mut count = 0;
    for reply in replies {
        count += 1;
        if let Ok(reply) = reply {
            let _ = reply.verdict();
        }
    }
    assert!(count <= bytes.len() / 16 + 1);
}

/// Messages of the kinds that are read, to be damaged.
fn good_messages() -> Vec<Vec<u8>> {
    let device = Device::new(7, "eth0");
    let root = Handle::new(1, 0);
    let mut route = Route::new("2001:db8::/32".parse().unwrap());
    route.gateway = Some("fe80::1".parse().unwrap());
    (route.mtu, route.output) = (Some(1400), Some(7));
    let changes: [&dyn Change; 8] = [
        &NewLink::veth(End::new("a"), End::new("b")),
        &NewLink::new(End::new("v"), NewKind::Vrf { table: 7 }),
        &NewLink::new(
            End::new("br0"),
            NewKind::Bridge { vlan_filtering: Some(true), default_pvid: Some(1) },
        ),
        &podwire_netlink::route::address::AddAddress::new(device, "10.0.0.1/8".parse().unwrap()),
        &podwire_netlink::route::routes::AddRoute {
            route: &route,
            mode: podwire_netlink::route::routes::RouteMode::Exclusive,
            output_name: "",
        },
        &podwire_netlink::route::rule::AddRule(&Rule::from_source(
            "10.0.0.0/8".parse().unwrap(),
            5,
        )),
        &AddQdisc::root(device, root, QdiscKind::Tbf(Tbf::new(1 << 33, 5000, 25_000))),
        &AddRedirect {
            device,
            parent: root,
            priority: 1,
            matching: Match::Everything,
            verdict: Verdict::RedirectTo(device),
        },
    ];
    let encode = |change: &&dyn Change| {
        let mut requests = Requests::new();
        change.encode(&mut requests);
        requests.bytes()[16..].to_vec()
    };
    changes.iter().map(encode).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        read_all(&bytes);
    }

    #[test]
    fn damaged_messages_are_read_without_a_panic(
        which in 0_usize..8,
        cut in 0_usize..300,
        damage in proptest::collection::vec((0_usize..300, any::<u8>()), 0..6),
    ) {
        let mut bytes = good_messages()[which].clone();
        for (at, value) in damage {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        read_all(&bytes);
        bytes.truncate(cut);
        read_all(&bytes);
    }
}

#[test]
fn what_was_written_is_read_back() {
    let messages = good_messages();
    // A request has no index yet, which only an answer must have.
    assert!(Link::decode(&messages[0]).is_err());
    assert_eq!(Route::decode(&messages[4]).unwrap().unwrap().mtu, Some(1400));
    assert_eq!(Rule::decode(&messages[5]).unwrap().unwrap().table, 5);
    let Qdisc { kind: QdiscKind::Tbf(tbf), .. } = Qdisc::decode(&messages[6]).unwrap() else {
        panic!("not a tbf");
    };
    assert_eq!(tbf, Tbf::new(1 << 33, 5000, 25_000));
    assert_eq!(Filter::decode(&messages[7]).unwrap().redirect, Some(7));
}

#[test]
fn a_message_that_ends_anywhere_is_refused_or_read() {
    for message in good_messages() {
        for end in 0..message.len() {
            read_all(&message[..end]);
        }
    }
    // Every header has bytes that can't be missing.
    for length in 0..8 {
        let bytes = vec![0; length];
        assert!(Link::decode(&bytes).is_err());
        assert!(Address::decode(&bytes).is_err());
        assert!(Route::decode(&bytes).is_err());
        assert!(Rule::decode(&bytes).is_err());
        assert!(Neighbour::decode(&bytes).is_err());
        assert!(Qdisc::decode(&bytes).is_err());
        assert!(decode_vlans(&bytes).is_err());
    }
}

#[test]
fn listings_stay_whole_while_links_come_and_go() {
    let mut socket = support::private_namespace();
    for number in 0..100 {
        let name = format!("shape{number}");
        socket.apply(&NewLink::new(End::new(&name), NewKind::Ifb)).unwrap();
    }
    // Another thread of this namespace disturbs the listing until told to stop.
    let mut other = podwire_netlink::route::RouteSocket::open().unwrap();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let new = NewLink::new(End::new("restless"), NewKind::Ifb);
        let mut rounds = 0;
        while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            other.apply(&new).unwrap();
            let delete = podwire_netlink::route::link_change::DeleteLink(Device::named("restless"));
            other.apply(&delete).unwrap();
            rounds += 1;
        }
        rounds
    });
    for _ in 0..50 {
        let links = socket.links().unwrap();
        let shapes = links.iter().filter(|link| link.name.starts_with("shape")).count();
        assert_eq!(shapes, 100);
    }
    drop(stop);
    assert!(thread.join().unwrap() > 0);
}
