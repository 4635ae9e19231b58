//! What we write and read, against netlink-packet-route: the witness for
//! links that the kernel at hand may lack (VLAN, ipvlan, VRF, dummy, bridge
//! VLAN filtering).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // Tests fail by panicking.

use netlink_packet_core::{Emitable, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    AfSpecBridge, BridgeVlanInfo, BridgeVlanInfoFlags, InfoBridge, InfoData, InfoIpVlan, InfoKind,
    InfoMacVlan, InfoVlan, InfoVrf, IpVlanFlags, IpVlanMode, LinkAttribute, LinkInfo, LinkMessage,
    MacVlanMode, VlanProtocol as OracleVlanProtocol,
};
use podwire_netlink::message::Requests;
use podwire_netlink::route::address::{AddAddress, DeleteAddress};
use podwire_netlink::route::bridge::{ChangePort, ChangeVlans, PortSettings, VlanFlags};
use podwire_netlink::route::link_change::{ChangeLink, DeleteLink};
use podwire_netlink::route::link_kind::{
    BridgeSettings, IpvlanIsolation, IpvlanMode, LinkKind, MacvlanMode, VlanProtocol,
};
use podwire_netlink::route::link_new::{End, NewKind, NewLink};
use podwire_netlink::route::neighbour::{DeleteNeighbour, SetNeighbour};
use podwire_netlink::route::routes::{AddRoute, DeleteRoute, NextHop, RouteMode};
use podwire_netlink::route::rule::{AddRule, DeleteRule};
use podwire_netlink::route::tc::{AddQdisc, Handle};
use podwire_netlink::route::{Change, Device, Link, MacAddress, Route, Rule};

const DEVICE: Device<'static> = Device::new(7, "eth0");

fn encode(change: &dyn Change) -> Vec<u8> {
    let mut requests = Requests::new();
    change.encode(&mut requests);
    assert_eq!(requests.fault(), None);
    requests.bytes().to_vec()
}

/// Reads a change as the oracle does, and checks that the oracle writes the
/// same bytes, except that it doesn't flag nests as such.
fn read(change: &dyn Change) -> RouteNetlinkMessage {
    let ours = encode(change);
    let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&ours).unwrap();
    let mut theirs = vec![0; message.buffer_len()];
    message.serialize(&mut theirs);
    assert_eq!(ours.len(), theirs.len(), "{change}: {message:?}");
    for (position, (our, their)) in ours.iter().zip(&theirs).enumerate() {
        assert!(our == their || *our == their | 0x80, "{change}: byte {position}: {message:?}");
    }
    match message.payload {
        NetlinkPayload::InnerMessage(message) => message,
        other => panic!("{change}: {other:?}"),
    }
}

fn read_link(change: &dyn Change) -> LinkMessage {
    match read(change) {
        RouteNetlinkMessage::NewLink(link)
        | RouteNetlinkMessage::SetLink(link)
        | RouteNetlinkMessage::DelLink(link) => link,
        other => panic!("{other:?}"),
    }
}

/// A kind to make, what the oracle calls it, and what we read of it.
fn kinds() -> Vec<(NewKind<'static>, InfoKind, Option<InfoData>, LinkKind)> {
    let bridge = BridgeSettings { vlan_filtering: Some(true), default_pvid: Some(0) };
    vec![
        (
            NewKind::Vlan { id: 4094, protocol: VlanProtocol::Service },
            InfoKind::Vlan,
            Some(InfoData::Vlan(vec![
                InfoVlan::Id(4094),
                InfoVlan::Protocol(OracleVlanProtocol::Ieee8021Ad),
            ])),
            LinkKind::Vlan { id: 4094, protocol: VlanProtocol::Service },
        ),
        (
            NewKind::Ipvlan { mode: IpvlanMode::L3s, isolation: IpvlanIsolation::Private },
            InfoKind::IpVlan,
            Some(InfoData::IpVlan(vec![
                InfoIpVlan::Mode(IpVlanMode::L3S),
                InfoIpVlan::Flags(IpVlanFlags::Private),
            ])),
            LinkKind::Ipvlan { mode: IpvlanMode::L3s, isolation: IpvlanIsolation::Private },
        ),
        (
            NewKind::Vrf { table: 70_000 },
            InfoKind::Vrf,
            Some(InfoData::Vrf(vec![InfoVrf::TableId(70_000)])),
            LinkKind::Vrf { table: 70_000 },
        ),
        (NewKind::Dummy, InfoKind::Dummy, None, LinkKind::Dummy),
        (NewKind::Ifb, InfoKind::Ifb, None, LinkKind::Ifb),
        (
            NewKind::Bridge { vlan_filtering: Some(true), default_pvid: Some(0) },
            InfoKind::Bridge,
            Some(InfoData::Bridge(vec![
                InfoBridge::VlanFiltering(true),
                InfoBridge::VlanDefaultPvid(0),
            ])),
            LinkKind::Bridge(bridge),
        ),
        (
            NewKind::Macvlan { mode: MacvlanMode::Passthru, broadcast_queue_length: Some(5) },
            InfoKind::MacVlan,
            Some(InfoData::MacVlan(vec![
                InfoMacVlan::Mode(MacVlanMode::Passthrough),
                InfoMacVlan::BcQueueLen(5),
            ])),
            LinkKind::Macvlan { mode: MacvlanMode::Passthru, broadcast_queue_length: Some(5) },
        ),
    ]
}

