//! `vlan`: tags on the wire, and its life.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use podwire_testkit::Feature;
use podwire_testkit::probe::{ANSWER, SILENCE, ping};
use podwire_tests::segment::{Segment, config, is_empty, link, run};
use serde_json::json;

/// A segment on a kernel that has the kind, with VLAN 100 of the machine outside at
/// 10.1.0.253.
fn segment() -> Segment {
    let segment = Segment::new();
    segment.world.needs(Feature::Vlan);
    run(&segment.outside, "ip addr flush dev eth0");
    run(&segment.outside, "ip link add link eth0 name eth0.100 type vlan id 100");
    run(&segment.outside, "ip addr add 10.1.0.253/24 dev eth0.100");
    run(&segment.outside, "ip link set eth0.100 up");
    segment
}

/// A device has each VLAN once, whoever has it.
#[test]
fn frames_are_tagged_and_a_vlan_is_there_once() {
    let segment = segment();
    let (right, wrong) = (segment.container("right"), segment.container("wrong"));
    let config_100 = config("vlan", &json!({"master": "up0", "vlanId": 100}));
    let checked = segment.add(&config_100, &right);
    let data = link(&right)["linkinfo"]["info_data"].clone();
    assert_eq!((&data["id"], &data["protocol"]), (&json!(100), &json!("802.1Q")));
    let uplink = segment.world.ip_json(&["link", "show", "dev", "up0"]);
    assert_eq!(checked["prevResult"]["interfaces"][0]["mac"], uplink[0]["address"]);
    ping(&right, [10, 1, 0, 253], ANSWER).unwrap();

    let error = segment.call("ADD", &config_100, &wrong).run().error(999).to_string();
    assert!(error.contains("VLAN 100 of up0 exists already"), "{error}");
    assert!(is_empty(&wrong));
    assert_eq!(segment.reserved("pods"), ["10.1.0.2"]);
    segment.del(&config_100, &wrong);
    segment.check(&checked, &right).unwrap();
    // STATUS speaks of a master that isn't there.
    let absent = config("vlan", &json!({"master": "absent0", "vlanId": 7}));
    let error = segment.call("STATUS", &absent, &wrong).run().error(50);
    assert!(error.to_string().contains("absent0"), "{error}");

    let other = config("vlan", &json!({"master": "up0", "vlanId": 200, "name": "other"}));
    segment.add(&other, &wrong);
    ping(&wrong, [10, 1, 0, 253], SILENCE).unwrap_err();
    segment.del(&other, &wrong);
    // The bounds; 0 where none is set.
    for id in [json!(0), json!(4094), json!(null)] {
        let config = config("vlan", &json!({"master": "up0", "vlanId": id, "ipam": {}}));
        segment.add(&config, &wrong);
        let there = link(&wrong)["linkinfo"]["info_data"]["id"].clone();
        assert_eq!(there, json!(id.as_u64().unwrap_or(0)));
        segment.del(&config, &wrong);
        assert!(is_empty(&wrong));
    }
}

#[test]
fn a_whole_life_and_what_check_finds() {
    let segment = segment();
    let container = segment.container("c1");
    let before = (segment.world.snapshot(), container.snapshot());
    for version in ["0.3.1", "1.1.0"] {
        let more = json!({"master": "up0", "vlanId": 100, "mtu": 1400, "cniVersion": version});
        let config = config("vlan", &more);
        let checked = segment.add(&config, &container);
        ping(&container, [10, 1, 0, 253], ANSWER).unwrap();
        if version >= "0.4.0" {
            segment.check(&checked, &container).unwrap();
            for (key, value, part) in [
                ("vlanId", json!(7), "VLAN: expected 7, found 100"),
                ("mtu", json!(1300), "MTU: expected 1300, found 1400"),
                ("master", json!("up1"), "master up1"),
            ] {
                let mut other = checked.clone();
                other[key] = value;
                let error = segment.check(&other, &container).unwrap_err();
                assert!(error.contains(part), "{error}");
            }
            run(&container, "ip route del default");
            let error = segment.check(&checked, &container).unwrap_err();
            assert!(error.contains("0.0.0.0/0"), "{error}");
            segment.del(&checked, &container);
        }
        segment.del(&config, &container);
        assert!(is_empty(&container) && segment.reserved("pods").is_empty(), "{version}");
    }
    let mut lost = config("vlan", &json!({"master": "up0", "vlanId": 100}));
    lost["ipam"]["routes"] = json!([{"dst": "10.9.0.0/16", "gw": "10.200.0.1", "scope": 253}]);
    segment.call("ADD", &lost, &container).run().failure();
    segment.world.snapshot().since(&before.0).beyond_residue(&[]).assert_empty();
    container.snapshot().since(&before.1).assert_empty();
}

/// B004: Go's DEL fails for ever when the master is gone, and keeps the address.
#[test]
fn b004_del_when_the_master_is_gone_and_a_master_inside() {
    let segment = segment();
    segment.host("ip link add up1 type veth peer name far1");
    segment.host("ip link set up1 up");
    let config_100 = config("vlan", &json!({"master": "up1", "vlanId": 100}));
    let container = segment.container("c1");
    let checked = segment.add(&config_100, &container);
    segment.host("ip link del up1");
    assert!(is_empty(&container));
    segment.del(&checked, &container);
    assert_eq!(segment.reserved("pods"), [""; 0]);
    segment.del(&checked, &container);

    segment.host("ip link set up0 netns c1");
    run(&container, "ip link set up0 up");
    let more = json!({"master": "up0", "vlanId": 100, "linkInContainer": true});
    let inside = config("vlan", &more);
    let checked = segment.add(&inside, &container);
    ping(&container, [10, 1, 0, 253], ANSWER).unwrap();
    segment.check(&checked, &container).unwrap();
    // Its master goes with the namespace.
    container.remove();
    segment.del(&checked, &container);
    assert_eq!(segment.reserved("pods"), [""; 0]);
}
