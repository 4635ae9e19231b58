//! Links against the kernel, with `ip` as the witness.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Tests fail by panicking.

mod support;

use std::fs::File;
use std::os::fd::AsFd;

use podwire_netlink::route::bridge::{ChangePort, ChangeVlans, PortSettings, VlanFlags};
use podwire_netlink::route::link_change::{ChangeLink, DeleteLink};
use podwire_netlink::route::link_kind::{
    IpvlanIsolation, IpvlanMode, LinkKind, MacvlanMode, VlanProtocol,
};
use podwire_netlink::route::link_new::{End, NewKind, NewLink};
use podwire_netlink::route::{Device, RouteSocket};
use support::{json, link, mac, private_namespace};

const BRIDGE: NewKind<'static> = NewKind::Bridge { vlan_filtering: None, default_pvid: None };

#[test]
fn a_veth_is_born_in_a_bridge_and_in_another_namespace() {
    let mut socket = private_namespace();
    let bridge = socket.create_link(&NewLink::new(End::new("br0").mac(mac(1)), BRIDGE).up());
    let bridge = bridge.unwrap();
    assert!(bridge.is_bridge() && bridge.is_up() && bridge.mac == Some(mac(1)));

    // The other namespace belongs to a thread that waits.
    let (there, opened) = std::sync::mpsc::channel();
    let (done, finish) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let mut socket = private_namespace();
        there.send(File::open("/proc/thread-self/ns/net").unwrap()).unwrap();
        finish.recv().unwrap();
        let inner = link(&mut socket, "eth0");
        (inner, json("ip -j -d link show eth0"))
    });
    let namespace = opened.recv().unwrap();
    let peer = End::new("eth0").mac(mac(2)).mtu(1400).namespace(namespace.as_fd());
    let new = NewLink::veth(End::new("veth0").mac(mac(3)).mtu(1400), peer);
    let veth = socket.create_link(&new.master(bridge.index).up()).unwrap();
    done.send(()).unwrap();
    let (inner, shown) = thread.join().unwrap();

    assert!(veth.is_veth() && veth.is_up());
    assert_eq!((veth.master, veth.mtu, veth.mac), (Some(bridge.index), 1400, Some(mac(3))));
    assert_eq!(veth.parent, Some(inner.index));
    assert_eq!(inner.parent, Some(veth.index));
    assert!(veth.parent_namespace.is_some() && inner.parent_namespace.is_some());
    assert_eq!((inner.mtu, inner.mac, inner.is_up()), (1400, Some(mac(2)), false));
    assert_eq!(shown[0]["linkinfo"]["info_kind"], "veth");
    assert_eq!(shown[0]["address"], mac(2).to_string());

    let shown = json("ip -j -d link show veth0");
    assert_eq!(shown[0]["master"], "br0");
    assert_eq!(shown[0]["mtu"], 1400);
}

#[test]
fn a_port_becomes_a_hairpin_and_isolated() {
    let mut socket = private_namespace();
    let bridge = socket.create_link(&NewLink::new(End::new("br0"), BRIDGE)).unwrap();
    let new = NewLink::veth(End::new("a"), End::new("b")).master(bridge.index);
    let port = socket.create_link(&new).unwrap();
    let settings = PortSettings { hairpin: Some(true), isolated: Some(true), ..Default::default() };
    socket.apply(&ChangePort { port: port.device(), settings }).unwrap();
    let read = link(&mut socket, "a").bridge_port.unwrap();
    assert_eq!((read.hairpin, read.isolated, read.learning), (Some(true), Some(true), Some(true)));
    let shown = json("bridge -j -d link show dev a");
    assert_eq!((&shown[0]["hairpin"], &shown[0]["isolated"]), (&true.into(), &true.into()));
    let settings = PortSettings { hairpin: Some(false), ..Default::default() };
    socket.apply(&ChangePort { port: port.device(), settings }).unwrap();
    let read = link(&mut socket, "a").bridge_port.unwrap();
    assert_eq!((read.hairpin, read.isolated), (Some(false), Some(true)));
    // A port flag of what is no port is refused, with the kernel's reason.
    let error = socket.apply(&ChangePort { port: bridge.device(), settings }).unwrap_err();
    assert!(error.to_string().starts_with("changing bridge port br0, hairpin off: "), "{error}");
}