#[test]
fn links_of_every_kind_are_written_as_the_oracle_writes_them() {
    for (new, kind, data, _) in kinds() {
        let end = End::new("made").mac(MacAddress([2, 0, 0, 0, 0, 1])).mtu(1400).queues(4);
        let message = read_link(&NewLink::new(end, new).parent(3).master(5).up());
        let mut info = vec![LinkInfo::Kind(kind)];
        info.extend(data.map(LinkInfo::Data));
        let expected = [
            LinkAttribute::IfName("made".into()),
            LinkAttribute::Address(vec![2, 0, 0, 0, 0, 1]),
            LinkAttribute::Mtu(1400),
            LinkAttribute::NumTxQueues(4),
            LinkAttribute::NumRxQueues(4),
            LinkAttribute::Link(3),
            LinkAttribute::Controller(5),
            LinkAttribute::LinkInfo(info),
        ];
        assert_eq!(message.attributes, expected);
        assert_eq!(message.header.flags, netlink_packet_route::link::LinkFlags::Up);
        assert_eq!(message.header.change_mask, netlink_packet_route::link::LinkFlags::Up);
    }
}

#[test]
fn links_of_every_kind_are_read_from_what_the_oracle_writes() {
    for (_, kind, data, expected) in kinds() {
        let mut message = LinkMessage::default();
        message.header.index = 9;
        let mut info = vec![LinkInfo::Kind(kind)];
        info.extend(data.map(LinkInfo::Data));
        message.attributes = vec![
            LinkAttribute::IfName("made".into()),
            LinkAttribute::LinkNetNsId(-1),
            LinkAttribute::IfAlias("note".into()),
            LinkAttribute::LinkInfo(info),
        ];
        let mut bytes = vec![0; message.buffer_len()];
        message.emit(&mut bytes);
        let link = Link::decode(&bytes).unwrap();
        assert_eq!((link.index, link.name.as_str(), link.kind), (9, "made", Some(expected)));
        assert_eq!((link.parent_namespace, link.alias.as_deref()), (Some(-1), Some("note")));
    }
}

#[test]
fn a_kind_of_a_newer_kernel_does_not_hide_the_link() {
    let mut message = LinkMessage::default();
    message.header.index = 9;
    let data = InfoData::MacVlan(vec![InfoMacVlan::Mode(MacVlanMode::Other(1024))]);
    let info = vec![LinkInfo::Kind(InfoKind::MacVlan), LinkInfo::Data(data)];
    message.attributes = vec![LinkAttribute::LinkInfo(info)];
    let mut bytes = vec![0; message.buffer_len()];
    message.emit(&mut bytes);
    let kind = Link::decode(&bytes).unwrap().kind;
    assert_eq!(kind, Some(LinkKind::Other("macvlan".into())));
}

