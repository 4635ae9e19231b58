//! What `ipvlan`, `vlan` and `dummy` do on any kernel: refuse, release, and name a
//! kernel that lacks their kind. Their packets are in `vm_ipvlan` and so on.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use podwire_testkit::Feature;
use podwire_tests::segment::{Segment, config, is_empty, prepared};
use serde_json::{Value, json};

#[test]
fn a_kernel_that_lacks_the_kind_is_named() {
    let segment = Segment::new();
    let container = segment.container("c1");
    let before = segment.world.snapshot();
    for (plugin, feature) in [
        ("dummy", Feature::Dummy),
        ("ipvlan", Feature::Ipvlan),
        ("macvlan", Feature::Macvlan),
        ("vlan", Feature::Vlan),
    ] {
        let config = config(plugin, &json!({"master": "up0"}));
        let call = |verb| segment.call(verb, &config, &container).run();
        if segment.world.has(feature) {
            call("STATUS").success();
            call("ADD").success();
        } else {
            for (verb, code) in [("STATUS", 50), ("ADD", 999)] {
                let error = call(verb).error(code).to_string();
                assert!(error.contains(&format!("this kernel has no {plugin} links")), "{error}");
                assert!(error.contains("modprobe"), "{error}");
            }
        }
        call("DEL").success();
        assert!(is_empty(&container), "{plugin}");
        assert_eq!(segment.reserved("pods"), [""; 0], "{plugin}");
    }
    segment.world.snapshot().since(&before).beyond_residue(&[]).assert_empty();
}

/// ADD is refused, and nothing is left of it.
#[track_caller]
fn refused(segment: &Segment, plugin: &str, rows: &[(u64, Value, &str)]) {
    let container = segment.container("refused");
    let before = segment.world.snapshot();
    for (code, more, part) in rows {
        let call = segment.call("ADD", &config(plugin, more), &container);
        let error = call.run().error(*code).to_string();
        assert!(error.contains(part), "{plugin} {more}: {error}");
        assert!(is_empty(&container), "{plugin} {more}");
    }
    segment.world.snapshot().since(&before).beyond_residue(&[]).assert_empty();
}

#[test]
fn vlan_refuses_by_name() {
    let segment = Segment::new();
    let too_big = "invalid MTU 1501, must be [0, master MTU(1500)]";
    refused(
        &segment,
        "vlan",
        &[
            (7, json!({"vlanId": 5}), "\\\"master\\\" field is required"),
            (7, json!({"master": "up0", "vlanId": 4095}), "4095"),
            (7, json!({"master": "up0", "vlanId": -1}), "-1"),
            (6, json!({"master": "up0", "vlanId": "5"}), "vlanId"),
            (7, json!({"master": "up0", "mtu": 1501}), too_big),
            (999, json!({"master": "up1"}), "up1"),
            (999, json!({"master": "up0", "linkInContainer": true}), "in the container"),
        ],
    );
    segment.host("ip link set up0 down");
    let container = segment.container("c1");
    let down = config("vlan", &json!({"master": "up0", "vlanId": 5}));
    let error = segment.call("ADD", &down, &container).run().error(999).to_string();
    assert!(error.contains("master up0 is down"), "{error}");
    segment.call("STATUS", &config("vlan", &json!({})), &container).run().error(7);
}

#[test]
fn ipvlan_refuses_by_name() {
    let segment = Segment::new();
    let lacks = "PrevResult lacks a single named interface";
    let previous = |interfaces: Value| json!({"cniVersion": "1.1.0", "interfaces": interfaces});
    let two = previous(json!([{"name": "up0"}, {"name": "up1"}]));
    let wrong = json!({"cniVersion": "1.1.0", "ips": [{"address": "10.1.0.9/24", "interface": 4}]});
    refused(
        &segment,
        "ipvlan",
        &[
            (7, json!({"master": "up0", "mode": "l4"}), "unknown ipvlan mode"),
            (7, json!({"master": "up0", "flag": "x"}), "unknown ipvlan flag"),
            (6, json!({"master": "up0", "mtu": "1500"}), "mtu"),
            (999, json!({"master": "up1"}), "up1"),
            (999, json!({}), "no default route interface found"),
            (999, json!({"linkInContainer": true}), "in the container"),
            (7, json!({"prevResult": previous(json!([]))}), lacks),
            (7, json!({"prevResult": two}), lacks),
            (7, json!({"prevResult": wrong}), "ips[0].interface"),
        ],
    );
}

/// Addresses are what it is for; without any it has nothing to release either.
#[test]
fn dummy_needs_ipam() {
    let segment = Segment::new();
    let without = config("dummy", &json!({"ipam": {}}));
    let container = segment.container("c1");
    for verb in ["ADD", "STATUS"] {
        let error = segment.call(verb, &without, &container).run().error(7).to_string();
        assert!(error.contains("requires an IPAM configuration"), "{error}");
    }
    segment.del(&without, &container);
}

/// B004: whatever is gone of master, default route, namespace and prevResult, the
/// address goes back, and a second DEL succeeds.
#[test]
fn b004_del_releases_the_address_whatever_is_gone() {
    let segment = Segment::new();
    for (plugin, more) in [
        ("ipvlan", json!({"prevResult": {"cniVersion": "1.1.0", "interfaces": 7}})),
        ("ipvlan", json!({"mode": "x"})),
        ("vlan", json!({"master": "up9", "vlanId": 5000})),
        ("vlan", json!({"master": "up9", "linkInContainer": true})),
        ("dummy", json!({"prevResult": {"cniVersion": "7"}})),
    ] {
        for fate in ["there", "gone", "empty", "plain"] {
            let container = segment.container("c1");
            let config = config(plugin, &more);
            // As an ADD of the plugin reserves it.
            let plain = podwire_tests::segment::config(plugin, &json!({}));
            let ipam = segment.world.plugin("host-local");
            prepared(ipam, "ADD", &plain, &container).run().success();
            assert_eq!(segment.reserved("pods").len(), 1);
            let mut del = segment.call("DEL", &config, &container);
            if fate != "there" {
                container.remove();
            }
            match fate {
                "empty" => del = del.env("CNI_NETNS", ""),
                "plain" => std::fs::write(container.path(), "").unwrap(),
                _ => {}
            }
            del.clone().run().success();
            assert_eq!(segment.reserved("pods"), [""; 0], "{plugin} {more} {fate}");
            del.run().success();
            match fate {
                "there" => container.remove(),
                "plain" => std::fs::remove_file(container.path()).unwrap(),
                _ => {}
            }
        }
    }
}