#[test]
fn every_change_of_a_link_is_seen_by_ip() {
    let mut socket = private_namespace();
    let made = socket.create_link(&NewLink::veth(End::new("a"), End::new("b"))).unwrap();
    let change = ChangeLink::new(made.device())
        .name("c")
        .alias("note of \"mine\"")
        .mac(mac(9))
        .mtu(1300)
        .transmit_queue_length(77)
        .promiscuous(true)
        .all_multicast(true)
        .up();
    socket.apply(&change).unwrap();
    let read = link(&mut socket, "c");
    assert_eq!(read.index, made.index);
    assert_eq!(read.alias.as_deref(), Some("note of \"mine\""));
    assert_eq!((read.mac, read.mtu, read.transmit_queue_length), (Some(mac(9)), 1300, 77));
    assert!(read.is_up() && read.promiscuity > 0 && read.is_all_multicast());
    let shown = json("ip -j -d link show c");
    assert_eq!(shown[0]["ifalias"], "note of \"mine\"");
    assert_eq!(shown[0]["txqlen"], 77);
    assert_eq!(shown[0]["promiscuity"], 1);

    let back = ChangeLink::new(read.device()).promiscuous(false).all_multicast(false);
    socket.apply_all(&[&back.down(), &ChangeLink::new(read.device()).alias("")]).unwrap();
    let read = link(&mut socket, "c");
    assert!(!read.is_up() && read.promiscuity == 0 && !read.is_all_multicast());
    assert_eq!(read.alias, None);
}

#[test]
fn links_are_listed_by_kind_and_deleted_by_name() {
    let mut socket = private_namespace();
    socket.apply(&NewLink::new(End::new("br0"), BRIDGE)).unwrap();
    socket.apply(&NewLink::new(End::new("shape"), NewKind::Ifb)).unwrap();
    socket.apply(&NewLink::veth(End::new("a"), End::new("b"))).unwrap();
    let names = |links: Vec<podwire_netlink::route::Link>| {
        let mut names: Vec<_> = links.into_iter().map(|link| link.name).collect();
        names.sort();
        names
    };
    assert_eq!(names(socket.links_of_kind("veth").unwrap()), ["a", "b"]);
    assert_eq!(names(socket.links_of_kind("nonsense").unwrap()), [""; 0]);
    let shown = json("ip -j link");
    assert_eq!(socket.links().unwrap().len(), shown.as_array().unwrap().len());
    let ifb = link(&mut socket, "shape");
    assert_eq!(ifb.kind, Some(LinkKind::Ifb));
    assert_eq!(socket.link_by_index(ifb.index).unwrap(), Some(ifb));

    socket.apply(&DeleteLink(Device::named("a"))).unwrap();
    assert_eq!(socket.link_by_name("b").unwrap(), None);
    let error = socket.apply(&DeleteLink(Device::named("a"))).unwrap_err();
    assert!(error.is_not_found());
    assert!(error.to_string().starts_with("deleting link a: No such device"), "{error}");
}

#[test]
fn a_taken_name_and_an_impossible_name_are_told_apart() {
    let mut socket = private_namespace();
    socket.apply(&NewLink::new(End::new("br0"), BRIDGE)).unwrap();
    let error = socket.create_link(&NewLink::new(End::new("br0"), BRIDGE)).unwrap_err();
    assert!(error.is_exists(), "{error}");
    assert_eq!(error.to_string(), "creating bridge br0: File exists");
    for name in ["", "sixteen-letters-", "a\0b"] {
        let error = socket.apply(&NewLink::new(End::new(name), BRIDGE)).unwrap_err();
        assert_eq!(error.errno(), None, "{error}");
    }
    // The socket goes on after refusals.
    assert_eq!(socket.links().unwrap().len(), 2);
}

