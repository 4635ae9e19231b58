//! The Go plugin beside ours.

use podwire_testkit::{GoPlugins, Netns};
use podwire_tests::lab::{
    Lab, addresses, host_local, is_bookkeeping, link, links, reservations, routes, with,
    with_previous,
};
use serde_json::{Value, json};

use crate::{addressed, lab, plain};

/// What a container has after an ADD.
fn state(netns: &Netns) -> Value {
    let device = link(netns, "net1").unwrap();
    let is_up = device["flags"].as_array().unwrap().contains(&json!("UP"));
    json!({
        "addresses": addresses(netns, "net1"), "routes": routes(netns),
        "mtu": device["mtu"], "alias": device["ifalias"], "up": is_up,
        "mac": device["address"],
    })
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
        with(&plain(), &json!({"device": null, "hwaddr": "02:00:00:00:00:d1"})),
        with(&addressed(), &json!({"dns": {"domain": "x.test"}})),
    ] {
        for version in ["0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
            let config = with(&config, &json!({"cniVersion": version}));
            let (lab, _peer) = lab();
            let netns = lab.container_without_detection("c1");
            let theirs = lab.call_go(&go, "ADD", &netns, &config).run().success();
            let their_state = state(&netns);

            let (lab, _peer) = crate::lab();
            let netns = lab.container_without_detection("c1");
            let ours = lab.call("ADD", &netns, &config).run().success();
            assert_eq!(ours.stdout, theirs.stdout, "{config:#}");
            assert_eq!(state(&netns), their_state, "{config:#}");
        }
    }
}

fn is_home(lab: &Lab) -> bool {
    links(lab.world.host()) == ["hdev"] && reservations("n").is_empty()
}

/// The alias is the record of both releases of the Go plugin, and it reads ours.
#[test]
fn devices_are_taken_over_both_ways() {
    for (go, version) in [(GoPlugins::sid(), "1.1.0"), (GoPlugins::debian(), "1.0.0")] {
        let config = with(&addressed(), &json!({"cniVersion": version}));
        for renamed in [false, true] {
            let (lab, _peer) = lab();
            let before = lab.world.snapshot();
            let netns = lab.container_without_detection("c1");
            let result = lab.call_go(&go, "ADD", &netns, &config).run().success().json();
            lab.check(&netns, &config, &result).success();
            if renamed {
                podwire_tests::lab::ip(&netns, "link set net1 down");
                podwire_tests::lab::ip(&netns, "link set net1 name wi");
            }
            lab.del(&netns, &config, &result);
            assert!(is_home(&lab), "{version}");
            lab.ip("link set hdev up");
            lab.world.snapshot().since(&before).without(is_bookkeeping).assert_empty();
        }
        let (lab, _peer) = lab();
        let netns = lab.container_without_detection("c1");
        let result = lab.add(&netns, &config);
        let previous = with_previous(&config, &result);
        lab.call_go(&go, "CHECK", &netns, &previous).run().success();
        lab.call_go(&go, "DEL", &netns, &previous).run().success();
        assert!(is_home(&lab), "{version}");
        // Our record of it is no more than a file.
        let result = lab.add(&netns, &config);
        lab.del(&netns, &config, &result);
        assert!(is_home(&lab), "{version}");
    }
}
