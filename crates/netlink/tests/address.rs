//! Addresses and neighbours against the kernel, with `ip` as the witness.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Tests fail by panicking.

mod support;

use podwire_netlink::route::address::{AddAddress, Address, AddressFlags, DeleteAddress, FOREVER};
use podwire_netlink::route::link_change::ChangeLink;
use podwire_netlink::route::link_new::{End, NewLink};
use podwire_netlink::route::neighbour::{DeleteNeighbour, NeighbourState, SetNeighbour};
use podwire_netlink::route::{Device, Link, RouteSocket, Scope};
use support::{json, mac, private_namespace};

/// A switched-on pair, so that the addresses' duplicate check runs.
fn pair(socket: &mut RouteSocket) -> Link {
    let made = socket.create_link(&NewLink::veth(End::new("a"), End::new("b")).up()).unwrap();
    socket.apply(&ChangeLink::new(Device::named("b")).up()).unwrap();
    made
}

fn find(socket: &mut RouteSocket, link: &Link, address: &str) -> Address {
    let found = socket.addresses_of(link.device()).unwrap();
    let wanted = address.parse().unwrap();
    found.into_iter().find(|entry| entry.address == wanted).unwrap()
}

#[test]
fn addresses_are_added_listed_and_deleted() {
    let mut socket = private_namespace();
    let link = pair(&mut socket);
    let v4 = AddAddress::new(link.device(), "10.1.0.2/24".parse().unwrap()).broadcast();
    let v6 = AddAddress::new(link.device(), "fd00::2/64".parse().unwrap()).no_dad();
    socket.apply_all(&[&v4.label("a:one"), &v6]).unwrap();

    let shown = json("ip -j -4 addr show a");
    assert_eq!(shown[0]["addr_info"][0]["local"], "10.1.0.2");
    assert_eq!(shown[0]["addr_info"][0]["broadcast"], "10.1.0.255");
    assert_eq!(shown[0]["addr_info"][0]["label"], "a:one");
    let read = find(&mut socket, &link, "10.1.0.2/24");
    assert_eq!(read.broadcast, Some("10.1.0.255".parse().unwrap()));
    assert_eq!((read.scope, read.peer, read.valid), (Scope::UNIVERSE, None, FOREVER));
    let read = find(&mut socket, &link, "fd00::2/64");
    assert!(read.flags.contains(AddressFlags::NO_DAD) && !read.is_tentative());

    let error = socket.apply(&v4).unwrap_err();
    assert!(error.is_exists());
    assert!(error.to_string().starts_with("adding address 10.1.0.2/24 to a: File exists"));
    let delete = DeleteAddress { device: link.device(), address: "10.1.0.2/24".parse().unwrap() };
    socket.apply(&delete).unwrap();
    assert!(socket.apply(&delete).unwrap_err().is_not_found());
    assert!(
        json("ip -j -4 addr show a")
            .as_array()
            .unwrap()
            .iter()
            .all(|link| { link["addr_info"].as_array().is_none_or(Vec::is_empty) })
    );
}

#[test]
fn only_the_addresses_of_the_link_are_listed() {
    let mut socket = private_namespace();
    let link = pair(&mut socket);
    socket.apply(&ChangeLink::new(support::loopback()).up()).unwrap();
    let add = AddAddress::new(link.device(), "10.1.0.2/24".parse().unwrap());
    socket.apply(&add).unwrap();
    let of_link = socket.addresses_of(link.device()).unwrap();
    assert!(of_link.iter().all(|address| address.link == link.index));
    let all = socket.addresses().unwrap();
    assert!(all.len() > of_link.len());
    assert!(all.iter().any(|address| address.scope == Scope::HOST));
}

#[test]
fn flags_peers_and_lifetimes_come_back() {
    let mut socket = private_namespace();
    let link = pair(&mut socket);
    let plain = AddAddress::new(link.device(), "10.1.0.2/24".parse().unwrap());
    let without_route = plain.no_prefix_route().scope(Scope::LINK).lifetimes(600, 1200);
    let with_peer = AddAddress::new(link.device(), "10.2.0.1/32".parse().unwrap())
        .peer("10.2.0.2".parse().unwrap());
    socket.apply_all(&[&without_route, &with_peer]).unwrap();
    let read = find(&mut socket, &link, "10.1.0.2/24");
    assert!(read.flags.contains(AddressFlags::NO_PREFIX_ROUTE));
    assert_eq!(read.scope, Scope::LINK);
    assert!(read.preferred <= 600 && read.preferred > 500 && read.valid > 1000);
    assert_eq!(find(&mut socket, &link, "10.2.0.1/32").peer, Some("10.2.0.2".parse().unwrap()));
    let routes = json("ip -j -4 route");
    assert_eq!(routes.as_array().unwrap().len(), 1);
    assert_eq!(routes[0]["dst"], "10.2.0.2");
    // Replacing changes what is there instead of being refused.
    socket.apply(&without_route.lifetimes(FOREVER, FOREVER).replace()).unwrap();
    assert_eq!(find(&mut socket, &link, "10.1.0.2/24").valid, FOREVER);
}

#[test]
fn a_thousand_addresses_are_listed_whole() {
    let mut socket = private_namespace();
    let link = pair(&mut socket);
    let nets: Vec<_> = (0..1000)
        .map(|n: u32| format!("10.{}.{}.1/24", n / 250, n % 250).parse().unwrap())
        .collect();
    let adds: Vec<_> = nets.iter().map(|net| AddAddress::new(link.device(), *net)).collect();
    let changes: Vec<_> =
        adds.iter().map(|add| add as &dyn podwire_netlink::route::Change).collect();
    socket.apply_all(&changes).unwrap();
    let mut listed: Vec<_> = socket.addresses_of(link.device()).unwrap();
    listed.retain(|address| address.address.addr().is_ipv4());
    assert_eq!(listed.len(), 1000);
}

#[test]
fn an_address_needs_the_links_index() {
    let mut socket = private_namespace();
    let add = AddAddress::new(Device::named("lo"), "10.1.0.2/24".parse().unwrap());
    let error = socket.apply(&add).unwrap_err();
    assert!(error.to_string().contains("index is needed"), "{error}");
}

#[test]
fn permanent_neighbours_are_set_and_deleted() {
    let mut socket = private_namespace();
    let link = pair(&mut socket);
    let (device, address) = (link.device(), "10.1.0.1".parse().unwrap());
    socket.apply(&SetNeighbour { device, address, mac: mac(1) }).unwrap();
    socket.apply(&SetNeighbour { device, address, mac: mac(2) }).unwrap();
    let listed = socket.neighbours_of(device).unwrap();
    let entry = listed.iter().find(|neighbour| neighbour.address == address).unwrap();
    assert_eq!((entry.mac, entry.state), (Some(mac(2)), NeighbourState::PERMANENT));
    let shown = json("ip -j -4 neigh show dev a");
    assert_eq!(
        (&shown[0]["dst"], &shown[0]["state"][0]),
        (&"10.1.0.1".into(), &"PERMANENT".into())
    );
    socket.apply(&DeleteNeighbour { device, address }).unwrap();
    assert!(json("ip -j -4 neigh show dev a").as_array().unwrap().is_empty());
}
