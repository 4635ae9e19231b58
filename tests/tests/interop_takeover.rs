//! Our plugins replace the Go plugins on a running node: what those attached is
//! checked, deleted and collected, to the last rule.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::net::SocketAddr;

use podwire_runtime::{GcMode, ValidSet};
use podwire_spec::id::{ContainerId, IfName};
use podwire_testkit::HostState;
use podwire_testkit::probe::{self, ANSWER, SILENCE, TcpEcho};
use podwire_testkit::state::Change;
use podwire_tests::{Container, Node, Outside, Plugins, wait_until};
use serde_json::{Value, json};

/// A Go release and how it is told to make its rules.
#[derive(Debug, Clone, Copy)]
struct Past {
    plugins: Plugins,
    version: &'static str,
    backend: &'static str,
    dual_stack: bool,
}

/// 1.1.1 knows one backend only.
const PASTS: [Past; 6] = [
    Past { plugins: Plugins::Debian, version: "0.4.0", backend: "", dual_stack: false },
    Past { plugins: Plugins::Debian, version: "1.0.0", backend: "", dual_stack: true },
    Past { plugins: Plugins::Sid, version: "1.0.0", backend: "iptables", dual_stack: false },
    Past { plugins: Plugins::Sid, version: "1.1.0", backend: "iptables", dual_stack: true },
    Past { plugins: Plugins::Sid, version: "1.0.0", backend: "nftables", dual_stack: false },
    Past { plugins: Plugins::Sid, version: "1.1.0", backend: "nftables", dual_stack: true },
];

impl Past {
    fn config(self) -> Value {
        let mut ranges = vec![json!([{"subnet": "10.1.0.0/24"}])];
        let mut routes = vec![json!({"dst": "0.0.0.0/0"})];
        if self.dual_stack {
            ranges.push(json!([{"subnet": "fd01::/64"}]));
            routes.push(json!({"dst": "::/0"}));
        }
        let mut config = json!({
            "cniVersion": self.version,
            "name": "pods",
            "plugins": [
                {
                    "type": "bridge",
                    "bridge": "br0",
                    "isGateway": true,
                    "ipMasq": true,
                    "hairpinMode": true,
                    "ipam": {"type": "host-local", "ranges": ranges, "routes": routes},
                },
                {"type": "portmap", "capabilities": {"portMappings": true}},
            ],
        });
        if !self.backend.is_empty() {
            config["plugins"][0]["ipMasqBackend"] = json!(self.backend);
            config["plugins"][1]["backend"] = json!(self.backend);
        }
        config
    }
}

/// A host port reaches the container, and its own connections are masqueraded.
#[track_caller]
fn packets_flow(outside: &Outside, container: &Container) {
    let address = container.addresses()[0];
    let (host_port, port) = container.ports[0];
    let server = TcpEcho::start(&container.netns, SocketAddr::new(address, port));
    let mapped = SocketAddr::new(outside.node, host_port);
    probe::tcp_connect(&outside.netns, mapped, ANSWER).unwrap().exchange(b"hello").unwrap();
    drop(server);
    let listener = TcpEcho::start(&outside.netns, SocketAddr::new(outside.address, 0));
    let leaving = probe::tcp_connect(&container.netns, listener.address(), ANSWER).unwrap();
    assert_eq!(leaving.seen_as.ip(), outside.node);
}

/// A node on which the Go plugins once had a container, so that what they make once
/// and keep is there. Not for their nftables backend: beside iptables 1.8.9 its DEL
/// fails, since it doesn't understand what that says of chains that aren't there.
fn used_node(past: Past) -> (Node, podwire_runtime::Network, Outside) {
    let node = Node::new(past.plugins);
    let outside = node.outside();
    let network = node.network(&past.config());
    if past.backend == "nftables" {
        return (node, network, outside);
    }
    let first = node.container("first").with_port(8079, 80);
    node.add(&network, &first);
    node.del(&network, &first);
    (node, network, outside)
}

/// Panics if more is left than what the project documents and what the Go plugins
/// keep: the rules of their base chains, which name no container.
#[track_caller]
fn assert_nothing_left(node: &Node, before: &HostState) {
    let is_kept_by_go =
        |change: &Change| KEPT_BY_GO.iter().any(|kept| change.name().starts_with(kept));
    node.left(before).without(is_kept_by_go).assert_empty();
}

