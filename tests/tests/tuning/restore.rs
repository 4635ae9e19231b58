//! Setting back, when all is well and when it isn't.

use podwire_testkit::{Netns, Plugin};
use serde_json::{Value, json};

use crate::lab::{Lab, attributes, everything, originals};

fn host_device(lab: &Lab, verb: &str, container: &Netns, keys: &Value) -> Plugin {
    let call = lab.world.plugin("host-device").command(verb).container("c1");
    call.netns(container).ifname("eth1").config(keys.to_string())
}

/// B112: a device goes back to the host as it came.
#[test]
fn b112_a_device_that_goes_back_is_as_it_was() {
    let lab = Lab::new();
    lab.world.exec(&["ip", "link", "add", "hd", "type", "veth", "peer", "name", "far"]);
    let before = attributes(lab.world.host(), "hd");
    let mut config = json!({
        "cniVersion": "1.0.0", "name": "pods", "type": "host-device", "device": "hd",
    });
    let added = host_device(&lab, "ADD", &lab.container, &config).run().success().json();
    let mut keys = everything();
    keys["prevResult"] = added;
    let tuned = lab.call("ADD", &keys).ifname("eth1").run().success().json();
    assert_ne!(attributes(&lab.container, "eth1"), before);
    keys["prevResult"] = tuned.clone();
    lab.call("CHECK", &keys).ifname("eth1").run().success();
    for _ in 0..2 {
        lab.call("DEL", &keys).ifname("eth1").run().success();
    }
    config["prevResult"] = tuned;
    host_device(&lab, "DEL", &lab.container, &config).run().success();
    assert_eq!(attributes(lab.world.host(), "hd"), before);
    assert!(!Lab::backup().with_file_name("c1_eth1.json").exists());
}

/// B112: what can't be set back any more is forgotten.
#[test]
fn b112_nothing_is_kept_of_what_is_gone() {
    let lab = Lab::new();
    lab.add(&everything());
    assert!(Lab::backup().exists());
    lab.container.exec(&["ip", "link", "del", "eth0"]);
    lab.call("DEL", &json!({"prevResult": null})).run().success();
    assert!(!Lab::backup().exists());

    let lab = Lab::new();
    lab.add(&everything());
    lab.container.remove();
    for _ in 0..2 {
        lab.call("DEL", &json!({"prevResult": null})).run().success();
        assert!(!Lab::backup().exists());
    }
    lab.call("DEL", &json!({"prevResult": null})).without_env("CNI_NETNS").run().success();
}

/// B112: killed when the originals were kept and nothing was changed yet.
#[test]
fn b112_a_crash_between_keeping_and_changing() {
    let lab = Lab::new();
    lab.add(&everything());
    let kept = std::fs::read(Lab::backup()).unwrap();
    lab.call("DEL", &everything()).run().success();
    std::fs::write(Lab::backup(), kept).unwrap();
    lab.call("DEL", &everything()).run().success();
    assert_eq!(lab.attributes(), originals());
    assert!(!Lab::backup().exists());
}

/// B112: nothing is changed that couldn't be set back.
#[test]
fn b112_without_a_place_for_the_originals_nothing_is_changed() {
    let lab = Lab::new();
    let file = lab.world.write("file", "");
    let mut keys = everything();
    keys["dataDir"] = json!(file.join("below"));
    let error = lab.call("ADD", &keys).run().error(5);
    assert!(error["msg"].as_str().unwrap().contains("below"), "{error}");
    assert_eq!(lab.attributes(), originals());
    lab.call("STATUS", &keys).run().error(50);
    lab.call("DEL", &json!({"dataDir": 7})).run().success();

    let elsewhere = lab.world.path("elsewhere/tuning");
    keys["dataDir"] = json!(elsewhere);
    lab.add(&keys);
    assert!(elsewhere.join("c1_eth0.json").exists() && !Lab::backup().exists());
    // The rest of the configuration may be broken by now.
    lab.call("DEL", &json!({"dataDir": elsewhere, "mtu": "?", "prevResult": null})).run().success();
    assert_eq!(lab.attributes(), originals());
    assert!(!elsewhere.join("c1_eth0.json").exists());
}

