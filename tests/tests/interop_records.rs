//! Either runtime reads what the other recorded: Go's libcni and ours, byte for
//! byte.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use podwire_runtime::{Network, Source};
use podwire_spec::id::NetworkName;
use podwire_tests::{Container, Node, Plugins};
use serde_json::{Value, json};

const RECORD: &str = "/var/lib/cni/results/pods-c1-eth0";

/// A node, its network, and a container with arguments of both kinds.
fn start(version: &str) -> (Node, Network, Container) {
    let node = Node::new(Plugins::Ours);
    let network = node.network(&json!({
        "cniVersion": version,
        "name": "pods",
        "note": "<b> & ä, kept as it is",
        "plugins": [{
            "type": "bridge",
            "bridge": "br0",
            "isGateway": true,
            "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"},
        }],
    }));
    let container = node.container("c1").with_arg("IgnoreUnknown", "1").with_arg("K8S_POD", "a<b");
    (node, network, container.with_port(8080, 80))
}

fn mode(path: &str) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// The keys of the outermost object in the order of the text.
fn keys(text: &str) -> Vec<String> {
    let object = podwire_spec::json::Object::parse(text).unwrap();
    object.members().map(|(key, _)| key.to_owned()).collect()
}

#[test]
fn both_runtimes_write_the_same_record() {
    for version in ["0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let records = [false, true].map(|by_go| {
            let (node, network, container) = start(version);
            if by_go {
                node.libcni().on("add", "pods", &container).success();
            } else {
                node.add(&network, &container);
            }
            assert_eq!(mode(RECORD), 0o600, "by_go: {by_go}");
            assert_eq!(mode("/var/lib/cni/results"), 0o700, "by_go: {by_go}");
            let files = std::fs::read_dir("/var/lib/cni/results").unwrap().count();
            assert_eq!(files, 1, "by_go: {by_go}");
            std::fs::read_to_string(RECORD).unwrap()
        });
        let [ours, go] = &records;
        assert_eq!(keys(ours), keys(go));
        let names = [
            "kind",
            "containerId",
            "config",
            "ifName",
            "networkName",
            "netns",
            "cniArgs",
            "capabilityArgs",
            "result",
        ];
        assert_eq!(keys(ours), names);
        // Addresses of hardware and the host end's name differ from run to run; the
        // rest is the same to the byte, the configuration's included.
        let [ours, go] = [ours, go].map(|text| podwire_tests::normal::normalised(text));
        let before_result = |text: &str| text.split("\"result\":").next().unwrap().to_owned();
        assert_eq!(before_result(&ours), before_result(&go));
        let [ours, go] = [&ours, &go].map(|text| serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(ours, go);
    }
}

#[test]
fn our_runtime_lists_checks_and_deletes_what_libcni_recorded() {
    let (node, network, container) = start("1.0.0");
    let before = node.world.snapshot();
    node.libcni().on("add", "pods", &container).success();

    let listing = node.runtime().store().list().unwrap();
    assert!(listing.unreadable.is_empty(), "{:?}", listing.unreadable);
    assert_eq!(listing.attachments.len(), 1);
    let record = &listing.attachments[0].record;
    assert_eq!(record.key, container.attachment().key(network.name()));
    assert_eq!(record.netns, "/run/netns/c1");
    assert_eq!(record.args, container.args);
    let result = record.cni_result().unwrap().unwrap();
    assert_eq!(result.ips[0].address.to_string(), "10.1.0.2/24");

    // By the record alone: the configuration is gone, no argument is repeated.
    std::fs::remove_file("/etc/cni/net.d/pods.conflist").unwrap();
    let name = NetworkName::parse("pods").unwrap();
    let mut bare = container.clone();
    (bare.ports, bare.args) = (Vec::new(), Vec::new());
    let attachment = bare.attachment();
    node.runtime().check(&name, &attachment, Source::Recorded).unwrap();
    container.netns.exec(&["ip", "link", "set", "eth0", "down"]);
    node.runtime().check(&name, &attachment, Source::Recorded).unwrap_err();
    assert!(node.runtime().del(&name, &attachment, Source::Recorded).unwrap().was_recorded);
    assert!(!container.is_attached() && !Path::new(RECORD).exists());
    node.assert_nothing_left(&before);
}

#[test]
fn libcni_reads_checks_and_deletes_what_we_recorded() {
    for version in ["0.4.0", "1.0.0", "1.1.0"] {
        let (node, network, container) = start(version);
        let before = node.world.snapshot();
        let attached = node.add(&network, &container);
        let go = node.libcni();

        let raw: Value = serde_json::from_str(&attached.raw).unwrap();
        assert_eq!(go.on("cached-result", "pods", &container).success().json(), raw);
        let cached = go.on("cached-config", "pods", &container).success().json();
        let file = std::fs::read_to_string("/etc/cni/net.d/pods.conflist").unwrap();
        assert_eq!(cached["config"], file);
        assert_eq!(cached["runtimeConf"]["CapabilityArgs"], container.capabilities());
        assert_eq!(cached["runtimeConf"]["Args"][1], json!(["K8S_POD", "a<b"]));
        let all = go.on("cached-attachments", "pods", &container).success().json();
        assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
        assert_eq!(all[0]["ContainerID"], "c1", "{all}");
        assert_eq!(all[0]["IfName"], "eth0", "{all}");
        assert_eq!(all[0]["NetNS"], "/run/netns/c1", "{all}");

        go.on("check", "pods", &container).success();
        go.on("del", "pods", &container).success();
        assert!(!container.is_attached() && !Path::new(RECORD).exists());
        node.assert_nothing_left(&before);
    }
}

#[test]
fn gc_of_either_runtime_collects_the_others_attachments() {
    let (node, network, container) = start("1.1.0");
    let before = node.world.snapshot();
    node.libcni().on("add", "pods", &container).success();
    let none = podwire_runtime::ValidSet::none();
    let report = node.runtime().gc(&network, &none, podwire_runtime::GcMode::Collect).unwrap();
    assert!(report.is_clean() && report.stale.len() == 1, "{report:?}");
    assert!(!container.is_attached());

    node.add(&network, &container);
    node.libcni().gc("pods", &[]).success();
    assert!(!container.is_attached() && !Path::new(RECORD).exists());
    node.assert_nothing_left(&before);
    // What libcni doesn't know of goes with the next collection of ours.
    let known = Path::new("/var/lib/cni/podwire/sandboxes/pods:c1:eth0");
    assert!(known.exists());
    node.runtime().gc(&network, &none, podwire_runtime::GcMode::Collect).unwrap();
    assert!(!known.exists());
}

#[test]
fn a_record_that_libcni_left_torn_blocks_no_deletion() {
    let (node, network, container) = start("1.0.0");
    let before = node.world.snapshot();
    node.libcni().on("add", "pods", &container).success();
    std::fs::write(RECORD, "").unwrap();
    let attachment = container.attachment();
    node.runtime().del(&network, &attachment, Source::Recorded).unwrap();
    assert!(!container.is_attached() && !Path::new(RECORD).exists());
    // It is kept aside for a person to look at, and hinders nothing.
    let kept = |change: &podwire_testkit::state::Change| change.name().contains("quarantine");
    node.world.snapshot().since(&before).beyond_residue(&["br0"]).without(kept).assert_empty();
    node.add(&network, &container);
    node.libcni().on("del", "pods", &container).success();
}
