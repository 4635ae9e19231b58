//! Several networks of one container, and other kinds of networks.

use std::collections::BTreeSet;

use podwire_testkit::probe::{self, ANSWER, SILENCE};
use podwire_tests::Plugins;
use podwire_tests::lab::reservations;
use serde_json::json;

use crate::engine::{Podman, kinds, page, read_page};

#[test]
fn networks_are_connected_and_disconnected_while_the_container_runs() {
    let podman = Podman::new(Plugins::Ours);
    let (outside, host) = (podman.node.outside(), podman.node.world.host());
    let before = podman.node.world.detailed_snapshot();
    podman.network("one", &["--subnet", "10.5.0.0/24"]);
    podman.network("two", &["--subnet", "10.6.0.0/24"]);
    podman.network("three", &["--subnet", "10.7.0.0/24"]);
    podman.serve("web", &["--network", "one", "--network", "two", "-p", "8080:80"]);
    // Podman gives the first two their interfaces in either order.
    let inside = podman.inside("web");
    let [one, two] = ["10.5.0.2/24", "10.6.0.2/24"].map(|address| {
        inside.iter().find_map(|line| line.strip_suffix(address)).unwrap().trim().to_owned()
    });
    assert_eq!(BTreeSet::from([&*one, &*two]), BTreeSet::from(["eth0", "eth1"]));
    podman.serve("peer", &["--network", "three"]);
    for address in ["10.5.0.2:80", "10.6.0.2:80"] {
        read_page(host, address);
    }
    read_page(&outside.netns, "192.0.2.1:8080");

    podman.run(&["network", "connect", "three", "web"]);
    assert_eq!(podman.inside("web")[2], "eth2 10.7.0.3/24");
    podman.exec("peer", &["/bin/ping", "-c", "1", "-W", "5", "10.7.0.3"]);
    // The published port was with the first network; it goes on with the others.
    podman.run(&["network", "disconnect", "one", "web"]);
    assert_eq!(podman.inside("web"), [&*format!("{two} 10.6.0.2/24"), "eth2 10.7.0.3/24"]);
    assert!(reservations("one").is_empty());
    read_page(host, "127.0.0.1:8080");
    read_page(&outside.netns, "192.0.2.1:8080");
    podman.run(&["network", "disconnect", "two", "web"]);
    read_page(&outside.netns, "192.0.2.1:8080");
    podman.run(&["network", "connect", "one", "web"]);
    podman.run(&["network", "disconnect", "three", "web"]);
    read_page(&outside.netns, "192.0.2.1:8080");
    assert_eq!(podman.inside("web").len(), 1);

    podman.remove(&["web", "peer"]);
    assert_eq!(page(host, "127.0.0.1:8080"), None);
    podman.remove_networks(&["one", "two", "three"]);
    podman.assert_nothing_left(&before, &[]);
}

#[test]
fn networks_with_ipv6_beside_ipv4_and_alone() {
    let podman = Podman::new(Plugins::Ours);
    let host = podman.node.world.host();
    let before = podman.node.world.detailed_snapshot();
    podman.network("both", &["--subnet", "10.6.0.0/24", "--subnet", "fd06::/64", "--ipv6"]);
    podman.network("six", &["--subnet", "fd07::/64"]);
    podman.serve("web", &["--network", "both", "-p", "8080:80"]);
    podman.serve("other", &["--network", "six", "-p", "8086:80", "--ip6", "fd07::77"]);
    assert_eq!(podman.inside("web"), ["eth0 10.6.0.2/24", "eth0 fd06::2/64"]);
    assert_eq!(podman.place("web", "both")["GlobalIPv6Address"], "fd06::2");
    assert_eq!(podman.inside("other"), ["eth0 fd07::77/64"]);
    for address in [
        "10.6.0.2:80",
        "[fd06::2]:80",
        "[fd07::77]:80",
        "10.6.0.1:8080",
        "[fd06::1]:8080",
        "[fd07::1]:8086",
    ] {
        read_page(host, address);
    }
    podman.exec("web", &["/bin/ping", "-c", "1", "-W", "5", "fd07::77"]);
    podman.run(&["network", "connect", "six", "web"]);
    assert_eq!(podman.inside("web").len(), 3);
    podman.run(&["network", "disconnect", "six", "web"]);
    podman.remove(&["web", "other"]);
    podman.remove_networks(&["both", "six"]);
    podman.assert_nothing_left(&before, &[]);
}

/// `isolate` becomes `ingressPolicy` of `firewall`, `mtu` and `internal` keys of
/// `bridge`.
#[test]
fn options_of_podmans_networks_take_effect() {
    let podman = Podman::new(Plugins::Ours);
    let outside = podman.node.outside();
    let before = podman.node.world.detailed_snapshot();
    let apart = ["--opt", "isolate=true", "--opt", "mtu=1400"];
    let list = podman.network("apart", &[&["--subnet", "10.5.0.0/24"], &apart[..]].concat());
    assert_eq!(list["plugins"][2]["ingressPolicy"], "same-bridge", "{list}");
    podman.network("open", &["--subnet", "10.6.0.0/24", "--opt", "isolate=true"]);
    let list = podman.network("inner", &["--subnet", "10.7.0.0/24", "--internal"]);
    assert_eq!(list["plugins"][0]["isGateway"], false, "{list}");
    podman.serve("left", &["--network", "apart"]);
    podman.serve("right", &["--network", "open"]);
    podman.serve("hidden", &["--network", "inner"]);
    let shown = podman.exec("left", &["/bin/ip", "link", "show", "eth0"]).stdout;
    assert!(shown.contains("mtu 1400"), "{shown}");

    let reaches = |container: &str, address: &str| {
        let command = ["exec", container, "/bin/ping", "-c", "1", "-W", "1", address];
        podman.try_run(&command).code == 0
    };
    assert!(reaches("left", "192.0.2.2") && reaches("right", "192.0.2.2"));
    assert!(!reaches("left", "10.6.0.2") && !reaches("right", "10.5.0.2"), "kept apart");
    assert!(!reaches("hidden", "192.0.2.2"), "no way out");
    let address = std::net::Ipv4Addr::new(10, 7, 0, 2);
    probe::ping(&outside.netns, address, SILENCE).unwrap_err();

    podman.remove(&["left", "right", "hidden"]);
    podman.remove_networks(&["apart", "open", "inner"]);
    podman.assert_nothing_left(&before, &[]);
}

#[test]
fn a_container_is_a_machine_of_its_own_on_a_macvlan_network() {
    let podman = Podman::new(Plugins::Ours);
    let outside = podman.node.outside();
    let before = podman.node.world.detailed_snapshot();
    let options = ["--driver", "macvlan", "--opt", "parent=uplink", "--opt", "mode=bridge"];
    let subnet =
        ["--subnet", "192.0.2.0/24", "--gateway", "192.0.2.2", "--ip-range", "192.0.2.128/25"];
    let list = podman.network("lan", &[&options[..], &subnet].concat());
    assert_eq!((&list["cniVersion"], kinds(&list)), (&json!("0.4.0"), vec!["macvlan"]));
    podman.serve("web", &["--network", "lan"]);
    let address: std::net::Ipv4Addr = podman.address("web", "lan").parse().unwrap();
    assert!(address.octets()[3] >= 128, "{address}");
    probe::ping(&outside.netns, address, ANSWER).unwrap();
    read_page(&outside.netns, &format!("{address}:80"));
    podman.remove(&["web"]);
    podman.remove_networks(&["lan"]);
    podman.assert_nothing_left(&before, &[]);
}
