//! Further keys of ptp, host-device and tap beside Go's: the same results and the
//! same state but for what `differences.tsv` lists.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use podwire_tests::differential::{Scenario, only_intended};
use podwire_tests::lab::{host_local, with};
use serde_json::{Value, json};

fn network(plugin: &str, version: &str, more: &Value) -> Value {
    with(&json!({"cniVersion": version, "name": "pods", "type": plugin}), more)
}

fn dual_stack() -> Value {
    json!({"ipam": host_local(&["10.1.0.0/24", "fd01::/64"])})
}

fn scenario(
    name: &str,
    plugin: &'static str,
    config: Value,
    host: &'static [&'static str],
) -> Scenario {
    Scenario { name: name.to_owned(), plugin, config, args: "", host, refused: None }
}

#[test]
fn ptp_does_what_it_does_with_go() {
    let keys = with(&dual_stack(), &json!({"mtu": 1400, "dns": {"domain": "x.test"}}));
    only_intended(&[scenario("ptp keys", "ptp", network("ptp", "1.0.0", &keys), &[])]);
}

const DEVICE: &[&str] = &[
    "ip link add hdev address 02:00:00:00:00:d1 type veth peer name far address 02:00:00:00:00:d2",
];

#[test]
fn host_device_does_what_it_does_with_go() {
    let by_address = json!({"hwaddr": "02:00:00:00:00:d1"});
    let by_address = network("host-device", "1.1.0", &by_address);
    only_intended(&[scenario("device by address", "host-device", by_address, DEVICE)]);
}

#[test]
fn tap_does_what_it_does_with_go() {
    let mut scenarios = Vec::new();
    for (name, keys) in [
        ("tap of a user", json!({"owner": 71_000, "mtu": 1300, "mac": "02:00:00:00:00:77"})),
        ("tap of a group", json!({"group": 71_000, "multiQueue": true})),
        // The reference's other way to make one.
        ("tap of both", json!({"owner": 71_000, "group": 71_001, "multiQueue": true})),
    ] {
        scenarios.push(scenario(name, "tap", network("tap", "1.1.0", &keys), &[]));
    }
    only_intended(&scenarios);
}
