//! The Go plugin beside ours.

use podwire_testkit::{GoPlugins, Netns};
use podwire_tests::lab::{
    Lab, addresses, host_local, link, links, reservations, routes, with, with_previous,
};
use podwire_tests::normal::normalised;
use serde_json::{Value, json};

use crate::{addressed, plain};

/// What a container has after an ADD.
fn state(netns: &Netns, mac_is_ours: bool) -> Value {
    let device = link(netns, "eth0").unwrap();
    let mut state = json!({
        "addresses": addresses(netns, "eth0"), "routes": routes(netns),
        "mtu": device["mtu"], "flags": device["flags"], "txqlen": device["txqlen"],
        "tun": device["linkinfo"]["info_data"], "master": device["master"],
    });
    if mac_is_ours {
        state["mac"] = device["address"].clone();
    }
    state
}

#[test]
fn results_and_state_are_those_of_the_go_plugin() {
    let go = GoPlugins::sid();
    let mut many = with(&plain(), &json!({"ipam": host_local(&["10.1.0.0/24"])}));
    many["ipam"]["routes"] =
        json!([{"dst": "10.7.0.0/16"}, {"dst": "10.8.0.0/16", "gw": "10.1.0.9"}]);
    for config in [
        plain(),
        addressed(),
        many,
        with(&plain(), &json!({"owner": 1000, "mtu": 1300, "mac": "02:00:00:00:00:77"})),
        with(&plain(), &json!({"group": 1000, "multiQueue": true})),
        with(&addressed(), &json!({"dns": {"domain": "x.test"}})),
    ] {
        for version in ["0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
            let config = with(&config, &json!({"cniVersion": version}));
            let has_mac = config.get("mac").is_some();
            let lab = Lab::new("tap");
            let netns = lab.container_without_detection("c1");
            let theirs = lab.call_go(&go, "ADD", &netns, &config).run().success();
            let their_state = state(&netns, has_mac);

            let lab = Lab::new("tap");
            let netns = lab.container_without_detection("c1");
            let ours = lab.call("ADD", &netns, &config).run().success();
            assert_eq!(normalised(&ours.stdout), normalised(&theirs.stdout), "{config:#}");
            assert_eq!(state(&netns, has_mac), their_state, "{config:#}");
        }
    }
}

/// Debian 12's release has no tap.
#[test]
fn devices_are_taken_over_both_ways() {
    let go = GoPlugins::sid();
    // The reference's two ways to make one.
    for keys in [json!({"owner": 1000}), json!({"owner": 1000, "group": 1000})] {
        for version in ["0.3.1", "1.1.0"] {
            let config = with(&with(&addressed(), &keys), &json!({"cniVersion": version}));
            let lab = Lab::new("tap");
            let netns = lab.container_without_detection("c1");
            let result = lab.call_go(&go, "ADD", &netns, &config).run().success().json();
            if version == "1.1.0" {
                lab.check(&netns, &config, &result).success();
                lab.del(&netns, &config, &result);
            } else {
                // Runtimes send prevResult from 0.4.0 on.
                lab.call("DEL", &netns, &config).run().success();
            }
            assert!(links(&netns).is_empty() && reservations("n").is_empty(), "{version}");

            let result = lab.add(&netns, &config);
            let previous = with_previous(&config, &result);
            if version == "1.1.0" {
                lab.call_go(&go, "CHECK", &netns, &previous).run().success();
            }
            lab.call_go(&go, "DEL", &netns, &previous).run().success();
            assert!(links(&netns).is_empty() && reservations("n").is_empty(), "{version}");
        }
    }
}
