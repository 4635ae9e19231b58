//! Go's libcni drives our plugins: all its operations, each version of the
//! specification that has lists with results as we know them.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::net::SocketAddr;

use podwire_testkit::probe::{self, ANSWER, SILENCE, TcpEcho};
use podwire_tests::{Node, Plugins};
use serde_json::{Value, json};

const VERSIONS: [&str; 4] = ["0.3.1", "0.4.0", "1.0.0", "1.1.0"];

fn network(version: &str) -> Value {
    json!({
        "cniVersion": version,
        "name": "pods",
        "plugins": [{
            "type": "bridge",
            "bridge": "br0",
            "isDefaultGateway": true,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd01::/64"}]],
            },
            "dns": {"nameservers": ["10.1.0.1"]},
        }],
    })
}

#[test]
fn libcni_adds_checks_and_deletes_with_our_plugins_in_every_version() {
    for version in VERSIONS {
        let node = Node::new(Plugins::Ours);
        node.network(&network(version));
        let go = node.libcni();
        let before = node.world.snapshot();
        let (left, right) = (node.container("c1"), node.container("c2"));

        let result = go.on("add", "pods", &left).success().json();
        go.on("add", "pods", &right).success();
        assert_eq!(result["cniVersion"], version);
        assert_eq!(result["ips"][0]["address"], "10.1.0.2/24", "{result}");
        assert_eq!(result["ips"][1]["address"], "fd01::2/64", "{result}");
        assert_eq!(result["ips"][0]["interface"], 2);
        assert_eq!(result["interfaces"][2]["name"], "eth0");
        assert_eq!(result["interfaces"][2]["sandbox"], "/run/netns/c1");
        assert_eq!(result["routes"][0]["gw"], "10.1.0.1", "{result}");
        assert_eq!(result["dns"]["nameservers"][0], "10.1.0.1");
        // The family is a key of its own in the older shape only.
        let family = &result["ips"][1]["version"];
        assert_eq!(family.as_str(), version.starts_with("0.").then_some("6"));

        for address in right.addresses() {
            probe::ping(&left.netns, address, ANSWER).unwrap();
        }
        let checked = go.on("check", "pods", &left);
        if version == "0.3.1" {
            let text = checked.failure().json()["msg"].to_string();
            assert!(text.contains("does not support the CHECK command"), "{text}");
        } else {
            checked.success();
            left.netns.exec(&["ip", "addr", "flush", "dev", "eth0"]);
            let error = go.on("check", "pods", &left).failure().json();
            assert!(error["msg"].as_str().unwrap().contains("10.1.0.2"), "{error}");
        }
        go.on("del", "pods", &left).success();
        go.on("del", "pods", &left).success();
        right.netns.remove();
        go.on("del", "pods", &right).success();
        assert!(!left.is_attached());
        node.assert_nothing_left(&before);
    }
}

#[test]
fn libcni_finds_our_plugins_valid_and_ready() {
    for version in ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let node = Node::new(Plugins::Ours);
        let mut config = network(version);
        config["plugins"][0]["capabilities"] = json!({"mac": true, "ips": true});
        config["plugins"].as_array_mut().unwrap().push(json!({"type": "loopback"}));
        node.network(&config);
        let found = node.libcni().status("validate", "pods").success().json();
        let mut found: Vec<_> = found["capabilities"].as_array().unwrap().clone();
        found.sort_by_key(ToString::to_string);
        assert_eq!(found, ["ips", "mac"]);
        node.libcni().status("status", "pods").success();
    }
}

#[test]
fn status_through_libcni_says_that_the_pool_is_full() {
    let node = Node::new(Plugins::Ours);
    let mut config = network("1.1.0");
    config["plugins"][0]["ipam"]["ranges"] = json!([[{"subnet": "10.1.0.0/30"}]]);
    node.network(&config);
    let go = node.libcni();
    go.status("status", "pods").success();
    let container = node.container("c1");
    go.on("add", "pods", &container).success();
    let error = go.status("status", "pods").error(50);
    assert!(error["msg"].as_str().unwrap().contains("10.1.0."), "{error}");
    // And an ADD fails with the pool named, leaving nothing of its own.
    let late = node.container("c2");
    let before = node.world.snapshot();
    let error = go.on("add", "pods", &late).failure().json();
    assert!(error["msg"].as_str().unwrap().contains("no IP addresses available"), "{error}");
    assert!(!late.is_attached());
    node.assert_nothing_left(&before);
    go.on("del", "pods", &container).success();
    go.status("status", "pods").success();
}

