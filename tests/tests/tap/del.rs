//! DEL: idempotent, without a namespace, and never a stranger's.

use podwire_tests::lab::{Lab, ip, links, reservations, with, with_previous};
use serde_json::json;

use crate::{addressed, plain};

/// B004: each way to lose the namespace, and DEL twice.
#[test]
fn b004_the_address_is_released_whatever_became_of_the_namespace() {
    for with_record in [true, false] {
        for way in ["kept", "removed", "empty", "file", "held", "link gone"] {
            let lab = Lab::new("tap");
            let before = lab.world.snapshot();
            let netns = lab.container("c1");
            let result = lab.add(&netns, &addressed());
            assert_eq!(reservations("n").len(), 2);
            let sent = if with_record { with_previous(&addressed(), &result) } else { addressed() };
            let held = (way == "held").then(|| netns.open());
            match way {
                "kept" | "empty" => {}
                "link gone" => ip(&netns, "link del eth0"),
                _ => netns.remove(),
            }
            if way == "file" {
                std::fs::write(netns.path(), "").unwrap();
            }
            for _ in 0..2 {
                let mut call = lab.call("DEL", &netns, &sent);
                if way == "empty" {
                    call = call.env("CNI_NETNS", "");
                }
                call.run().success();
                assert!(reservations("n").is_empty(), "{way}");
            }
            if way == "kept" {
                assert!(links(&netns).is_empty());
            }
            lab.world.snapshot().since(&before).beyond_residue(&[]).assert_empty();
            drop(held);
        }
    }
}

#[test]
fn b020_a_strangers_device_is_left_alone() {
    let lab = Lab::new("tap");
    let old = lab.container("c1");
    let result = lab.add(&old, &addressed());
    old.remove();
    let new = lab.container("c1");
    let other = with(&plain(), &json!({"name": "other"}));
    lab.call("ADD", &new, &other).container("stranger").run().success();
    lab.del(&old, &addressed(), &result);
    assert_eq!(links(&new), ["eth0"]);
    assert!(reservations("n").is_empty());
}

/// What can't be understood is no reason to keep what can be found.
#[test]
fn a_broken_configuration_does_not_stop_del() {
    let lab = Lab::new("tap");
    let netns = lab.container("c1");
    lab.add(&netns, &addressed());
    let broken = with(
        &addressed(),
        &json!({"mtu": "large", "owner": "root", "bridge": 7, "mac": "x",
            "prevResult": {"cniVersion": "1.1.0", "ips": 7}}),
    );
    lab.call("DEL", &netns, &broken).run().success();
    assert!(links(&netns).is_empty() && reservations("n").is_empty());
}
