//! The gateway of a VLAN: an interface of the host beside the bridge.

use std::net::IpAddr;

use podwire_testkit::probe::{ANSWER, ping};
use serde_json::{Value, json};

use crate::lab::{Lab, network, with};

fn with_gateway(address: &str, vlan: u16) -> Value {
    network(address, &json!({"vlan": vlan, "isDefaultGateway": true}))
}

#[test]
fn the_gateway_is_an_interface_of_its_vlan() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let config = with_gateway("10.1.0.5/24", 100);
    let result = lab.add(&netns, &config);
    assert_eq!(result["interfaces"][3]["name"], "br0.100");
    let shown = lab.world.ip_json(&["addr", "show", "br0.100"]);
    assert_eq!(result["interfaces"][3]["mac"], shown[0]["address"]);
    let addresses = shown[0]["addr_info"].as_array().unwrap();
    assert!(addresses.iter().any(|one| one["local"] == "10.1.0.1"), "{shown}");
    let bridge = lab.world.ip_json(&["addr", "show", "br0"]);
    assert!(!bridge.to_string().contains("10.1.0.1"), "the bridge has no address: {bridge}");

    let gateway: IpAddr = "10.1.0.1".parse().unwrap();
    ping(&netns, gateway, ANSWER).unwrap();
    let routes = netns.ip_json(&["route", "show", "default"]);
    assert_eq!(routes[0]["gateway"], "10.1.0.1");
    lab.with_result("CHECK", &netns, &config, &result).run().success();

    // Its port is an access port of the VLAN, as a container's.
    let peer = shown[0]["link"].as_str().unwrap();
    assert_eq!(lab.vlans(peer), ["100 untagged pvid"]);
}

#[test]
fn each_vlan_has_its_own_and_every_attachment_shares_it() {
    let lab = Lab::new();
    let (one, two) = (lab.world.netns("c1"), lab.world.netns("c2"));
    let other = lab.world.netns("c3");
    let first = lab.add(&one, &with_gateway("10.1.0.5/24", 100));
    let links = lab.world.ip_json(&["link"]).as_array().unwrap().len();
    lab.add(&two, &with_gateway("10.1.0.6/24", 100));
    let more = lab.world.ip_json(&["link"]).as_array().unwrap().len();
    assert_eq!(more, links + 1, "only the second container's host end is new");
    lab.add(&other, &with_gateway("10.2.0.5/24", 200));
    for (netns, gateway) in [(&one, "10.1.0.1"), (&two, "10.1.0.1"), (&other, "10.2.0.1")] {
        ping(netns, gateway.parse::<IpAddr>().unwrap(), ANSWER).unwrap();
    }

    // It stays for the others, and after the last, as the bridge does.
    let config = with_gateway("10.1.0.5/24", 100);
    lab.with_result("DEL", &one, &config, &first).run().success();
    ping(&two, "10.1.0.1".parse::<IpAddr>().unwrap(), ANSWER).unwrap();
}

/// CHECK sees when the gateway's interface has gone.
#[test]
fn check_names_a_missing_gateway() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let config = with_gateway("10.1.0.5/24", 100);
    let result = lab.add(&netns, &config);
    lab.world.exec(&["ip", "link", "del", "br0.100"]);
    let error = lab.with_result("CHECK", &netns, &config, &result).run().error(100);
    assert!(error.to_string().contains("br0.100"), "{error}");
    // The next ADD makes it anew.
    let again = lab.world.netns("c2");
    lab.add(
        &again,
        &with(
            &config,
            &json!({"ipam": {"type": "static",
        "addresses": [{"address": "10.1.0.6/24"}]}}),
        ),
    );
    ping(&again, "10.1.0.1".parse::<IpAddr>().unwrap(), ANSWER).unwrap();
}