#[test]
fn gc_through_libcni_removes_only_what_is_not_valid() {
    let node = Node::new(Plugins::Ours);
    node.network(&network("1.1.0"));
    let go = node.libcni();
    let alive = node.container("alive");
    go.on("add", "pods", &alive).success();
    let before = node.world.snapshot();
    let dead = node.container("dead");
    go.on("add", "pods", &dead).success();
    let forgotten = node.container("forgotten");
    go.on("add", "pods", &forgotten).success();
    // Without its record only the plugins themselves know of it.
    std::fs::remove_file("/var/lib/cni/results/pods-forgotten-eth0").unwrap();

    go.gc("pods", &[&alive]).success();
    assert!(alive.is_attached() && !dead.is_attached() && !forgotten.is_attached());
    node.assert_nothing_left(&before);
    go.on("check", "pods", &alive).success();
    // libcni writes an empty set as null when its list is nil; both mean none.
    go.run(&["gc", "--network", "pods", "--valid-attachments", "null"]).success();
    assert!(!alive.is_attached());
}

#[test]
fn old_shapes_of_results_are_what_libcni_expects() {
    for version in ["0.1.0", "0.2.0"] {
        let node = Node::new(Plugins::Ours);
        let mut config = network(version);
        config["plugins"][0]["isDefaultGateway"] = json!(false);
        config["plugins"][0]["ipam"]["routes"] = json!([{"dst": "0.0.0.0/0", "gw": "10.1.0.1"}]);
        node.network(&config);
        let container = node.container("c1");
        let result = node.libcni().on("add", "pods", &container).success().json();
        assert_eq!(result["ip4"]["ip"], "10.1.0.2/24", "{result}");
        assert_eq!(result["ip4"]["routes"][0]["gw"], "10.1.0.1", "{result}");
        assert_eq!(result["ip6"]["ip"], "fd01::2/64", "{result}");
        assert_eq!(result.get("ips"), None);
        node.libcni().on("del", "pods", &container).success();
    }
}

#[test]
fn host_ports_and_masquerade_work_under_libcni() {
    for version in VERSIONS {
        let node = Node::new(Plugins::Ours);
        let outside = node.outside();
        let mut config = network(version);
        config["plugins"][0]["ipMasq"] = json!(true);
        let portmap = json!({"type": "portmap", "capabilities": {"portMappings": true}});
        config["plugins"].as_array_mut().unwrap().push(portmap);
        node.network(&config);
        let go = node.libcni();
        let before = node.world.snapshot();
        let container = node.container("c1").with_port(8080, 80);
        let result = go.on("add", "pods", &container).success().json();
        assert_eq!(result["cniVersion"], version);
        assert_eq!(result["interfaces"].as_array().unwrap().len(), 3);

        let address = container.addresses()[0];
        let server = TcpEcho::start(&container.netns, SocketAddr::new(address, 80));
        let port = SocketAddr::new(outside.node, 8080);
        probe::tcp_connect(&outside.netns, port, ANSWER).unwrap().exchange(b"hello").unwrap();
        drop(server);
        let listener = TcpEcho::start(&outside.netns, SocketAddr::new(outside.address, 0));
        let leaving = probe::tcp_connect(&container.netns, listener.address(), ANSWER).unwrap();
        assert_eq!(leaving.seen_as.ip(), outside.node);
        if version != "0.3.1" {
            go.on("check", "pods", &container).success();
        }
        if version == "1.1.0" {
            go.status("status", "pods").success();
            go.gc("pods", &[&container]).success();
            go.on("check", "pods", &container).success();
        }
        go.on("del", "pods", &container).success();
        assert!(probe::tcp_connect(&outside.netns, port, SILENCE).is_err());
        node.assert_nothing_left(&before);
    }
}