/// Rules and, emptied, chains of the Go plugins' nftables backend that are there
/// once, whoever is attached.
const KEPT_BY_GO: [&str; 10] = [
    "nft chain inet cni_plugins_masquerade",
    "nft chain ip cni_hostport",
    "nft chain ip6 cni_hostport",
    "nft rule inet cni_plugins_masquerade postrouting",
    "nft rule ip cni_hostport prerouting",
    "nft rule ip cni_hostport output",
    "nft rule ip cni_hostport hostports_all",
    "nft rule ip6 cni_hostport prerouting",
    "nft rule ip6 cni_hostport output",
    "nft rule ip6 cni_hostport hostports_all",
];

/// The whole life of an attachment across the replacement.
fn attached_before_and_deleted_after(past: Past) {
    let (node, network, outside) = used_node(past);
    let before = node.world.snapshot();
    let (left, right) =
        (node.container("c1").with_port(8080, 80), node.container("c2").with_port(8081, 80));
    node.add(&network, &left);
    // The same by Go's runtime: the records are alike.
    node.libcni().on("add", "pods", &right).success();
    packets_flow(&outside, &left);

    node.install(Plugins::Ours);
    for container in [&left, &right] {
        node.check(&network, container).unwrap_or_else(|error| panic!("{past:?}: {error}"));
        packets_flow(&outside, container);
    }
    // A new container joins those of before.
    let new = node.container("c3").with_port(8082, 80);
    node.add(&network, &new);
    for address in left.addresses() {
        probe::ping(&new.netns, address, ANSWER).unwrap();
    }
    packets_flow(&outside, &new);
    packets_flow(&outside, &left);

    node.del(&network, &left);
    let port = SocketAddr::new(outside.node, 8080);
    assert!(probe::tcp_connect(&outside.netns, port, SILENCE).is_err());
    packets_flow(&outside, &right);
    packets_flow(&outside, &new);
    // The second one's namespace goes first.
    right.netns.remove();
    node.del(&network, &right);
    packets_flow(&outside, &new);
    node.del(&network, &new);
    wait_until("the end of the namespace's links", || {
        node.world.ip_json(&["link", "show", "master", "br0"]).as_array().unwrap().is_empty()
    });
    assert_nothing_left(&node, &before);
}

#[test]
fn attachments_of_go_1_1_1_are_checked_and_deleted() {
    attached_before_and_deleted_after(PASTS[0]);
}

#[test]
fn dual_stack_attachments_of_go_1_1_1_are_checked_and_deleted() {
    attached_before_and_deleted_after(PASTS[1]);
}

#[test]
fn attachments_of_go_1_9_1_by_iptables_are_checked_and_deleted() {
    attached_before_and_deleted_after(PASTS[2]);
}

#[test]
fn dual_stack_attachments_of_go_1_9_1_by_iptables_are_checked_and_deleted() {
    attached_before_and_deleted_after(PASTS[3]);
}

#[test]
fn attachments_of_go_1_9_1_by_nftables_are_checked_and_deleted() {
    attached_before_and_deleted_after(PASTS[4]);
}

#[test]
fn dual_stack_attachments_of_go_1_9_1_by_nftables_are_checked_and_deleted() {
    attached_before_and_deleted_after(PASTS[5]);
}

/// GC with the dead containers recorded, their namespaces alive or not.
fn recorded_and_collected_after(past: Past) {
    let (node, network, outside) = used_node(past);
    let alive = node.container("alive").with_port(8080, 80);
    node.add(&network, &alive);
    let before = node.world.snapshot();
    let dead = node.container("dead").with_port(8081, 80);
    node.add(&network, &dead);
    let gone = node.container("gone").with_port(8082, 80);
    node.add(&network, &gone);
    gone.netns.remove();

    node.install(Plugins::Ours);
    let kept = (ContainerId::parse("alive").unwrap(), IfName::parse("eth0").unwrap());
    let report = node.runtime().gc(&network, &ValidSet::of([kept]), GcMode::Collect).unwrap();
    assert!(report.is_clean(), "{past:?}: {report:?}");
    assert_eq!(report.stale.len(), 2);
    assert!(!dead.is_attached());
    wait_until("the end of the namespace's links", || {
        node.world.ip_json(&["link", "show", "master", "br0"]).as_array().unwrap().len() == 1
    });
    assert_nothing_left(&node, &before);
    node.check(&network, &alive).unwrap();
    packets_flow(&outside, &alive);
}