#[test]
fn a_batch_reports_on_each_change_and_goes_on_behind_a_refused_one() {
    let mut socket = private_namespace();
    let (br0, br1) = (NewLink::new(End::new("br0"), BRIDGE), NewLink::new(End::new("br1"), BRIDGE));
    let verdicts = socket.apply_each(&[&br0, &br0, &br1]).unwrap();
    assert!(verdicts[0].is_ok() && verdicts[2].is_ok());
    assert!(verdicts[1].as_ref().unwrap_err().is_exists());
    assert!(socket.apply_all(&[&br0, &br1]).unwrap_err().is_exists());
}

#[test]
fn a_macvlan_has_its_mode_and_parent() {
    let mut socket = private_namespace();
    let parent = socket.create_link(&NewLink::veth(End::new("a"), End::new("b"))).unwrap();
    let mode = MacvlanMode::Private;
    let kind = NewKind::Macvlan { mode, broadcast_queue_length: Some(500) };
    let made = socket.create_link(&NewLink::new(End::new("m"), kind).parent(parent.index));
    let made = made.unwrap();
    assert_eq!(made.parent, Some(parent.index));
    let kind = LinkKind::Macvlan { mode, broadcast_queue_length: Some(500) };
    assert_eq!(made.kind, Some(kind));
    assert_eq!(json("ip -j -d link show m")[0]["linkinfo"]["info_data"]["mode"], "private");
}

#[test]
fn a_link_moves_to_another_namespace_and_takes_its_new_name() {
    let mut socket = private_namespace();
    let made = socket.create_link(&NewLink::veth(End::new("a"), End::new("b"))).unwrap();
    let here = File::open("/proc/thread-self/ns/net").unwrap();
    let mut other = private_namespace();
    let there = File::open("/proc/thread-self/ns/net").unwrap();
    let change = ChangeLink::new(made.device()).name("eth0").namespace(there.as_fd());
    socket.apply(&change).unwrap();
    assert_eq!(socket.link_by_name("a").unwrap(), None);
    assert!(link(&mut other, "eth0").is_veth());
    // And a link is born here though the socket is there.
    let end = End::new("made").namespace(here.as_fd());
    assert!(other.create_link(&NewLink::new(end, BRIDGE)).is_err());
    other.apply(&NewLink::new(end, BRIDGE)).unwrap();
    assert!(link(&mut socket, "made").is_bridge());
}

#[test]
fn a_thousand_changes_fit_one_send() {
    let mut socket = private_namespace();
    let lo = support::loopback();
    let changes: Vec<_> = (0..1500).map(|mtu| ChangeLink::new(lo).mtu(1500 + mtu)).collect();
    let changes: Vec<_> =
        changes.iter().map(|change| change as &dyn podwire_netlink::route::Change).collect();
    socket.apply_all(&changes).unwrap();
    assert_eq!(link(&mut socket, "lo").mtu, 2999);
}

#[test]
fn a_socket_stays_in_its_namespace() {
    let mut first = private_namespace();
    first.apply(&NewLink::new(End::new("br0"), BRIDGE)).unwrap();
    let mut second = private_namespace();
    assert!(second.link_by_name("br0").unwrap().is_none());
    assert!(first.link_by_name("br0").unwrap().is_some());
    assert!(RouteSocket::open().unwrap().link_by_name("br0").unwrap().is_none());
}

