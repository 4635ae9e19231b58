//! Every key holds, whichever others are set.

use podwire_tests::lab::{Lab, ip, link, with};
use serde_json::{Value, json};

use crate::{plain, tun};

/// The reference ignores `mac` and `mtu` where owner and group are both set, and
/// leaves packet information on without `multiQueue`.
#[test]
fn all_keys_hold_in_every_combination() {
    let keys = [
        ("owner", json!(71_000)),
        ("group", json!(71_001)),
        ("multiQueue", json!(true)),
        ("mtu", json!(1300)),
        ("mac", json!("02:00:00:00:00:77")),
    ];
    let lab = Lab::new("tap");
    for chosen in 0..1 << keys.len() {
        let netns = lab.container(&format!("c{chosen}"));
        let mut config = plain();
        for (position, (key, value)) in keys.iter().enumerate() {
            if chosen & (1 << position) != 0 {
                config[*key] = value.clone();
            }
        }
        let result = lab.add(&netns, &config);
        let device = tun(&netns, "eth0");
        let shown = link(&netns, "eth0").unwrap();
        assert_eq!(device["pi"], false);
        assert_eq!(device["vnet_hdr"], false);
        assert_eq!(device["multi_queue"], config.get("multiQueue").is_some());
        assert_eq!(shown["mtu"], config.get("mtu").cloned().unwrap_or(json!(1500)));
        if let Some(mac) = config.get("mac") {
            assert_eq!(&shown["address"], mac);
        }
        assert_eq!(result["interfaces"][0]["mac"], shown["address"]);
        for (key, id) in [("owner", 71_000), ("group", 71_001)] {
            let name = device.get(if key == "owner" { "user" } else { "group" });
            let is_set = name.is_some_and(|name| name == id || name == &json!(id.to_string()));
            assert_eq!(is_set, config.get(key).is_some(), "{key}: {device:#}");
        }
        lab.check(&netns, &config, &result).success();
    }
}

#[test]
fn the_address_asked_for_last_counts() {
    let lab = Lab::new("tap");
    let mac = |netns, config: &Value, args: &str| {
        let output = lab.call("ADD", netns, config).args(args).run().success();
        output.json()["interfaces"][0]["mac"].clone()
    };
    let configured = with(&plain(), &json!({"mac": "02:00:00:00:00:01"}));
    let capability = with(&configured, &json!({"runtimeConfig": {"mac": "02:00:00:00:00:03"}}));
    let [one, two, three] = ["c1", "c2", "c3"].map(|name| lab.container(name));
    assert_eq!(mac(&one, &configured, ""), "02:00:00:00:00:01");
    assert_eq!(mac(&two, &configured, "MAC=02:00:00:00:00:02"), "02:00:00:00:00:02");
    assert_eq!(mac(&three, &capability, "MAC=02:00:00:00:00:02"), "02:00:00:00:00:03");
}

#[test]
fn the_device_is_a_port_of_the_containers_bridge() {
    let lab = Lab::new("tap");
    let netns = lab.container("c1");
    ip(&netns, "link add br0 type bridge");
    let config = with(&plain(), &json!({"bridge": "br0"}));
    let result = lab.add(&netns, &config);
    assert_eq!(link(&netns, "eth0").unwrap()["master"], "br0");
    lab.check(&netns, &config, &result).success();
    ip(&netns, "link set eth0 nomaster");
    assert!(lab.difference(&netns, &config, &result).contains("port of br0 is missing"));
    lab.del(&netns, &config, &result);
    assert_eq!(podwire_tests::lab::links(&netns), ["br0"]);
}

/// The label is the task's, which `SELinux` alone can change.
#[test]
fn a_label_without_selinux_is_refused() {
    let lab = Lab::new("tap");
    let netns = lab.container("c1");
    let config = with(&plain(), &json!({"selinuxContext": "system_u:system_r:container_t:s0"}));
    let output = lab.call("ADD", &netns, &config).run().failure();
    assert!(output.stdout.contains("selinuxContext"), "{output:#?}");
    assert!(podwire_tests::lab::links(&netns).is_empty());
}
