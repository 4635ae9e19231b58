//! Routes and rules against the kernel, with `ip` as the witness.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Tests fail by panicking.

mod support;

use std::net::IpAddr;

use podwire_netlink::Error;
use podwire_netlink::route::address::AddAddress;
use podwire_netlink::route::link_change::ChangeLink;
use podwire_netlink::route::link_new::{End, NewLink};
use podwire_netlink::route::routes::{
    AddRoute, DeleteRoute, NextHop, RouteFilter, RouteMode, RouteProtocol,
};
use podwire_netlink::route::rule::{AddRule, DeleteRule};
use podwire_netlink::route::{Device, Family, Link, Route, RouteSocket, Rule, Scope};
use support::{json, private_namespace};

fn ready() -> (RouteSocket, Link) {
    let mut socket = private_namespace();
    let link = socket.create_link(&NewLink::veth(End::new("a"), End::new("b")).up()).unwrap();
    socket.apply(&ChangeLink::new(Device::named("b")).up()).unwrap();
    let v4 = AddAddress::new(link.device(), "10.1.0.2/24".parse().unwrap());
    let v6 = AddAddress::new(link.device(), "fd00::2/64".parse().unwrap()).no_dad();
    socket.apply_all(&[&v4, &v6]).unwrap();
    (socket, link)
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn add(socket: &mut RouteSocket, route: &Route, mode: RouteMode) -> Result<(), Error> {
    socket.apply(&AddRoute { route, mode, output_name: "a" })
}

fn table(socket: &mut RouteSocket, number: u32) -> Vec<Route> {
    socket.routes(RouteFilter { table: Some(number), ..Default::default() }).unwrap()
}

#[test]
fn a_route_with_everything_set_comes_back_and_is_what_ip_shows() {
    let (mut socket, link) = ready();
    let mut route = Route::new("192.0.2.7/24".parse().unwrap());
    route.gateway = Some(address("10.1.0.1"));
    route.output = Some(link.index);
    route.preferred_source = Some(address("10.1.0.2"));
    route.priority = Some(77);
    route.table = 1000;
    route.mtu = Some(1280);
    route.advertised_mss = Some(1200);
    route.protocol = RouteProtocol::STATIC;
    add(&mut socket, &route, RouteMode::Exclusive).unwrap();
    assert_eq!(table(&mut socket, 1000), [route.clone()]);
    let shown = json("ip -j route show table 1000");
    assert_eq!(shown[0]["dst"], "192.0.2.0/24");
    assert_eq!(shown[0]["gateway"], "10.1.0.1");
    assert_eq!(shown[0]["metric"], 77);
    assert_eq!(shown[0]["metrics"][0]["mtu"], 1280);
    assert_eq!(shown[0]["metrics"][0]["advmss"], 1200);
    assert_eq!(shown[0]["prefsrc"], "10.1.0.2");

    let error = add(&mut socket, &route, RouteMode::Exclusive).unwrap_err();
    assert!(error.is_exists());
    let text = "adding route 192.0.2.0/24 via 10.1.0.1 metric 77 table 1000 on a: File exists";
    assert!(error.to_string().starts_with(text), "{error}");
    let delete = DeleteRoute { route: &route, output_name: "a" };
    socket.apply(&delete).unwrap();
    assert!(socket.apply(&delete).unwrap_err().is_not_found());
    assert!(table(&mut socket, 1000).is_empty() && table(&mut socket, 4_000_000).is_empty());
}

#[test]
fn default_routes_of_both_families() {
    let (mut socket, link) = ready();
    for (family, gateway) in [(Family::V4, "10.1.0.1"), (Family::V6, "fd00::1")] {
        let mut route = Route::new(family.everything());
        route.gateway = Some(address(gateway));
        route.output = Some(link.index);
        add(&mut socket, &route, RouteMode::Exclusive).unwrap();
        let filter = RouteFilter { family: Some(family), ..Default::default() };
        let listed = socket.routes(filter).unwrap();
        let found = listed.iter().find(|route| route.is_default() && route.table == 254).unwrap();
        assert_eq!(found.gateway, route.gateway);
    }
    assert_eq!(json("ip -j route show default")[0]["gateway"], "10.1.0.1");
    assert_eq!(json("ip -j -6 route show default")[0]["gateway"], "fd00::1");
    let way = socket.route_to(address("198.51.100.1")).unwrap().unwrap();
    assert_eq!((way.output, way.gateway), (Some(link.index), Some(address("10.1.0.1"))));
    assert_eq!(way.preferred_source, Some(address("10.1.0.2")));
    let way = socket.route_to(address("2001:db8::1")).unwrap().unwrap();
    assert_eq!(way.gateway, Some(address("fd00::1")));
}

#[test]
fn no_way_is_no_error() {
    let (mut socket, _) = ready();
    assert_eq!(socket.route_to(address("198.51.100.1")).unwrap(), None);
    assert_eq!(socket.route_to(address("2001:db8::1")).unwrap(), None);
    support::run("ip route add blackhole 198.51.100.0/24");
    support::run("ip route add unreachable 2001:db8::/64");
    assert_eq!(socket.route_to(address("198.51.100.1")).unwrap(), None);
    assert_eq!(socket.route_to(address("2001:db8::1")).unwrap(), None);
    assert!(socket.route_to(address("10.1.0.9")).unwrap().unwrap().gateway.is_none());
}

#[test]
fn replacing_leaves_one_route_and_beside_makes_two() {
    let (mut socket, link) = ready();
    let mut route = Route::new("192.0.2.0/24".parse().unwrap());
    (route.output, route.table) = (Some(link.index), 7);
    route.gateway = Some(address("10.1.0.1"));
    add(&mut socket, &route, RouteMode::Replace).unwrap();
    route.gateway = Some(address("10.1.0.3"));
    add(&mut socket, &route, RouteMode::Replace).unwrap();
    assert_eq!(table(&mut socket, 7), [route.clone()]);
    let mut second = route.clone();
    second.gateway = Some(address("10.1.0.4"));
    add(&mut socket, &second, RouteMode::Beside).unwrap();
    assert_eq!(table(&mut socket, 7).len(), 2);
    assert!(add(&mut socket, &second, RouteMode::Beside).unwrap_err().is_exists());
}

#[test]
fn on_link_gateways_and_ipv6_gateways_of_ipv4_routes() {
    let (mut socket, link) = ready();
    let mut route = Route::new("192.0.2.0/24".parse().unwrap());
    (route.output, route.table, route.on_link) = (Some(link.index), 7, true);
    route.gateway = Some(address("203.0.113.1"));
    add(&mut socket, &route, RouteMode::Exclusive).unwrap();
    assert_eq!(table(&mut socket, 7), [route.clone()]);
    let mut via = Route::new("198.51.100.0/24".parse().unwrap());
    (via.output, via.table) = (Some(link.index), 8);
    via.gateway = Some(address("fd00::1"));
    add(&mut socket, &via, RouteMode::Exclusive).unwrap();
    assert_eq!(table(&mut socket, 8), [via]);
    assert_eq!(json("ip -j route show table 8")[0]["via"]["host"], "fd00::1");
    // The other way round can't be.
    let mut wrong = Route::new("2001:db8::/64".parse().unwrap());
    wrong.gateway = Some(address("10.1.0.1"));
    assert_eq!(add(&mut socket, &wrong, RouteMode::Beside).unwrap_err().errno(), None);
}

#[test]
fn multipath_routes_are_made_and_read() {
    let (mut socket, link) = ready();
    let hop = |gateway: &str, weight| NextHop {
        output: link.index,
        gateway: Some(address(gateway)),
        weight,
    };
    let mut route = Route::new("192.0.2.0/24".parse().unwrap());
    route.table = 7;
    route.next_hops = vec![hop("10.1.0.1", 0), hop("10.1.0.3", 4), hop("fd00::9", 0)];
    add(&mut socket, &route, RouteMode::Exclusive).unwrap();
    assert_eq!(table(&mut socket, 7), [route.clone()]);
    assert_eq!(json("ip -j route show table 7")[0]["nexthops"][1]["weight"], 5);
    let filter = RouteFilter { output: Some(link.index), table: Some(7), ..Default::default() };
    assert_eq!(socket.routes(filter).unwrap(), [route]);
}

#[test]
fn listed_routes_can_be_deleted_and_put_back() {
    let (mut socket, link) = ready();
    support::run("ip route add 192.0.2.0/24 via 10.1.0.1 src 10.1.0.2 metric 5 mtu 1300");
    // IPv4 only: the kernel adds IPv6 link-local routes in its own time.
    let filter =
        RouteFilter { family: Some(Family::V4), table: Some(254), output: Some(link.index) };
    let before: Vec<_> = socket.routes(filter).unwrap();
    assert!(before.len() == 2 && before.iter().any(|route| route.scope == Scope::LINK));
    // The way by the subnet's route goes first, and comes back last.
    let (subnet, behind): (Vec<_>, Vec<_>) =
        before.iter().partition(|route| route.scope == Scope::LINK);
    for route in behind.iter().chain(&subnet) {
        socket.apply(&DeleteRoute { route, output_name: "a" }).unwrap();
    }
    assert!(json("ip -j route").as_array().unwrap().is_empty());
    for route in subnet.iter().chain(&behind) {
        add(&mut socket, route, RouteMode::Exclusive).unwrap();
    }
    assert_eq!(socket.routes(filter).unwrap(), before);
}

#[test]
fn rules_are_added_listed_and_deleted() {
    let (mut socket, _) = ready();
    for family in [Family::V4, Family::V6] {
        let source = if family == Family::V4 { "10.9.0.0/16" } else { "fd09::/48" };
        let mut rule = Rule::from_source(source.parse().unwrap(), 1234);
        rule.priority = Some(100);
        rule.mark = Some((1, 0xff));
        rule.input = Some("a".into());
        rule.inverted = true;
        socket.apply(&AddRule(&rule)).unwrap();
        let listed = socket.rules(family).unwrap();
        assert!(listed.contains(&rule), "{listed:?}");
        assert!(listed.iter().any(|rule| rule.table == 254 && rule.source.is_none()));
        let error = socket.apply(&AddRule(&rule)).unwrap_err();
        assert!(error.is_exists(), "{error}");
        socket.apply(&DeleteRule(&rule)).unwrap();
        assert!(socket.apply(&DeleteRule(&rule)).unwrap_err().is_not_found());
    }
    let everything = Rule::new(Family::V4, 99);
    socket.apply(&AddRule(&everything)).unwrap();
    let shown = json("ip -j rule show table 99");
    assert_eq!(shown[0]["src"], "all");
}
