//! The same requests to our plugins and to Go's 1.9.1: results and the kernel's state
//! are the same, but for what `differences.tsv` lists with a reason each.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use podwire_testkit::World;
use podwire_tests::differential::{HERE, IN_THE_GUEST, Scenario, in_every_version, only_intended};
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

fn of_bridge(name: &str, config: Value) -> Scenario {
    Scenario { name: name.to_owned(), plugin: "bridge", config, args: "", host: &[], refused: None }
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

/// Addresses.
fn addresses() -> Vec<Scenario> {
    let ipam = |name: &str, plugin, version: &str, ipam: Value, args| Scenario {
        name: name.to_owned(),
        plugin,
        args,
        host: &[],
        refused: None,
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
    ]
}

/// None is forgotten, whatever the program comes to hold. `dhcp` has its own
/// comparison, where a server is.
#[test]
fn every_plugin_is_compared() {
    let world = World::new();
    let program = world.path("podwire-cni");
    std::fs::copy(world.plugin_directory().join("bridge"), &program).unwrap();
    let listed = world.exec(&[program.to_str().unwrap(), "--list-plugins"]);
    let mut compared = [&HERE[..], &IN_THE_GUEST, &["dhcp"]].concat();
    compared.sort_unstable();
    let held: Vec<_> = listed.stdout.lines().collect();
    assert_eq!(held, compared);
}

/// A test for each plugin's request in every version.
macro_rules! in_every_version {
    ($($test:ident: $plugin:literal;)*) => {
        $(#[test]
        fn $test() {
            only_intended(&in_every_version($plugin));
        })*

        #[test]
        fn every_plugin_that_needs_no_other_kernel_has_its_test() {
            assert_eq!([$($plugin),*], HERE);
        }
    };
}

in_every_version! {
    bandwidth_is_that_of_go: "bandwidth";
    bridge_is_that_of_go: "bridge";
    firewall_is_that_of_go: "firewall";
    host_device_is_that_of_go: "host-device";
    host_local_is_that_of_go: "host-local";
    loopback_is_that_of_go: "loopback";
    macvlan_is_that_of_go: "macvlan";
    portmap_is_that_of_go: "portmap";
    ptp_is_that_of_go: "ptp";
    sbr_is_that_of_go: "sbr";
    static_is_that_of_go: "static";
    tap_is_that_of_go: "tap";
    tuning_is_that_of_go: "tuning";
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
fn addresses_are_those_of_go() {
    only_intended(&addresses());
}
