//! What a port carries after an ADD, and what CHECK says when that changes.

use serde_json::{Value, json};

use crate::lab::{Lab, host_end, network, with};

/// B103: a port in a VLAN carries that one, tagged ones by request, and the
/// default VLAN only when it is kept.
#[test]
fn b103_a_port_carries_what_was_asked_and_nothing_else() {
    let lab = Lab::new();
    let trunk = json!([{"id": 200}, {"minID": 210, "maxID": 212}, {"id": 211}]);
    let cases: [(&str, Value, &[&str]); 5] = [
        ("c1", json!({"vlan": 100}), &["100 untagged pvid"]),
        (
            "c2",
            json!({"vlan": 100, "preserveDefaultVlan": true}),
            &["1 untagged", "100 untagged pvid"],
        ),
        ("c3", json!({"vlanTrunk": trunk}), &["1 untagged pvid", "200", "210", "211", "212"]),
        (
            "c4",
            json!({"vlan": 100, "vlanTrunk": trunk}),
            &["100 untagged pvid", "200", "210", "211", "212"],
        ),
        ("c5", json!({"vlan": 1}), &["1 untagged pvid"]),
    ];
    for (name, keys, expected) in cases {
        let netns = lab.world.netns(name);
        let config = network("10.1.0.2/24", &keys);
        let result = lab.add(&netns, &config);
        assert_eq!(lab.vlans(host_end(&result)), expected, "{keys}");
        lab.with_result("CHECK", &netns, &config, &result).run().success();
        lab.with_result("DEL", &netns, &config, &result).run().success();
    }
    // A whole trunk goes in a few messages.
    let netns = lab.world.netns("c6");
    let config = network("10.1.0.2/24", &json!({"vlanTrunk": [{"minID": 1, "maxID": 4094}]}));
    let result = lab.add(&netns, &config);
    assert_eq!(lab.vlans(host_end(&result)).len(), 4094);
    lab.with_result("CHECK", &netns, &config, &result).run().success();
}

/// B103: without a VLAN nothing is filtered, as on kernels that can't.
#[test]
fn b103_without_vlan_the_bridge_does_not_filter() {
    let lab = Lab::new();
    let result = lab.add(&lab.world.netns("c1"), &network("10.1.0.2/24", &json!({})));
    let bridge = lab.world.ip_json(&["-d", "link", "show", "br0"]);
    assert_eq!(bridge[0]["linkinfo"]["info_data"]["vlan_filtering"], 0);
    assert_eq!(lab.vlans(host_end(&result)), ["1 untagged pvid"]);
}

#[test]
fn check_names_a_vlan_that_is_missing_and_one_too_many() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let config = network("10.1.0.2/24", &json!({"vlan": 100, "vlanTrunk": [{"id": 200}]}));
    let result = lab.add(&netns, &config);
    let port = host_end(&result);
    for (change, words) in [(["del", "200"], "VLAN 200"), (["add", "7"], "VLAN 7")] {
        let [verb, id] = change;
        lab.world.exec(&["bridge", "vlan", verb, "dev", port, "vid", id]);
        let error = lab.with_result("CHECK", &netns, &config, &result).run().error(100);
        assert!(error.to_string().contains(words), "{error}");
        let back = if verb == "add" { "del" } else { "add" };
        lab.world.exec(&["bridge", "vlan", back, "dev", port, "vid", id]);
        lab.with_result("CHECK", &netns, &config, &result).run().success();
    }
}

/// The kernel's default VLAN may be another than 1, or none.
#[test]
fn a_bridge_with_another_default_vlan_loses_that_one() {
    let lab = Lab::new();
    lab.world.exec(&[
        "ip",
        "link",
        "add",
        "br0",
        "type",
        "bridge",
        "vlan_filtering",
        "1",
        "vlan_default_pvid",
        "30",
    ]);
    let config = network("10.1.0.2/24", &json!({"vlan": 100}));
    let result = lab.add(&lab.world.netns("c1"), &config);
    assert_eq!(lab.vlans(host_end(&result)), ["100 untagged pvid"]);
    let config = with(&config, &json!({"preserveDefaultVlan": true}));
    let result = lab.add(&lab.world.netns("c2"), &config);
    assert_eq!(lab.vlans(host_end(&result)), ["30 untagged", "100 untagged pvid"]);
}

/// A bridge that somebody made without filtering would let every frame pass.
#[test]
fn a_bridge_that_does_not_filter_is_refused_and_left_alone() {
    let lab = Lab::new();
    lab.world.exec(&["ip", "link", "add", "br0", "type", "bridge"]);
    let before = lab.world.snapshot();
    let netns = lab.world.netns("c1");
    let config = network("10.1.0.2/24", &json!({"vlan": 100}));
    let output = lab.call("ADD", &netns, &config).run().failure();
    let error = output.json();
    assert!(error.to_string().contains("br0"), "{error}");
    assert!(error.to_string().to_lowercase().contains("filter"), "{error}");
    lab.world.snapshot().since(&before).beyond_residue(&[]).assert_empty();
}
