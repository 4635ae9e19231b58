//! CHECK notices whatever changes the limit.

use serde_json::{Value, json};

use crate::lab::{HOST_END, Lab, both_ways};

/// Breaks a fresh attachment with a shell command and expects these words.
#[track_caller]
fn noticed(keys: &Value, command: &str, words: &[&str]) {
    let lab = Lab::new();
    lab.add(keys);
    lab.call("CHECK", keys).run().success();
    let command = command.replace("IFB", &lab.ifb());
    lab.world.exec(&["sh", "-ec", &command]);
    let error = lab.call("CHECK", keys).run().error(100);
    let text = error.to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{command}: {text}");
    // And an ADD puts it right.
    lab.add(keys);
    lab.call("CHECK", keys).run().success();
}

#[test]
fn a_limit_that_is_gone_is_noticed() {
    let keys = both_ways();
    noticed(&keys, "tc qdisc del dev v0 root", &[HOST_END, "tbf", "noqueue"]);
    noticed(&keys, "tc qdisc del dev IFB root", &["bwp", "tbf"]);
    noticed(&keys, "ip link del IFB", &["redirection", "missing"]);
    noticed(&keys, "ip link set IFB down", &["bwp", "up", "down"]);
}

#[test]
fn a_limit_that_is_changed_is_noticed() {
    let keys = both_ways();
    let change = |device: &str, what: &str| {
        format!("tc qdisc change dev {device} root handle 1: tbf {what}")
    };
    let faster = "rate 9mbit burst 100kb latency 25ms";
    noticed(&keys, &change("v0", faster), &["1000000 bytes/s", "1125000 bytes/s"]);
    noticed(&keys, &change("IFB", faster), &["2000000 bytes/s", "1125000 bytes/s"]);
    noticed(&keys, &change("v0", "rate 8mbit burst 50kb latency 25ms"), &["ticks"]);
}

#[test]
fn a_filter_that_is_gone_or_leads_elsewhere_is_noticed() {
    let keys = both_ways();
    noticed(&keys, "tc qdisc del dev v0 ingress", &["redirection", "missing"]);
    noticed(&keys, "tc filter del dev v0 parent ffff: prio 1", &["redirection", "missing"]);
    let partly = "tc filter del dev v0 parent ffff: prio 1
         tc filter add dev v0 parent ffff: prio 1 protocol ip u32 match ip dst 10.0.0.0/8 \
         action mirred egress redirect dev IFB";
    noticed(&keys, partly, &["redirection", "a part"]);
    let elsewhere = "ip link add far type ifb
         tc filter del dev v0 parent ffff: prio 1
         tc filter add dev v0 parent ffff: prio 1 protocol all u32 match u32 0 0 \
         action mirred egress redirect dev far";
    noticed(&keys, elsewhere, &["redirection", "missing"]);
}

#[test]
fn changes_of_a_tree_are_noticed() {
    let mut keys = both_ways();
    keys["unshapedSubnets"] = json!(["10.9.0.0/16", "fd09::/16"]);
    noticed(&keys, "tc filter del dev v0 parent 1: prio 15", &["filter for fd09::/16"]);
    noticed(&keys, "tc filter del dev IFB parent 1: prio 16", &["filter for 10.9.0.0/16"]);
    let class = "tc class change dev v0 parent 1: classid 1:30 htb rate 9mbit ceil 9mbit";
    noticed(&keys, class, &["1000000 bytes/s", "1125000"]);
    let more = "tc filter add dev v0 parent 1: prio 14 protocol ip u32 match ip src 10.0.0.0/8 \
                classid 1:";
    noticed(&keys, more, &["filters", "expected 2, found 3"]);
    let plain = "tc qdisc del dev v0 root
                 tc qdisc add dev v0 root handle 1: tbf rate 8mbit burst 100kb latency 25ms";
    noticed(&keys, plain, &["htb", "tbf"]);
}