#[test]
fn vlans_of_ports_are_what_bridge_shows() {
    let mut socket = private_namespace();
    let kind = NewKind::Bridge { vlan_filtering: Some(true), default_pvid: None };
    let made = socket.create_link(&NewLink::new(End::new("br0"), kind));
    // A kernel without bridge VLAN filtering says so, to everything.
    let lacking = made.as_ref().is_err_and(podwire_netlink::Error::is_unsupported);
    let bridge = match made {
        Ok(bridge) => bridge,
        Err(error) if lacking => {
            assert!(error.to_string().starts_with("creating bridge br0: "), "{error}");
            socket.create_link(&NewLink::new(End::new("br0"), BRIDGE)).unwrap()
        }
        Err(error) => panic!("{error}"),
    };
    let new = NewLink::veth(End::new("a"), End::new("b")).master(bridge.index);
    let port = socket.create_link(&new).unwrap();
    let native = VlanFlags::PVID | VlanFlags::UNTAGGED;
    let add = ChangeVlans::add(port.device(), 100, native);
    let trunk = ChangeVlans::add(port.device(), 200, VlanFlags::empty()).to(209);
    let Some(LinkKind::Bridge(settings)) = bridge.kind else { panic!("not a bridge") };
    if lacking {
        assert_eq!((settings.vlan_filtering, settings.default_pvid), (Some(false), None));
        let error = socket.apply(&add).unwrap_err();
        assert!(error.is_unsupported(), "{error}");
        assert!(error.to_string().starts_with("adding VLAN 100 of a: "), "{error}");
        assert_eq!(socket.port_vlans().unwrap(), []);
        return;
    }
    assert_eq!(settings.vlan_filtering, Some(true));
    socket.apply_all(&[&ChangeVlans::delete(port.device(), 1), &add, &trunk]).unwrap();
    let vlans = socket.port_vlans().unwrap();
    let of_port: Vec<_> = vlans.iter().filter(|vlan| vlan.port == port.index).collect();
    assert_eq!(of_port.len(), 11);
    assert_eq!((of_port[0].id, of_port[0].flags & native), (100, native));
    let shown = json("bridge -j vlan show dev a");
    // It shows ranges as one entry or as many, by its version.
    let entries = shown[0]["vlans"].as_array().unwrap();
    let ids: Vec<_> = entries
        .iter()
        .flat_map(|entry| {
            let first = entry["vlan"].as_u64().unwrap();
            first..=entry["vlanEnd"].as_u64().unwrap_or(first)
        })
        .collect();
    assert_eq!(ids, of_port.iter().map(|vlan| u64::from(vlan.id)).collect::<Vec<_>>());
}

#[test]
fn kinds_that_a_kernel_may_lack_are_made_or_refused_as_unsupported() {
    let mut socket = private_namespace();
    let parent = socket.create_link(&NewLink::veth(End::new("a"), End::new("b"))).unwrap();
    let (vlan, protocol) = (77, VlanProtocol::Service);
    let (mode, isolation) = (IpvlanMode::L3s, IpvlanIsolation::Private);
    let cases = [
        (NewKind::Vlan { id: vlan, protocol }, LinkKind::Vlan { id: vlan, protocol }, true),
        (NewKind::Ipvlan { mode, isolation }, LinkKind::Ipvlan { mode, isolation }, true),
        (NewKind::Vrf { table: 70_000 }, LinkKind::Vrf { table: 70_000 }, false),
        (NewKind::Dummy, LinkKind::Dummy, false),
    ];
    for (new, expected, on_parent) in cases {
        let kind = new.name();
        let mut new = NewLink::new(End::new("made"), new);
        if on_parent {
            new = new.parent(parent.index);
        }
        match socket.create_link(&new) {
            Ok(made) => {
                println!("{kind}: made");
                assert_eq!(made.kind, Some(expected));
                assert_eq!(made.parent, on_parent.then_some(parent.index));
                socket.apply(&DeleteLink(made.device())).unwrap();
            }
            Err(error) => {
                println!("{kind}: {error}");
                assert!(error.is_unsupported(), "{error}");
            }
        }
    }
}
