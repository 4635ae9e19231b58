//! A container's life on the networks that Podman makes.

use podwire_testkit::probe::{self, ANSWER};
use podwire_tests::lab::reservations;
use podwire_tests::{Plugins, wait_until};
use serde_json::json;

use crate::engine::{PAGE, Podman, kinds, page, read_page};

#[test]
fn a_page_is_read_through_published_ports_until_the_container_goes() {
    let podman = Podman::new(Plugins::Ours);
    let (outside, host) = (podman.node.outside(), podman.node.world.host());
    let before = podman.node.world.detailed_snapshot();
    let list = podman.network("one", &["--subnet", "10.5.0.0/24"]);
    assert_eq!(list["cniVersion"], "0.4.0");
    assert_eq!(kinds(&list), ["bridge", "portmap", "firewall", "tuning"]);

    let ports = ["-p", "8080:80", "-p", "127.0.0.1:8081:80", "-p", "9000:9000/udp"];
    podman.serve("web", &[&["--network", "one"], &ports[..]].concat());
    let place = podman.place("web", "one");
    assert_eq!((&place["IPAddress"], &place["Gateway"]), (&json!("10.5.0.2"), &json!("10.5.0.1")));
    assert_eq!(podman.inside("web"), ["eth0 10.5.0.2/24"]);
    for address in ["10.5.0.2:80", "127.0.0.1:8080", "127.0.0.1:8081"] {
        read_page(host, address);
    }
    read_page(&outside.netns, "192.0.2.1:8080");
    assert_eq!(page(&outside.netns, "192.0.2.1:8081"), None, "for this host only");
    podman.serve("other", &["--network", "one"]);
    for address in ["10.5.0.2", "192.0.2.1:8080"] {
        let url = format!("http://{address}");
        let read = podman.exec("other", &["/bin/wget", "-q", "-O", "-", &url]);
        assert_eq!(read.stdout, PAGE);
    }
    podman.exec("other", &["/bin/ping", "-c", "1", "-W", "5", "192.0.2.2"]);
    assert_eq!(reservations("one"), ["10.5.0.2", "10.5.0.3"]);

    podman.remove(&["web", "other"]);
    assert_eq!(page(host, "127.0.0.1:8080"), None);
    podman.remove_networks(&["one"]);
    podman.assert_nothing_left(&before, &[]);
}

/// Twice: once stopped and started by hand, once by itself.
#[test]
fn a_container_that_starts_again_is_attached_again() {
    let podman = Podman::new(Plugins::Ours);
    let host = podman.node.world.host();
    let before = podman.node.world.detailed_snapshot();
    // The network that Podman has without being told.
    podman.serve("web", &["-p", "8080:80"]);
    read_page(host, "127.0.0.1:8080");
    let first = podman.address("web", "podman");
    podman.run(&["restart", "--time", "0", "web"]);
    read_page(host, "127.0.0.1:8080");
    assert_eq!(reservations("podman"), [podman.address("web", "podman")]);
    assert_ne!(podman.address("web", "podman"), first, "addresses go round");

    // Its watcher has Podman clean up after it.
    podman.run(&["kill", "web"]);
    wait_until("the detachment", || reservations("podman").is_empty());
    podman.run(&["wait", "web"]);
    assert_eq!(page(host, "127.0.0.1:8080"), None);
    podman.run(&["start", "web"]);
    read_page(host, "127.0.0.1:8080");
    podman.remove(&["web"]);
    podman.node.world.exec(&["ip", "link", "del", "cni-podman0"]);
    podman.assert_nothing_left(&before, &[]);
}

/// `podman network reload`, for firewalls that throw all rules away.
#[test]
fn rules_that_a_firewall_threw_away_come_back_by_reload() {
    let podman = Podman::new(Plugins::Ours);
    let outside = podman.node.outside();
    let before = podman.node.world.detailed_snapshot();
    podman.network("one", &["--subnet", "10.5.0.0/24"]);
    podman.serve("web", &["--network", "one", "-p", "8080:80"]);
    read_page(&outside.netns, "192.0.2.1:8080");
    let place = podman.place("web", "one");
    podman.node.world.exec(&["nft", "flush", "ruleset"]);
    assert_eq!(page(&outside.netns, "192.0.2.1:8080"), None);
    podman.run(&["network", "reload", "web"]);
    read_page(&outside.netns, "192.0.2.1:8080");
    let again = podman.place("web", "one");
    for key in ["IPAddress", "MacAddress"] {
        assert_eq!(again[key], place[key], "{key} is kept");
    }
    podman.remove(&["web"]);
    podman.remove_networks(&["one"]);
    podman.assert_nothing_left(&before, &[]);
}

#[test]
fn address_and_mac_are_as_asked_for_and_taken_once() {
    let podman = Podman::new(Plugins::Ours);
    let host = podman.node.world.host();
    let before = podman.node.world.detailed_snapshot();
    podman.network("one", &["--subnet", "10.5.0.0/24"]);
    let fixed = ["--network", "one", "--ip", "10.5.0.77", "--mac-address", "02:00:00:00:00:77"];
    podman.serve("web", &fixed);
    let place = podman.place("web", "one");
    assert_eq!(place["IPAddress"], "10.5.0.77", "{place}");
    assert_eq!(place["MacAddress"], "02:00:00:00:00:77", "{place}");
    let shown = podman.exec("web", &["/bin/ip", "link", "show", "eth0"]).stdout;
    assert!(shown.contains("02:00:00:00:00:77"), "{shown}");
    read_page(host, "10.5.0.77:80");
    probe::ping(host, std::net::Ipv4Addr::new(10, 5, 0, 77), ANSWER).unwrap();

    let running = podman.node.world.detailed_snapshot();
    let error = podman.try_serve("thief", &["--network", "one", "--ip", "10.5.0.77"]).failure();
    assert!(error.stderr.contains("10.5.0.77"), "{error:#?}");
    podman.run(&["rm", "thief"]);
    let now = podman.node.world.detailed_snapshot();
    now.since(&running).beyond_residue(&[]).assert_empty();
    let error = podman.try_serve("lost", &["--network", "one", "--ip", "10.9.0.1"]).failure();
    assert!(error.stderr.contains("10.9.0.1"), "{error:#?}");
    podman.run(&["rm", "lost"]);
    read_page(host, "10.5.0.77:80");

    podman.remove(&["web"]);
    podman.remove_networks(&["one"]);
    podman.assert_nothing_left(&before, &[]);
}
