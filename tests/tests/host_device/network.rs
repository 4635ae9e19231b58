//! `useInterfaceNetwork`: what the host gave the device goes with it.

use std::net::IpAddr;
use std::time::Duration;

use podwire_testkit::Netns;
use podwire_testkit::probe::ping;
use podwire_tests::lab::{Lab, addresses, ip, routes, with};
use serde_json::{Value, json};

use crate::{assert_home, lab, plain};

const PATIENCE: Duration = Duration::from_secs(5);

fn configured() -> (Lab, Netns) {
    let (lab, peer) = lab();
    for command in [
        "addr add 192.0.2.7/24 dev hdev",
        "addr add 2001:db8::7/64 dev hdev nodad",
        "addr add 2001:db8::8/64 dev hdev nodad valid_lft 1000 preferred_lft 1000",
        "route add 198.51.100.0/24 via 192.0.2.9 mtu 1300",
        "route add default dev hdev scope link table 77",
        "rule add from 192.0.2.7 lookup 77",
        "rule add from 203.0.113.1 lookup 77",
        "route add default via 2001:db8::9",
    ] {
        lab.ip(command);
    }
    ip(&peer, "addr add 192.0.2.9/24 dev eth0");
    ip(&peer, "addr add 2001:db8::9/64 dev eth0 nodad");
    (lab, peer)
}

fn config() -> Value {
    with(&plain(), &json!({"useInterfaceNetwork": true}))
}

#[test]
fn addresses_routes_and_rules_go_with_the_device() {
    let (lab, _peer) = configured();
    let netns = lab.container("c1");
    let result = lab.add(&netns, &config());
    assert_eq!(addresses(&netns, "net1"), ["192.0.2.7/24", "2001:db8::7/64"]);
    let there = routes(&netns);
    assert!(
        there.contains(&"198.51.100.0/24 via 192.0.2.9 dev net1 mtu 1300".to_owned()),
        "{there:?}"
    );
    assert!(there.iter().any(|route| route.starts_with("default via 2001:db8::9 dev net1")));
    let table = netns.exec(&["ip", "route", "show", "table", "77"]).stdout;
    assert_eq!(table.trim(), "default dev net1 scope link");
    let rules = netns.exec(&["ip", "rule"]).stdout;
    assert!(
        rules.contains("from 192.0.2.7 lookup 77") && !rules.contains("203.0.113.1"),
        "{rules}"
    );
    let ips: Vec<_> = result["ips"].as_array().unwrap().iter().map(|ip| &ip["address"]).collect();
    assert_eq!(ips, ["192.0.2.7/24", "2001:db8::7/64"]);
    let shown = result["routes"].as_array().unwrap();
    assert!(shown.iter().any(|route| route["dst"] == "198.51.100.0/24"
        && route["gw"] == "192.0.2.9"
        && route["mtu"] == 1300));
    assert!(shown.iter().any(|route| route["dst"] == "0.0.0.0/0" && route["table"] == 77));
    for to in ["192.0.2.9", "2001:db8::9"] {
        ping(&netns, to.parse::<IpAddr>().unwrap(), PATIENCE).unwrap();
    }
    lab.check(&netns, &config(), &result).success();
    lab.del(&netns, &config(), &result);
    assert_home(&lab);
}

#[test]
fn ipam_may_add_addresses() {
    let (lab, _peer) = configured();
    let netns = lab.container("c1");
    let ipam = json!({"type": "static", "addresses": [{"address": "10.10.0.100/24"}]});
    let config = with(&config(), &json!({ "ipam": ipam }));
    let result = lab.add(&netns, &config);
    assert_eq!(addresses(&netns, "net1"), ["10.10.0.100/24", "192.0.2.7/24", "2001:db8::7/64"]);
    assert_eq!(result["ips"].as_array().unwrap().len(), 3);
    assert!(result["ips"].as_array().unwrap().iter().all(|ip| ip["interface"] == 0));
    lab.check(&netns, &config, &result).success();
}

#[test]
fn without_the_key_nothing_is_carried() {
    let (lab, _peer) = configured();
    let netns = lab.container("c1");
    let result = lab.add(&netns, &plain());
    assert!(addresses(&netns, "net1").is_empty());
    assert_eq!(result.get("ips"), None);
}
