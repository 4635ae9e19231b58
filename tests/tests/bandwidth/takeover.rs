//! What the Go plugins made: checked and removed by ours.

use podwire_plugin::shorten;
use podwire_testkit::GoPlugins;
use serde_json::{Value, json};

use crate::lab::{HOST_END, Lab, both_ways};

fn go_name() -> String {
    format!("bwp{}", shorten(&["pods", "c1"], 12))
}

#[track_caller]
fn attached_by_go(lab: &Lab, go: &GoPlugins, keys: &Value) -> Value {
    let added = lab.with(go.plugin("bandwidth"), "ADD", keys).run().success().json();
    assert_eq!(lab.ifb(), go_name());
    added
}

#[test]
fn what_either_release_made_is_checked_and_removed() {
    for go in [GoPlugins::debian(), GoPlugins::sid()] {
        let lab = Lab::new();
        let before = lab.snapshot();
        for (ingress_burst, rate) in [(800_000_u64, 8_000_000_u64), (2_147_483_647, 1_234_567)] {
            let mut keys = json!({"runtimeConfig": {"bandwidth": {
                "ingressRate": rate, "ingressBurst": ingress_burst,
                "egressRate": 16_000_000, "egressBurst": 800_001,
            }}});
            let added = attached_by_go(&lab, &go, &keys);
            let recorded = keys.clone();
            keys["prevResult"] = added;
            lab.call("CHECK", &keys).run().success();
            lab.world.exec(&["tc", "qdisc", "del", "dev", HOST_END, "root"]);
            lab.call("CHECK", &keys).run().error(100);
            // Without prevResult: the filter is the evidence.
            let mut keys = recorded;
            keys["prevResult"] = json!(null);
            lab.call("DEL", &keys).run().success();
            lab.assert_unchanged(&before);
        }
    }
}

#[test]
fn what_go_made_goes_when_the_namespace_is_gone() {
    let lab = Lab::new();
    attached_by_go(&lab, &GoPlugins::sid(), &both_ways());
    lab.container.exec(&["ip", "link", "del", "eth0"]);
    lab.call("DEL", &json!({"prevResult": null})).without_env("CNI_NETNS").run().success();
    assert!(lab.ifbs().is_empty());
}

#[test]
fn a_second_add_replaces_what_go_made() {
    let lab = Lab::new();
    let before = lab.snapshot();
    attached_by_go(&lab, &GoPlugins::sid(), &both_ways());
    lab.add(&both_ways());
    assert_ne!(lab.ifb(), go_name());
    assert_eq!(lab.filters(HOST_END).len(), 1);
    lab.del(&both_ways());
    lab.assert_unchanged(&before);
}

/// Two interfaces of a container share the name that Go gives.
#[test]
fn the_ifb_of_another_interface_stays() {
    let lab = Lab::new();
    attached_by_go(&lab, &GoPlugins::sid(), &both_ways());
    lab.pair("eth1", "v1", 2);
    lab.call("ADD", &both_ways()).ifname("eth1").run().success();
    let mut keys = both_ways();
    keys["prevResult"] = json!(null);
    lab.call("DEL", &keys).ifname("eth1").run().success();
    assert_eq!(lab.ifb(), go_name());
    assert_eq!(lab.filters(HOST_END).len(), 1);
}

/// The tree of release 1.5, of which no package is left: made with `tc`.
#[test]
fn a_tree_of_release_1_5_is_checked_and_removed() {
    let lab = Lab::new();
    let before = lab.snapshot();
    let name = go_name();
    let tree = |device: &str, rate: &str, default: &str| {
        format!(
            "tc qdisc add dev {device} root handle 1: htb default {default}
             tc class add dev {device} parent 1: classid 1:30 htb rate {rate} ceil 32mbit
             tc class add dev {device} parent 1: classid 1:1 htb rate 100gbit ceil 100gbit
             tc filter add dev {device} parent 1: prio 16 protocol ip u32 \
             match ip dst 10.0.0.0/8 classid 1:1"
        )
    };
    let script = format!(
        "{}
         ip link add {name} up type ifb
         tc qdisc add dev {HOST_END} ingress
         tc filter add dev {HOST_END} parent ffff: protocol all prio 1 u32 match u32 0 0 \
         action mirred egress redirect dev {name}
         {}",
        tree(HOST_END, "8mbit", "30"),
        tree(&name, "16mbit", "30")
    );
    lab.world.exec(&["sh", "-ec", &script]);
    let mut keys = both_ways();
    keys["unshapedSubnets"] = json!(["10.0.0.0/8"]);
    lab.call("CHECK", &keys).run().success();
    lab.world.exec(&["tc", "filter", "del", "dev", &name, "parent", "1:"]);
    lab.call("CHECK", &keys).run().error(100);
    lab.del(&keys);
    lab.assert_unchanged(&before);
}
