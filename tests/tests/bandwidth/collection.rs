//! Garbage collection, with look-alikes.

use serde_json::{Value, json};

use crate::lab::{HOST_END, Lab, both_ways};

fn gc(lab: &Lab, network: &str, valid: &Value) {
    let config = json!({
        "cniVersion": "1.1.0", "name": network, "type": "bandwidth",
        "cni.dev/valid-attachments": valid,
    });
    lab.world.plugin("bandwidth").command("GC").config(config).run().success();
}

#[test]
fn ifbs_of_dead_attachments_go_and_all_others_stay() {
    let lab = Lab::new();
    lab.add(&both_ways());
    let ifb = lab.ifb();
    for name in ["bwp-user", "bwp0123456789ab", "ifb0"] {
        lab.world.exec(&["ip", "link", "add", name, "type", "ifb"]);
    }
    gc(&lab, "pods", &json!([{"containerID": "c1", "ifname": "eth0"}]));
    gc(&lab, "others", &json!([]));
    lab.call("CHECK", &both_ways()).run().success();
    // Killed before it had its alias.
    lab.world.exec(&["ip", "link", "set", &ifb, "alias", ""]);
    gc(&lab, "others", &json!([]));
    gc(&lab, "pods", &json!([{"containerID": "c1", "ifname": "eth0"}]));
    assert!(lab.ifbs().contains(&ifb));
    gc(&lab, "pods", &json!([{"containerID": "c1", "ifname": "eth1"}]));
    let mut left = lab.ifbs();
    left.sort();
    assert_eq!(left, ["bwp-user", "bwp0123456789ab", "ifb0"]);
    lab.add(&both_ways());
    gc(&lab, "pods", &json!(null));
    assert_eq!(lab.ifbs().len(), 3);
}

/// An ifb of the Go plugin names nobody: it goes when it shapes and nothing is
/// sent to it.
#[test]
fn ifbs_of_the_go_plugin_go_with_evidence_only() {
    let lab = Lab::new();
    let shape = "tbf rate 8mbit burst 100kb latency 25ms";
    for name in ["bwp000000000001", "bwp000000000002", "bwp000000000003"] {
        lab.world.exec(&["ip", "link", "add", name, "up", "type", "ifb"]);
    }
    for name in ["bwp000000000001", "bwp000000000002"] {
        let add = format!("tc qdisc add dev {name} root handle 1: {shape}");
        lab.world.exec(&["sh", "-ec", &add]);
    }
    // The second is in use, the third is just being made.
    lab.world.exec(&["tc", "qdisc", "add", "dev", HOST_END, "ingress"]);
    let filter = format!(
        "tc filter add dev {HOST_END} parent ffff: protocol all prio 1 u32 match u32 0 0 \
         action mirred egress redirect dev bwp000000000002"
    );
    lab.world.exec(&["sh", "-ec", &filter]);
    gc(&lab, "pods", &json!([]));
    let mut left = lab.ifbs();
    left.sort();
    assert_eq!(left, ["bwp000000000002", "bwp000000000003"]);
}
