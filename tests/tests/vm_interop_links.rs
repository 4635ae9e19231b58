//! The same requests to our `ipvlan`, `vlan` and `dummy` and to Go's 1.9.1: results
//! and the kernel's state are the same, but for what `differences.tsv` lists.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use podwire_tests::differential::{Scenario, only_intended};
use podwire_tests::segment::config;
use serde_json::{Value, json};

fn scenario(name: &str, plugin: &'static str, more: &Value) -> Scenario {
    let host =
        &["ip link add up0 type veth peer name far0", "ip link set up0 up", "ip link set far0 up"];
    let mut config = config(plugin, &json!({"master": "up0"}));
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    Scenario { name: name.to_owned(), plugin, config, args: "", host, refused: None }
}

fn dual_stack() -> Value {
    json!({
        "type": "host-local",
        "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd01::/64"}]],
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}],
    })
}

#[test]
fn ipvlan_is_that_of_go() {
    let more = json!({"ipam": dual_stack(), "mtu": 1400});
    only_intended(&[scenario("ipvlan 1.1.0", "ipvlan", &more)]);
}

#[test]
fn ipvlan_behind_another_plugin_is_that_of_go() {
    let previous = json!({
        "cniVersion": "0.4.0", "interfaces": [{"name": "up0"}],
        "ips": [{"version": "4", "address": "10.1.0.9/24", "gateway": "10.1.0.1"}],
        "routes": [{"dst": "10.9.0.0/16"}],
    });
    let more = json!({"cniVersion": "0.4.0", "mode": "l3s", "ipam": {}, "prevResult": previous});
    only_intended(&[scenario("ipvlan 0.4.0 chained", "ipvlan", &more)]);
}

#[test]
fn vlan_is_that_of_go() {
    let more = json!({"ipam": dual_stack(), "vlanId": 4094, "mtu": 1400});
    only_intended(&[scenario("vlan 1.1.0", "vlan", &more)]);
}

#[test]
fn dummy_is_that_of_go() {
    only_intended(&[scenario("dummy 1.1.0", "dummy", &json!({"ipam": dual_stack()}))]);
}
