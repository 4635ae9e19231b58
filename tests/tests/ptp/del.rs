//! DEL: idempotent, without a namespace, and never a stranger's.

use podwire_tests::lab::{Lab, ip, links, reservations, with, with_previous};
use serde_json::json;

use crate::dual;

/// B004, B053, B101: each way to lose the namespace, and DEL twice.
#[test]
fn b004_the_address_is_released_whatever_became_of_the_namespace() {
    for with_record in [true, false] {
        for way in ["kept", "removed", "empty", "file", "held", "renamed inside"] {
            let lab = Lab::new("ptp");
            let before = lab.world.snapshot();
            let netns = lab.container("c1");
            let config = with(&dual(), &json!({"ipMasq": true}));
            let result = lab.add(&netns, &config);
            assert_eq!(reservations("n").len(), 2);
            let sent = if with_record { with_previous(&config, &result) } else { config.clone() };
            let held = (way == "held").then(|| netns.open());
            match way {
                "kept" | "empty" => {}
                "renamed inside" => {
                    // Older kernels rename only what is down.
                    ip(&netns, "link set eth0 down");
                    ip(&netns, "link set eth0 name other");
                }
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
            assert!(links(lab.world.host()).is_empty(), "{way}");
            lab.world.snapshot().since(&before).beyond_residue(&[]).assert_empty();
            drop(held);
        }
    }
}

#[test]
fn b020_a_strangers_namespace_at_the_old_path_is_left_alone() {
    let lab = Lab::new("ptp");
    let old = lab.container("c1");
    let result = lab.add(&old, &dual());
    old.remove();
    let new = lab.container("c1");
    let other = with(
        &dual(),
        &json!({"name": "other", "ipam": {"type": "static",
        "addresses": [{"address": "10.7.0.2/24", "gateway": "10.7.0.1"}]}}),
    );
    lab.call("ADD", &new, &other).container("stranger").run().success();
    lab.del(&old, &dual(), &result);
    assert_eq!(links(&new), ["eth0"]);
    assert!(reservations("n").is_empty());
}

/// What can't be understood is no reason to keep what can be found.
#[test]
fn a_broken_configuration_or_record_does_not_stop_del() {
    let lab = Lab::new("ptp");
    let netns = lab.container("c1");
    lab.add(&netns, &dual());
    let broken = with(
        &dual(),
        &json!({"mtu": "large", "ipMasq": "maybe", "prevResult": {"cniVersion": "1.1.0", "ips": 7}}),
    );
    lab.call("DEL", &netns, &broken).run().success();
    assert!(links(&netns).is_empty() && reservations("n").is_empty());
}