#[test]
fn gc_collects_recorded_attachments_of_go_1_1_1() {
    recorded_and_collected_after(PASTS[0]);
}

#[test]
fn gc_collects_recorded_attachments_of_go_1_9_1() {
    recorded_and_collected_after(PASTS[3]);
    recorded_and_collected_after(PASTS[5]);
}

/// GC by the plugins alone: the runtime lost its records with the containers.
fn forgotten_and_collected_after(past: Past) {
    let (node, network, outside) = used_node(past);
    let alive = node.container("alive").with_port(8080, 80);
    node.add(&network, &alive);
    let before = node.world.snapshot();
    let gone = node.container("gone").with_port(8081, 80);
    node.add(&network, &gone);
    gone.netns.remove();
    std::fs::remove_file("/var/lib/cni/results/pods-gone-eth0").unwrap();

    node.install(Plugins::Ours);
    let mut config = past.config();
    config["cniVersion"] = json!("1.1.0");
    let network_now = node.network(&config);
    let kept = (ContainerId::parse("alive").unwrap(), IfName::parse("eth0").unwrap());
    let report = node.runtime().gc(&network_now, &ValidSet::of([kept]), GcMode::Collect).unwrap();
    assert!(report.is_clean(), "{past:?}: {report:?}");
    wait_until("the end of the namespace's links", || {
        node.world.ip_json(&["link", "show", "master", "br0"]).as_array().unwrap().len() == 1
    });
    // The nftables backend of portmap marks its rules with the container alone: of
    // which network they are can't be told, so they wait for the container's DEL.
    let cannot_be_told =
        |change: &Change| past.backend == "nftables" && change.name().contains(" cni_hostport ");
    node.left(&before).without(cannot_be_told).assert_empty();
    packets_flow(&outside, &alive);
    node.check(&network, &alive).unwrap();
}

#[test]
fn gc_collects_forgotten_attachments_of_go_1_1_1() {
    forgotten_and_collected_after(PASTS[0]);
}

#[test]
fn gc_collects_forgotten_attachments_of_go_1_9_1() {
    forgotten_and_collected_after(PASTS[3]);
    forgotten_and_collected_after(PASTS[5]);
}

#[test]
fn check_of_a_go_attachment_still_finds_what_is_broken() {
    let (node, network, _outside) = used_node(PASTS[3]);
    let container = node.container("c1").with_port(8080, 80);
    node.add(&network, &container);
    node.install(Plugins::Ours);
    node.check(&network, &container).unwrap();
    node.world.exec(&["iptables", "-t", "nat", "-F", "CNI-HOSTPORT-DNAT"]);
    let error = node.check(&network, &container).unwrap_err().to_string();
    assert!(error.contains("portmap"), "{error}");
    node.world.exec(&["nft", "flush", "chain", "ip", "nat", "POSTROUTING"]);
    let error = node.check(&network, &container).unwrap_err().to_string();
    assert!(error.contains("bridge"), "{error}");
    node.del(&network, &container);
    assert!(!container.is_attached());
}

#[test]
fn going_back_to_go_deletes_what_it_knows_and_our_gc_the_rest() {
    for past in [PASTS[1], PASTS[3]] {
        // Without masquerade: with it the Go bridge's DEL fails at its very end beside
        // iptables 1.8.9, since the chain it would delete was never there.
        let (node, _, _outside) = used_node(past);
        let mut config = past.config();
        config["plugins"][0]["ipMasq"] = json!(false);
        let network = node.network(&config);
        let before = node.world.snapshot();
        node.install(Plugins::Ours);
        let container = node.container("c1").with_port(8080, 80);
        node.add(&network, &container);

        // Their bridge finds ours as it must be; their portmap doesn't know our rules.
        node.install(past.plugins);
        let error = node.check(&network, &container).unwrap_err().to_string();
        assert!(error.contains("portmap"), "{error}");
        node.del(&network, &container);
        assert!(!container.is_attached());
        let is_rule = |change: &Change| change.name().starts_with("nft ");
        node.left(&before).without(is_rule).assert_empty();

        node.install(Plugins::Ours);
        config["cniVersion"] = json!("1.1.0");
        let network_now = node.network(&config);
        let report = node.runtime().gc(&network_now, &ValidSet::none(), GcMode::Collect).unwrap();
        assert!(report.is_clean(), "{report:?}");
        assert_nothing_left(&node, &before);
    }
}
