//! A node whose containers the Go plugins made.

use podwire_testkit::GoPlugins;
use serde_json::json;

use crate::lab::{Lab, call, outside, reaches};

#[test]
fn rules_of_the_go_plugin_pass_check_and_go_with_their_container() {
    for (go, policy) in [
        (GoPlugins::debian(), "same-bridge"),
        (GoPlugins::sid(), "same-bridge"),
        (GoPlugins::sid(), "isolated"),
        (GoPlugins::sid(), "open"),
    ] {
        std::thread::spawn(move || {
            let lab = Lab::dropping();
            lab.bridge(1);
            let (one, other) = (lab.container("c1", 1, 11), lab.container("c2", 1, 12));
            let keys = json!({ "ingressPolicy": policy });
            for container in [&one, &other] {
                call(go.plugin("firewall"), "ADD", container, &keys).run().success();
            }
            lab.firewall("CHECK", &one, &keys).run().success();
            lab.firewall("DEL", &one, &keys).run().success();
            lab.world.exec(&["ip", "link", "del", "v-c1"]);
            assert!(reaches(&other.netns, outside()));
            let is_apart = lab.rules().iter().all(|rules| rules.contains("ISOLATION"));
            assert_eq!(is_apart, policy != "open", "for the other");
            lab.firewall("CHECK", &other, &keys).run().success();
            lab.firewall("DEL", &other, &keys).run().success();
            lab.assert_clean();
        })
        .join()
        .unwrap();
    }
}

#[test]
fn both_plugins_work_in_the_same_chains() {
    let lab = Lab::dropping();
    lab.bridge(1);
    let (ours, gos) = (lab.container("c1", 1, 11), lab.container("c2", 1, 12));
    let keys = json!({"ingressPolicy": "same-bridge"});
    let go = || GoPlugins::sid().plugin("firewall");
    lab.add(&ours, &keys);
    let before = lab.rules();
    call(go(), "ADD", &gos, &keys).run().success();
    call(go(), "CHECK", &gos, &keys).run().success();
    for (before, after) in before.iter().zip(lab.rules()) {
        assert_eq!(after.lines().count(), before.lines().count() + 2, "{after}");
    }
    lab.firewall("CHECK", &ours, &keys).run().success();
    // Made by Go, made again by us: once is enough.
    lab.add(&gos, &keys);
    for (before, after) in before.iter().zip(lab.rules()) {
        assert_eq!(after.lines().count(), before.lines().count() + 2, "{after}");
    }
    // A collection that knows of neither doesn't take what names no owner.
    lab.del_blind(&gos, &keys);
    call(go(), "ADD", &gos, &keys).run().success();
    lab.gc(&keys, &[&ours]);
    assert!(reaches(&ours.netns, outside()) && reaches(&gos.netns, outside()));
    call(go(), "DEL", &gos, &keys).run().success();
    lab.world.exec(&["ip", "link", "del", "v-c2"]);
    lab.firewall("DEL", &ours, &keys).run().success();
    lab.assert_clean();
}
