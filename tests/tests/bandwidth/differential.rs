//! The same requests to ours and to Go's.

use podwire_tests::differential::{Scenario, only_intended};
use serde_json::{Value, json};

/// A pair, up on the host.
const PAIR: [&str; 2] =
    ["ip link add v0 mtu 1400 type veth peer name eth0 netns c1", "ip link set v0 up"];

fn scenario(name: &str, version: &str, more: &Value) -> Scenario {
    let mut config = json!({
        "cniVersion": version, "name": "pods", "type": "bandwidth",
        "prevResult": {
            "cniVersion": version,
            "interfaces": [{"name": "v0"}, {"name": "eth0", "sandbox": "/run/netns/c1"}],
            "ips": [{"address": "10.1.0.2/24", "interface": 1}],
        },
    });
    if version.starts_with("0.") {
        config["prevResult"]["ips"][0]["version"] = json!("4");
    }
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    Scenario {
        name: name.to_owned(),
        plugin: "bandwidth",
        config,
        args: "",
        host: &PAIR,
        refused: None,
    }
}

#[test]
fn results_and_state_are_those_of_go() {
    let capability = json!({"runtimeConfig": {"bandwidth": {
        "ingressRate": 80_000_000_000_u64, "ingressBurst": 8_000_000_000_u64,
        "egressRate": 1_000_000, "egressBurst": 100_000,
    }}});
    only_intended(&[
        scenario("bandwidth by capability", "1.0.0", &capability),
        scenario("no limits", "1.0.0", &json!({})),
        scenario(
            "bandwidth to the container",
            "1.0.0",
            &json!({"ingressRate": 8_000_000, "ingressBurst": 800_000}),
        ),
    ]);
}
