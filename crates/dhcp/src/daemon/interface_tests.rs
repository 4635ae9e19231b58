//! Interfaces of all kinds, looked at in namespaces of their own.

use std::os::fd::{AsFd, AsRawFd};

use podwire_netlink::route::link_change::DeleteLink;
use podwire_netlink::route::link_kind::MacvlanMode;
use podwire_netlink::route::link_new::{End, NewKind, NewLink};
use podwire_netlink::route::{Device as Name, MacAddress};

use super::*;
use crate::key::tests::key;
use crate::machine::Identity;
use crate::record::{FORM, Phase};

/// A host and a container; the test's thread is in the host.
fn in_host(test: impl FnOnce(&mut Host, NetNs)) {
    let (host, container) = (NetNs::anonymous().unwrap(), NetNs::anonymous().unwrap());
    host.run(|| {
        let mut host = Host {
            home: NetNs::current().unwrap(),
            routes: RouteSocket::open().unwrap(),
            prefix: String::new(),
            boot: "this".into(),
            guest_port: GuestPort::default(),
        };
        test(&mut host, container);
    })
    .unwrap();
}

fn path_of(netns: &NetNs) -> String {
    format!("/proc/self/fd/{}", netns.as_fd().as_raw_fd())
}

fn record(found: &Inspected) -> Record {
    Record {
        form: FORM,
        key: key("c1"),
        place: found.place.clone(),
        host: found.host.clone(),
        identity: Identity {
            hardware: found.hardware,
            client: vec![0, 1],
            requested: Vec::new(),
            provided: Vec::new(),
            broadcast: false,
        },
        server_hardware: None,
        priority: None,
        phase: Phase::New,
    }
}

fn bridge(host: &mut Host, vlan_filtering: Option<bool>) -> Link {
    let kind = NewKind::Bridge { vlan_filtering, default_pvid: None };
    host.routes.create_link(&NewLink::new(End::new("br0"), kind).up()).unwrap()
}

#[test]
fn a_pair_is_reached_from_its_bridge_and_proven_gone_by_its_host_end() {
    in_host(|host, container| {
        let bridge = bridge(host, None);
        let inside = End::new("eth0").mac(MacAddress([2; 6])).namespace(container.as_fd());
        let pair = NewLink::veth(End::new("veth1"), inside).master(bridge.index).up();
        let end = host.routes.create_link(&pair).unwrap();
        let found = host.inspect(&path_of(&container), "eth0").unwrap();
        assert_eq!((found.hardware, found.shares_hardware), ([2; 6], false));
        let side = found.host.clone().unwrap();
        assert_eq!((side.device.name.as_str(), side.port_vlan), ("br0", None));
        assert_eq!(side.other_end.as_ref().unwrap().index, end.index);
        let record = record(&found);
        assert!(matches!(host.find(&record), Whereabouts::There { name, .. } if name == "eth0"));
        assert_eq!(host.segment(&record).unwrap().1.index, bridge.index);

        // The path is another namespace, and the pair still there: no proof.
        let mut elsewhere = record.clone();
        elsewhere.place.netns = "/nonexistent".into();
        assert!(matches!(host.find(&elsewhere), Whereabouts::Unknown { .. }));
        elsewhere.place.netns = "/proc/self/ns/net".into();
        assert!(matches!(host.find(&elsewhere), Whereabouts::Unknown { .. }));
        host.routes.apply(&DeleteLink(Name::named("veth1"))).unwrap();
        for gone in [&record, &elsewhere] {
            assert!(matches!(host.find(gone), Whereabouts::Gone));
        }
        let mut earlier = record.clone();
        earlier.place.boot = "before".into();
        assert!(matches!(host.find(&earlier), Whereabouts::Gone));
        host.routes.apply(&DeleteLink(Name::named("br0"))).unwrap();
        assert!(host.segment(&record).is_none());
    });
}

#[test]
fn a_macvlan_is_reached_from_its_parent() {
    in_host(|host, container| {
        let parent = NewLink::veth(End::new("up0"), End::new("up1")).up();
        let parent = host.routes.create_link(&parent).unwrap();
        let kind = NewKind::Macvlan { mode: MacvlanMode::Bridge, broadcast_queue_length: None };
        let end = End::new("eth0").namespace(container.as_fd());
        host.routes.apply(&NewLink::new(end, kind).parent(parent.index)).unwrap();
        let found = host.inspect(&path_of(&container), "eth0").unwrap();
        let side = found.host.clone().unwrap();
        assert_eq!((side.device.name.as_str(), side.vlan, side.other_end), ("up0", None, None));
        let sibling = host.inside(&container, || RouteSocket::open()?.link_by_name("eth0"));
        assert!(sibling.unwrap().unwrap().unwrap().is_up(), "it was put up");
    });
}

#[test]
fn what_is_missing_is_named() {
    in_host(|host, container| {
        let text = |outcome: Result<Inspected, Error>| outcome.unwrap_err().to_string();
        assert!(text(host.inspect("/nonexistent", "eth0")).contains("/nonexistent"));
        let missing = text(host.inspect(&path_of(&container), "eth0"));
        assert!(missing.contains("eth0") && missing.contains("doesn't exist"), "{missing}");
        // A pair that lies in the container as a whole has no way from the host.
        let both = NewLink::veth(End::new("eth0"), End::new("eth1"));
        let made = host.inside(&container, || RouteSocket::open()?.apply(&both));
        made.unwrap().unwrap();
        assert!(host.inspect(&path_of(&container), "eth0").unwrap().host.is_none());
    });
}

#[test]
fn addresses_of_the_host_are_known() {
    in_host(|host, _| {
        assert!(!host.has_address(Ipv4Addr::new(10, 0, 0, 1)));
        bridge(host, None);
        let link = host.routes.link_by_name("br0").unwrap().unwrap();
        let address = podwire_netlink::route::address::AddAddress::new(
            link.device(),
            "10.0.0.1/24".parse().unwrap(),
        );
        host.routes.apply(&address).unwrap();
        assert!(host.has_address(Ipv4Addr::new(10, 0, 0, 1)));
        assert!(!host.has_address(Ipv4Addr::new(10, 0, 0, 2)));
    });
}
