//! Our runtime drives the Go plugins: 1.1.1 by 1.0.0 of the specification, 1.9.1
//! by 1.1.0.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::net::SocketAddr;

use podwire_runtime::{GcMode, RuntimeError, StaleOutcome, Status, ValidSet};
use podwire_spec::id::{ContainerId, IfName};
use podwire_testkit::probe::{self, ANSWER, SILENCE, TcpEcho};
use podwire_tests::{Node, Plugins};
use serde_json::{Value, json};

/// Bridge, host ports, firewall and a kernel parameter.
fn chain(version: &str) -> Value {
    json!({
        "cniVersion": version,
        "name": "pods",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "br0",
                "isGateway": true,
                "ipMasq": true,
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": "10.1.0.0/24"}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
            {"type": "firewall"},
            {"type": "tuning", "sysctl": {"net.core.somaxconn": "500"}},
        ],
    })
}

/// Attaches, checks, sends packets and detaches; returns what CHECK said.
fn life(plugins: Plugins, version: &str) -> Result<(), RuntimeError> {
    let node = Node::new(plugins);
    let outside = node.outside();
    let network = node.network(&chain(version));
    // What the Go plugins make once and keep is there after the first container.
    let first = node.container("first").with_port(8079, 80);
    node.add(&network, &first);
    node.del(&network, &first);
    let before = node.world.snapshot();

    let (left, right) = (node.container("c1").with_port(8080, 80), node.container("c2"));
    let attached = node.add(&network, &left);
    node.add(&network, &right);
    assert_eq!(attached.result.interfaces.len(), 3, "{}", attached.raw);
    assert_eq!(serde_json::from_str::<Value>(&attached.raw).unwrap()["cniVersion"], version);
    let checked = node.check(&network, &left);

    probe::ping(&right.netns, left.address(), ANSWER).unwrap();
    let somaxconn = left.netns.exec(&["sysctl", "-n", "net.core.somaxconn"]);
    assert_eq!(somaxconn.stdout.trim(), "500");
    let server = TcpEcho::start(&left.netns, SocketAddr::new(left.address(), 80));
    let port = SocketAddr::new(outside.node, 8080);
    probe::tcp_connect(&outside.netns, port, ANSWER).unwrap().exchange(b"hello").unwrap();
    let listener = TcpEcho::start(&outside.netns, SocketAddr::new(outside.address, 9000));
    let leaving = probe::tcp_connect(&right.netns, listener.address(), ANSWER).unwrap();
    assert_eq!(leaving.seen_as.ip(), outside.node, "masqueraded");
    drop((server, listener));

    node.del(&network, &left);
    assert!(probe::tcp_connect(&outside.netns, port, SILENCE).is_err());
    node.del(&network, &right);
    assert!(!left.is_attached() && !right.is_attached());
    node.assert_nothing_left(&before);
    checked
}

#[test]
fn go_1_1_1_runs_under_our_runtime() {
    let error = life(Plugins::Debian, "1.0.0").unwrap_err();
    // Its portmap looks for the IPv6 chain of a network without IPv6. The fault
    // must reach the caller, named.
    assert!(error.to_string().contains("portmap"), "{error}");
    assert!(matches!(error, RuntimeError::Plugin(_)), "{error:?}");
}

#[test]
fn go_1_9_1_runs_under_our_runtime() {
    life(Plugins::Sid, "1.1.0").unwrap();
}

#[test]
fn check_by_go_1_1_1_passes_and_finds_what_is_broken() {
    check_finds_faults(Plugins::Debian, "1.0.0");
}

#[test]
fn check_by_go_1_9_1_passes_and_finds_what_is_broken() {
    check_finds_faults(Plugins::Sid, "1.1.0");
}

fn check_finds_faults(plugins: Plugins, version: &str) {
    let node = Node::new(plugins);
    let mut config = chain(version);
    config["plugins"].as_array_mut().unwrap().remove(1);
    let network = node.network(&config);
    let container = node.container("c1");
    node.add(&network, &container);
    node.check(&network, &container).unwrap();
    container.netns.exec(&["ip", "addr", "flush", "dev", "eth0"]);
    let error = node.check(&network, &container).unwrap_err();
    assert!(error.to_string().contains("bridge"), "{error}");
    node.del(&network, &container);
}

#[test]
fn status_reaches_go_plugins_where_the_version_has_it() {
    let node = Node::new(Plugins::Sid);
    let network = node.network(&chain("1.1.0"));
    assert_eq!(node.runtime().status(&network).unwrap(), Status::Ready);
    let without_ipam = node.world.path("bin");
    std::fs::create_dir(&without_ipam).unwrap();
    let bridge = node.plugin_directory().join("bridge");
    std::os::unix::fs::symlink(bridge, without_ipam.join("bridge")).unwrap();
    node.install_from(&without_ipam);
    let error = node.runtime().status(&network).unwrap_err();
    assert!(error.to_string().contains("host-local"), "{error}");

    node.install(Plugins::Debian);
    let network = node.network(&chain("1.0.0"));
    assert_eq!(node.runtime().status(&network).unwrap(), Status::NotAsked);
}

#[test]
fn gc_removes_what_go_plugins_made_for_the_dead() {
    for (plugins, version) in [(Plugins::Debian, "1.0.0"), (Plugins::Sid, "1.1.0")] {
        let node = Node::new(plugins);
        let network = node.network(&chain(version));
        let alive = node.container("alive").with_port(8080, 80);
        node.add(&network, &alive);
        let before = node.world.snapshot();
        let dead = node.container("dead").with_port(8081, 80);
        node.add(&network, &dead);

        let kept = (ContainerId::parse("alive").unwrap(), IfName::parse("eth0").unwrap());
        let report = node.runtime().gc(&network, &ValidSet::of([kept]), GcMode::Collect).unwrap();
        assert!(report.is_clean(), "{report:?}");
        assert_eq!(report.stale.len(), 1, "{report:?}");
        assert!(
            report.stale[0].outcome == StaleOutcome::Removed
                && !dead.is_attached()
                && alive.is_attached()
        );
        assert_eq!(report.plugins.len(), if version == "1.1.0" { 4 } else { 0 });
        node.assert_nothing_left(&before);
        node.del(&network, &alive);
    }
}
