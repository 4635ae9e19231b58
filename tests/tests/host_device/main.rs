//! host-device on real namespaces: a veth end is the device. Where it comes back
//! from, what it is like then, the PCI world in a tree of our own, and the Go
//! plugin beside it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // It is all of tests.

mod bus;
mod crash;
mod del;
mod hardware;
mod network;
mod peers;
mod verbs;

use podwire_testkit::Netns;
use podwire_tests::lab::{Lab, host_local, ip, link, links, with};
use serde_json::{Value, json};

/// A host with device `hdev`, up, whose other end is `eth0` of `peer`.
fn lab() -> (Lab, Netns) {
    let lab = Lab::new("host-device").with_ifname("net1");
    let peer = lab.container("peer");
    lab.ip("link add hdev mtu 1400 address 02:00:00:00:00:d1 type veth peer name eth0 netns peer");
    lab.ip("link set hdev up");
    ip(&peer, "link set eth0 up");
    (lab, peer)
}

/// The device alone.
fn plain() -> Value {
    json!({"cniVersion": "1.1.0", "name": "n", "type": "host-device", "device": "hdev"})
}

/// With addresses of both families.
fn addressed() -> Value {
    with(&plain(), &json!({"ipam": host_local(&["10.1.0.0/24", "fd00:1::/64"])}))
}

/// Moves a device from a container to the host without more: as the kernel does
/// with hardware at the end of its namespace.
#[track_caller]
fn send_home(lab: &Lab, netns: &Netns, name: &str) {
    let thread = lab.world.host().path().to_str().unwrap().split('/').nth(4).unwrap();
    lab.ip(&format!("netns attach home {thread}"));
    ip(netns, &format!("link set {name} netns home"));
    lab.ip("netns del home");
}

/// Panics unless the device is on the host as it was.
#[track_caller]
fn assert_home(lab: &Lab) {
    let device = link(lab.world.host(), "hdev")
        .unwrap_or_else(|| panic!("hdev is not back: {:?}", links(lab.world.host())));
    assert_eq!(device.get("ifalias"), None, "{device:#}");
    assert_eq!(device["mtu"], 1400);
    assert_eq!(device["address"], "02:00:00:00:00:d1");
    assert!(device["flags"].as_array().unwrap().contains(&json!("UP")), "{device:#}");
}