#[test]
fn what_is_refused_is_reported_and_tried_again() {
    let lab = Lab::new();
    lab.add(&everything());
    let good = std::fs::read_to_string(Lab::backup()).unwrap();
    std::fs::write(Lab::backup(), good.replace("1500", "999999")).unwrap();
    let error = lab.call("DEL", &everything()).run().failure().json();
    assert!(error["msg"].as_str().unwrap().contains("MTU 999999"), "{error}");
    let (mac, mtu, queue, promiscuous, all_multicast) = originals();
    assert_ne!(lab.attributes().1, mtu);
    assert_eq!(lab.attributes(), (mac, 1300, queue, promiscuous, all_multicast));
    std::fs::write(Lab::backup(), good).unwrap();
    lab.call("DEL", &everything()).run().success();
    assert_eq!(lab.attributes(), originals());
}

#[test]
fn a_file_that_can_not_be_read_is_set_aside() {
    let lab = Lab::new();
    lab.add(&everything());
    for garbage in ["", "{\"mtu\":", "{\"mtu\":\"x\"}"] {
        std::fs::write(Lab::backup(), garbage).unwrap();
        lab.call("DEL", &everything()).run().success();
        assert!(!Lab::backup().exists());
    }
    let kept = std::fs::read_dir(Lab::backup().with_file_name("quarantine")).unwrap();
    assert_eq!(kept.count(), 3);
}

/// A namespace's path that was used again: its interface is a stranger's.
#[test]
fn a_strangers_interface_is_left_alone() {
    let lab = Lab::new();
    let mut keys = everything();
    keys["prevResult"] = lab.add(&everything()).json();
    lab.container.exec(&["ip", "link", "del", "eth0"]);
    lab.world.exec(&[
        "ip",
        "link",
        "add",
        "v0",
        "type",
        "veth",
        "peer",
        "name",
        "eth0",
        "mtu",
        "1234",
        "address",
        "02:00:00:00:00:33",
        "netns",
        "c1",
    ]);
    lab.call("DEL", &keys).run().success();
    assert_eq!(lab.attributes().1, 1234);
    assert!(!Lab::backup().exists());
}

/// An ADD that was killed has left originals and no result: what is at the old path by
/// now is known by its namespace alone.
#[test]
fn a_strangers_namespace_is_left_alone_without_a_result() {
    let lab = Lab::new();
    lab.add(&everything());
    lab.container.remove();
    let container = lab.world.netns("c1");
    container.exec(&["ip", "tuntap", "add", "eth0", "mode", "tap"]);
    container.exec(&["ip", "link", "set", "eth0", "mtu", "1234"]);
    lab.call("DEL", &json!({"prevResult": null})).run().success();
    assert_eq!(attributes(&container, "eth0").1, 1234);
    assert!(!Lab::backup().exists());
}

#[test]
fn gc_removes_what_dead_attachments_have_kept() {
    let lab = Lab::new();
    lab.add(&everything());
    let go = Lab::backup().with_file_name("c9_eth0.json");
    std::fs::write(&go, "{\n \"mtu\": 1500\n}").unwrap();
    let gc = |network: &str, valid: &Value| {
        let config = json!({
            "cniVersion": "1.1.0", "name": network, "type": "tuning",
            "cni.dev/valid-attachments": valid,
        });
        lab.world.plugin("tuning").command("GC").config(config).run().success();
    };
    gc("others", &json!([]));
    gc("pods", &json!([{"containerID": "c1", "ifname": "eth0"}]));
    assert!(Lab::backup().exists());
    gc("pods", &json!([{"containerID": "c1", "ifname": "eth1"}]));
    assert!(!Lab::backup().exists());
    assert!(go.exists(), "it names no network");
}
