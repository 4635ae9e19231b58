//! Moving there and back while packets flow.

use std::net::SocketAddr;

use podwire_runtime::Network;
use podwire_testkit::probe::{self, SILENCE};
use podwire_tests::{Outside, Plugins, wait_until};
use serde_json::{Value, json};

use crate::lab::{Lab, Traffic, is_reached, seen_as};

/// A Go release and how it is told to make its rules.
#[derive(Clone, Copy)]
struct Past {
    plugins: Plugins,
    backend: &'static str,
    /// Whether its rules are in legacy xtables.
    is_legacy: bool,
    speaks: &'static str,
}

/// 1.1.1 knows one backend only.
const PASTS: [Past; 5] = [
    Past { plugins: Plugins::Debian, backend: "", is_legacy: false, speaks: "1.0.0" },
    Past { plugins: Plugins::Sid, backend: "iptables", is_legacy: false, speaks: "1.1.0" },
    Past { plugins: Plugins::Sid, backend: "nftables", is_legacy: false, speaks: "1.1.0" },
    Past { plugins: Plugins::Debian, backend: "", is_legacy: true, speaks: "1.0.0" },
    Past { plugins: Plugins::Sid, backend: "iptables", is_legacy: true, speaks: "1.1.0" },
];

impl Past {
    fn network(self) -> Value {
        let mut config = json!({
            "cniVersion": "1.0.0",
            "name": "pods",
            "plugins": [
                {
                    "type": "bridge", "bridge": "br0", "isGateway": true, "ipMasq": true,
                    "hairpinMode": true,
                    "ipam": {
                        "type": "host-local",
                        "ranges": [[{"subnet": "10.1.0.0/24"}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                    },
                },
                {"type": "portmap", "capabilities": {"portMappings": true}},
                {"type": "firewall"},
                {"type": "bandwidth", "ingressRate": 800_000_000, "ingressBurst": 80_000_000,
                 "egressRate": 800_000_000, "egressBurst": 80_000_000},
            ],
        });
        if !self.backend.is_empty() {
            config["plugins"][0]["ipMasqBackend"] = json!(self.backend);
            config["plugins"][1]["backend"] = json!(self.backend);
        }
        config
    }
}

/// A network of every plugin that leaves something on the host.
pub fn pods() -> Value {
    PASTS[1].network()
}

/// Another network on the same bridge, which neither masquerades nor maps.
fn plain(lab: &Lab) -> Network {
    lab.node.network(&json!({
        "cniVersion": "1.0.0",
        "name": "plain",
        "plugins": [{
            "type": "bridge", "bridge": "br0",
            "ipam": {"type": "host-local", "subnet": "10.1.0.0/24",
                     "routes": [{"dst": "0.0.0.0/0"}]},
        }],
    }))
}

/// The other machine answers containers under their own addresses too.
fn outside(lab: &Lab) -> Outside {
    let outside = lab.node.outside();
    let node = outside.node.to_string();
    outside.netns.exec(&["ip", "route", "add", "10.1.0.0/16", "via", &node]);
    outside
}

fn there_and_back(past: Past) {
    let lab = Lab::new(past.plugins);
    if past.is_legacy {
        lab.prefer_legacy();
    }
    let node = &lab.node;
    let network = node.network(&past.network());
    let outside = outside(&lab);
    let old = node.container("old").with_port(8080, 80);
    node.add(&network, &old);
    let traffic = Traffic::start(&outside, &old);

    let check = lab.migrate("--check --output json").success().json();
    assert_eq!(check["attachments"]["pods"], 1, "{check:#}");
    let bridge = check["files"].as_array().unwrap().iter().find(|file| file["name"] == "bridge");
    let bridge = bridge.unwrap();
    assert_eq!((&bridge["is"], &bridge["step"]), (&json!("go"), &json!("replace")));
    assert!(bridge["says"].as_str().unwrap().contains(past.speaks), "{bridge}");
    assert!(check["differences"].as_array().unwrap().len() >= 4, "{check:#}");
    assert_eq!(check["made"], json!({}));
    let uses = json!(["bridge", "host-local", "portmap", "firewall", "bandwidth"]);
    assert_eq!(check["networks"][0]["name"], "pods", "{check:#}");
    for plugin in uses.as_array().unwrap() {
        assert!(check["networks"][0]["plugins"].as_array().unwrap().contains(plugin), "{check:#}");
    }
    assert_eq!(check.get("legacyTables").is_some(), past.is_legacy, "{check:#}");
    let save = node.world.exec(&["iptables-legacy-save"]).stdout;
    assert_eq!(save.contains("8080"), past.is_legacy, "{save}");

    lab.migrate("").success();
    node.check(&network, &old).unwrap();
    let new = node.container("new").with_port(8081, 80);
    node.add(&network, &new);
    is_reached(&outside, &new);
    let address = new.address();
    assert_eq!(seen_as(&outside, &new.netns), outside.node);

    // Back: what Go doesn't know keeps its plugins, and everything new is Go's.
    let back = lab.migrate("--rollback --output json");
    assert_eq!(back.code, 3, "{back:#?}");
    let back = back.json();
    assert_eq!(back["restored"], json!(["host-device", "host-local"]));
    assert_eq!(back["forwarding"], json!(["bandwidth", "bridge", "firewall", "portmap"]));
    is_reached(&outside, &new);
    let newer = node.container("newer").with_port(8082, 80);
    node.add(&network, &newer);
    is_reached(&outside, &newer);
    for container in [&old, &new, &newer] {
        node.check(&network, container).unwrap_or_else(|error| panic!("{}: {error}", container.id));
    }
    assert_eq!(lab.migrate("--rollback").code, 3);
    let check = lab.migrate("--check --output json").success().json();
    assert_eq!(check["made"]["portmap"], 1, "{check:#}");
    assert_eq!(check["made"]["firewall"], 1, "{check:#}");

    // Deleted under the originals' names; the address goes to another network.
    node.del(&network, &new);
    let plain = plain(&lab);
    let heir = node.container("heir").with_arg("IP", &address.to_string());
    let heir = heir.with_arg("IgnoreUnknown", "1");
    node.add(&plain, &heir);
    assert_eq!(heir.address(), address);
    let port = SocketAddr::new(outside.node, 8081);
    assert!(probe::tcp_connect(&outside.netns, port, SILENCE).is_err());
    assert_eq!(seen_as(&outside, &heir.netns), address, "masqueraded for who is gone");
    let rules = lab.rules();
    assert!(!rules.contains("/new/"), "{rules}");

    let is_go_able = past.backend != "nftables";
    if !is_go_able {
        // Beside iptables 1.8.9 the DEL of Go's nftables backend fails of itself.
        traffic.assert_unbroken();
        node.del(&network, &old);
        node.del(&network, &newer);
        node.del(&plain, &heir);
        lab.migrate("--rollback").success();
        lab.assert_as_before();
        lab.migrate("--rollback").success();
        return;
    }
    let text = lab.migrate("--rollback").success().stdout;
    assert!(text.contains("nothing of Podwire is left"), "{text}");
    lab.assert_as_before();
    lab.migrate("--rollback").success();
    traffic.assert_unbroken();
    is_reached(&outside, &old);
    for container in [&old, &newer] {
        node.del(&network, container);
        assert!(!container.is_attached());
    }
    node.del(&plain, &heir);
    wait_until("the end of the namespaces' links", || {
        node.world.ip_json(&["link", "show", "master", "br0"]).as_array().unwrap().is_empty()
    });
    let rules = lab.rules();
    assert!(!rules.contains("10.1.0.") && !rules.contains("podwire"), "{rules}");
}

#[test]
fn a_node_with_go_1_1_1_moves_there_and_back() {
    there_and_back(PASTS[0]);
}

#[test]
fn a_node_with_go_1_9_1_and_iptables_moves_there_and_back() {
    there_and_back(PASTS[1]);
}

#[test]
fn a_node_with_go_1_9_1_and_nftables_moves_there_and_back() {
    there_and_back(PASTS[2]);
}

#[test]
fn a_node_with_go_1_1_1_and_legacy_xtables_moves_there_and_back() {
    there_and_back(PASTS[3]);
}

#[test]
fn a_node_with_go_1_9_1_and_legacy_xtables_moves_there_and_back() {
    there_and_back(PASTS[4]);
}

#[test]
fn what_was_attached_before_is_deleted_by_ours_to_the_last_rule() {
    let lab = Lab::new(Plugins::Sid);
    let node = &lab.node;
    let network = node.network(&PASTS[1].network());
    let outside = outside(&lab);
    let first = node.container("first").with_port(8079, 80);
    node.add(&network, &first);
    node.del(&network, &first);
    let old = node.container("old").with_port(8080, 80);
    node.add(&network, &old);
    let traffic = Traffic::start(&outside, &old);
    lab.migrate("").success();
    traffic.assert_unbroken();
    let address = old.address().to_string();
    node.del(&network, &old);
    assert!(!old.is_attached());
    let rules = lab.rules();
    assert!(!rules.contains(&address) && !rules.contains("\"old\""), "{rules}");
    // Nothing of ours was made: all is back at once.
    lab.migrate("--rollback").success();
    lab.assert_as_before();
}
