//! `ipvlan`, `vlan`, `dummy` and `vrf` beside Go's: the same requests have the same
//! results and leave the kernel in the same state, but for what `differences.tsv`
//! lists; and what Go's 1.1.1 and 1.9.1 attached is taken over.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use podwire_testkit::probe::{ANSWER, ping};
use podwire_testkit::state::Change;
use podwire_testkit::{GoPlugins, Netns, World};
use podwire_tests::differential::{Scenario, attached, in_every_version, only_intended, previous};
use podwire_tests::segment::{Segment, config, link, prepared};
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

#[test]
fn ipvlan_is_that_of_go() {
    only_intended(&in_every_version("ipvlan"));
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
    only_intended(&in_every_version("vlan"));
}

#[test]
fn dummy_is_that_of_go() {
    only_intended(&in_every_version("dummy"));
}

#[test]
fn vrf_is_that_of_go() {
    only_intended(&in_every_version("vrf"));
}

/// The releases, each in its newest version: what Go leaves is the same in all.
/// 1.1.1 has no dummy.
fn releases(plugin: &str) -> Vec<(GoPlugins, &'static str)> {
    let mut releases = vec![(GoPlugins::sid(), "1.1.0")];
    if plugin != "dummy" {
        releases.push((GoPlugins::debian(), "1.0.0"));
    }
    releases
}

/// Go's ADD, then CHECK and DEL by ours.
#[track_caller]
fn is_taken_over(plugin: &str, more: &Value, works: impl Fn(&Netns)) {
    let segment = Segment::new();
    for (go, version) in releases(plugin) {
        let mut config = config(plugin, more);
        config["cniVersion"] = json!(version);
        config["ipam"]["ranges"] = json!([[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd01::/64"}]]);
        segment.is_taken_over(&go, &config, &works);
    }
}

#[test]
fn ipvlan_of_go_is_taken_over() {
    is_taken_over("ipvlan", &json!({"master": "up0"}), |container| {
        ping(container, [10, 1, 0, 254], ANSWER).unwrap();
    });
}

#[test]
fn vlan_of_go_is_taken_over() {
    is_taken_over("vlan", &json!({"master": "up0", "vlanId": 100}), |container| {
        assert_eq!(link(container)["linkinfo"]["info_data"]["id"], 100);
    });
}

#[test]
fn dummy_of_go_is_taken_over() {
    is_taken_over("dummy", &json!({}), |container| {
        assert_eq!(link(container)["linkinfo"]["info_kind"], "dummy");
    });
}

#[test]
fn vrf_of_go_is_taken_over() {
    for (go, version) in releases("vrf") {
        // One thread, one world.
        let life = move || vrf_is_taken_over(&go, version);
        std::thread::spawn(life).join().unwrap();
    }
}

fn vrf_is_taken_over(go: &GoPlugins, version: &str) {
    let world = World::new();
    let container = world.netns("c1");
    attached(&world);
    let before = container.snapshot();
    let config = json!({
        "cniVersion": version, "name": "pods", "type": "vrf", "vrfname": "blue",
        "prevResult": previous(version),
    });
    let ours = |verb| prepared(world.plugin("vrf"), verb, &config, &container).run().success();
    prepared(go.plugin("vrf"), "ADD", &config, &container).run().success();
    assert_eq!(link(&container)["master"], "blue");
    ours("CHECK");
    ours("DEL");
    // Routes and addresses of IPv6 go with a domain; the rule that makes domains
    // work stays with the kernel for as long as the namespace.
    let is_the_kernels = |change: &Change| {
        ["route ", "rule ", "address eth0 fd01:"].iter().any(|name| change.name().starts_with(name))
    };
    let left = container.snapshot().since(&before).without(is_the_kernels);
    left.assert_empty();
    assert!(container.snapshot().of_kind("route").all(|route| route.contains(" main ")));
}
