//! The same requests to our plugins and to Go's 1.9.1: results and the kernel's state
//! are the same, but for what `differences.tsv` lists with a reason each.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use podwire_tests::differential::{Scenario, only_intended};
use serde_json::{Value, json};

/// A bridge network with these keys besides the usual ones.
fn bridge(version: &str, more: &Value) -> Value {
    let mut config = json!({
        "cniVersion": version,
        "name": "pods",
        "type": "bridge",
        "bridge": "br0",
        "isGateway": true,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": "10.1.0.0/24"}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    });
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

fn dual_stack() -> Value {
    json!({
        "type": "host-local",
        "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd01::/64"}]],
        "routes": [
            {"dst": "0.0.0.0/0"}, {"dst": "::/0"}, {"dst": "10.9.0.0/16", "gw": "10.1.0.7"},
        ],
    })
}

fn of_bridge(name: &'static str, config: Value) -> Scenario {
    Scenario { name, plugin: "bridge", config, args: "", host: &[] }
}

/// Versions and shapes of results.
fn versions() -> Vec<Scenario> {
    vec![
        of_bridge("bridge 0.3.1", bridge("0.3.1", &json!({}))),
        of_bridge("bridge 0.4.0", bridge("0.4.0", &json!({"ipam": dual_stack()}))),
        of_bridge("bridge 1.0.0", bridge("1.0.0", &json!({"ipam": dual_stack()}))),
        of_bridge("bridge 1.1.0", bridge("1.1.0", &json!({"ipam": dual_stack()}))),
    ]
}

/// What the keys of bridge do.
fn keys() -> Vec<Scenario> {
    vec![
        of_bridge(
            "default gateway",
            bridge(
                "1.0.0",
                &json!({
                    "isDefaultGateway": true, "mtu": 1400, "dns": {"nameservers": ["10.1.0.1"]},
                    "ipam": {"type": "host-local", "ranges": [
                        [{"subnet": "10.1.0.0/24"}], [{"subnet": "fd01::/64"}]]},
                }),
            ),
        ),
        of_bridge("layer 2 of addresses", bridge("1.0.0", &json!({"isGateway": false}))),
        of_bridge("hairpin", bridge("1.0.0", &json!({"hairpinMode": true}))),
        of_bridge("promiscuous", bridge("1.0.0", &json!({"promiscMode": true}))),
        of_bridge("isolated", bridge("1.0.0", &json!({"portIsolation": true}))),
    ]
}

/// More of them.
fn more_keys() -> Vec<Scenario> {
    vec![
        of_bridge(
            "mac",
            bridge(
                "1.0.0",
                &json!({
                    "capabilities": {"mac": true}, "runtimeConfig": {"mac": "02:00:5e:10:00:01"},
                }),
            ),
        ),
        of_bridge(
            "detection",
            bridge(
                "1.0.0",
                &json!({
                    "enabledad": true, "ipam": dual_stack(),
                }),
            ),
        ),
        of_bridge(
            "masquerade",
            bridge(
                "1.0.0",
                &json!({
                    "ipMasq": true, "ipMasqBackend": "iptables",
                }),
            ),
        ),
        of_bridge(
            "route attributes",
            bridge(
                "1.1.0",
                &json!({"ipam": {
                    "type": "host-local", "subnet": "10.1.0.0/24", "routes": [
                        {"dst": "10.8.0.0/16", "priority": 77, "mtu": 1300, "advmss": 1200},
                        {"dst": "10.7.0.0/16", "gw": "10.1.0.9", "scope": 0},
                    ],
                }}),
            ),
        ),
    ]
}

/// The others.
fn others() -> Vec<Scenario> {
    let ipam = |name, plugin, version: &str, ipam: Value, args| Scenario {
        name,
        plugin,
        args,
        host: &[],
        config: json!({"cniVersion": version, "name": "pods", "type": "bridge", "ipam": ipam}),
    };
    vec![
        ipam(
            "host-local",
            "host-local",
            "1.0.0",
            json!({
                "type": "host-local", "ranges": [
                    [{"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.8", "rangeEnd": "10.1.0.20",
                      "gateway": "10.1.0.254"}],
                    [{"subnet": "fd01::/64"}],
                ],
                "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0", "gw": "fd01::9"}],
            }),
            "",
        ),
        ipam(
            "requested address",
            "host-local",
            "0.4.0",
            json!({
                "type": "host-local", "subnet": "10.1.0.0/24",
            }),
            "IgnoreUnknown=1;IP=10.1.0.77;K8S_POD_NAME=p",
        ),
        ipam(
            "host-local 0.2.0",
            "host-local",
            "0.4.0",
            json!({
                "type": "host-local", "subnet": "10.1.0.0/24", "dataDir": "/run/world/data",
            }),
            "",
        ),
        ipam(
            "static",
            "static",
            "1.0.0",
            json!({
                "type": "static",
                "addresses": [
                    {"address": "10.1.0.9/24", "gateway": "10.1.0.1"}, {"address": "fd01::9/64"},
                ],
                "routes": [{"dst": "0.0.0.0/0"}, {"dst": "10.9.0.0/16", "gw": "10.1.0.7"}],
                "dns": {"nameservers": ["10.1.0.1"], "domain": "example.com"},
            }),
            "",
        ),
        Scenario {
            name: "loopback",
            plugin: "loopback",
            args: "",
            host: &[],
            config: json!({"cniVersion": "1.0.0", "name": "lo", "type": "loopback"}),
        },
    ]
}

#[test]
fn results_and_state_are_those_of_go_in_every_version() {
    only_intended(&versions());
}

#[test]
fn every_key_of_bridge_does_what_it_does_with_go() {
    only_intended(&keys());
}

#[test]
fn every_further_key_of_bridge_does_what_it_does_with_go() {
    only_intended(&more_keys());
}

#[test]
fn addresses_and_loopback_are_those_of_go() {
    only_intended(&others());
}