#[test]
fn vlans_of_ports_are_written_as_the_oracle_writes_them() {
    let vlan = |flags, vid| AfSpecBridge::VlanInfo(BridgeVlanInfo { flags, vid });
    let native = BridgeVlanInfoFlags::Pvid | BridgeVlanInfoFlags::Untagged;
    let none = BridgeVlanInfoFlags::empty();
    let cases = [
        (
            ChangeVlans::add(DEVICE, 100, VlanFlags::PVID | VlanFlags::UNTAGGED),
            vec![vlan(native, 100)],
        ),
        (
            ChangeVlans::add(DEVICE, 200, VlanFlags::empty()).to(300),
            vec![
                vlan(BridgeVlanInfoFlags::RangeBegin, 200),
                vlan(BridgeVlanInfoFlags::RangeEnd, 300),
            ],
        ),
        (
            ChangeVlans::add(DEVICE, 2, VlanFlags::empty()).on_bridge(),
            vec![
                AfSpecBridge::Flags(netlink_packet_route::link::BridgeFlag::LowerDev),
                vlan(none, 2),
            ],
        ),
        (ChangeVlans::delete(DEVICE, 1), vec![vlan(none, 1)]),
    ];
    for (change, spec) in cases {
        let message = read_link(&change);
        assert_eq!(message.header.index, 7);
        assert_eq!(message.attributes, [LinkAttribute::AfSpecBridge(spec)]);
    }
    for (first, last) in [(0, 0), (4095, 4095), (5, 4)] {
        let mut requests = Requests::new();
        ChangeVlans::add(DEVICE, first, VlanFlags::empty()).to(last).encode(&mut requests);
        assert!(requests.fault().is_some());
    }
}

#[test]
fn everything_else_is_read_by_the_oracle_and_written_the_same() {
    let address = AddAddress::new(DEVICE, "10.1.0.2/24".parse().unwrap()).broadcast().label("a:1");
    let v6 = AddAddress::new(DEVICE, "fd00::2/64".parse().unwrap()).no_dad().lifetimes(1, 2);
    let mut route = Route::new("192.0.2.0/24".parse().unwrap());
    route.gateway = Some("fd00::1".parse().unwrap());
    (route.output, route.table, route.mtu) = (Some(7), 1000, Some(1400));
    (route.priority, route.on_link, route.advertised_mss) = (Some(5), true, Some(1300));
    route.preferred_source = Some("10.1.0.2".parse().unwrap());
    let mut many = Route::new("2001:db8::/32".parse().unwrap());
    let gateway = Some("fd00::1".parse().unwrap());
    many.next_hops = vec![
        NextHop { output: 7, gateway, weight: 3 },
        NextHop { output: 8, gateway: None, weight: 0 },
    ];
    let mut rule = Rule::from_source("10.0.0.0/8".parse().unwrap(), 1000);
    (rule.priority, rule.mark, rule.input) = (Some(5), Some((1, 2)), Some("a".into()));
    let mac = MacAddress([2, 0, 0, 0, 0, 1]);
    let neighbour = "10.1.0.1".parse().unwrap();
    let all = PortSettings { hairpin: Some(true), isolated: Some(false), ..Default::default() };
    let peer = End::new("b").mac(mac).transmit_queue_length(500);
    let changes: [&dyn Change; 16] = [
        &address,
        &v6,
        &DeleteAddress { device: DEVICE, address: "10.1.0.2/24".parse().unwrap() },
        &AddRoute { route: &route, mode: RouteMode::Replace, output_name: "eth0" },
        &DeleteRoute { route: &route, output_name: "eth0" },
        &AddRoute { route: &many, mode: RouteMode::Exclusive, output_name: "" },
        &AddRule(&rule),
        &DeleteRule(&rule),
        &SetNeighbour { device: DEVICE, address: neighbour, mac },
        &DeleteNeighbour { device: DEVICE, address: neighbour },
        &ChangePort { port: DEVICE, settings: all },
        &NewLink::veth(End::new("a"), peer),
        &ChangeLink::new(DEVICE).name("eth1").alias("x").no_master().promiscuous(true).down(),
        &DeleteLink(Device::named("a")),
        &DeleteLink(DEVICE),
        &AddQdisc::ingress(DEVICE),
    ];
    for change in changes {
        read(change);
    }
    let RouteNetlinkMessage::NewQueueDiscipline(qdisc) = read(&AddQdisc::ingress(DEVICE)) else {
        panic!("not a qdisc");
    };
    assert_eq!(u32::from(qdisc.header.parent), Handle::INGRESS.0);
}
