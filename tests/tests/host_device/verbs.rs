//! ADD, CHECK, STATUS and GC.

use std::net::IpAddr;
use std::time::Duration;

use podwire_testkit::probe::ping;
use podwire_tests::lab::{Lab, addresses, ip, is_bookkeeping, link, links, reservations, with};
use serde_json::json;

use crate::{addressed, assert_home, lab, plain};

const PATIENCE: Duration = Duration::from_secs(5);

#[test]
fn the_device_moves_gets_its_name_and_comes_home() {
    let (lab, _peer) = lab();
    let before = lab.world.snapshot();
    let netns = lab.container("c1");
    let result = lab.add(&netns, &plain());
    assert_eq!(
        result,
        json!({"cniVersion": "1.1.0", "interfaces": [{"name": "net1",
            "mac": "02:00:00:00:00:d1", "sandbox": netns.path().to_str().unwrap()}]})
    );
    assert!(links(lab.world.host()).is_empty());
    let inside = link(&netns, "net1").unwrap();
    assert_eq!(inside["ifalias"], "hdev");
    assert!(inside["flags"].as_array().unwrap().contains(&json!("UP")));
    lab.check(&netns, &plain(), &result).success();
    lab.del(&netns, &plain(), &result);
    assert_home(&lab);
    lab.del(&netns, &plain(), &result);
    lab.world.snapshot().since(&before).assert_empty();
}

#[test]
fn addresses_reach_the_devices_network() {
    let (lab, peer) = lab();
    for address in ["10.1.0.1/24", "fd00:1::1/64"] {
        let nodad = if address.contains(':') { "nodad" } else { "" };
        ip(&peer, &format!("addr add {address} dev eth0 {nodad}"));
    }
    let netns = lab.container("c1");
    let config = with(&addressed(), &json!({"dns": {"domain": "x.test"}}));
    let result = lab.add(&netns, &config);
    assert_eq!(result["dns"], json!({"domain": "x.test"}));
    assert!(result["ips"].as_array().unwrap().iter().all(|ip| ip["interface"] == 0));
    assert_eq!(addresses(&netns, "net1"), ["10.1.0.2/24", "fd00:1::2/64"]);
    for to in ["10.1.0.1", "fd00:1::1"] {
        ping(&netns, to.parse::<IpAddr>().unwrap(), PATIENCE).unwrap();
    }
    lab.check(&netns, &config, &result).success();
    ip(&netns, "addr del 10.1.0.2/24 dev net1");
    assert!(lab.difference(&netns, &config, &result).contains("10.1.0.2/24"));
    lab.del(&netns, &config, &result);
    assert_home(&lab);
    assert!(reservations("n").is_empty());
}

/// B098: another machine of the device's network has the address.
#[test]
fn b098_a_duplicate_address_is_an_error_and_taken_back() {
    let (lab, peer) = lab();
    ip(&peer, "addr add fd00:1::2/64 dev eth0 nodad");
    let before = lab.world.snapshot();
    let netns = lab.container("c1");
    let error = lab.call("ADD", &netns, &addressed()).run().failure().json();
    assert!(error["msg"].as_str().unwrap().contains("dadfailed"), "{error}");
    assert_home(&lab);
    assert!(reservations("n").is_empty());
    lab.world.snapshot().since(&before).without(is_bookkeeping).assert_empty();
}

#[test]
fn check_names_what_is_different() {
    let (lab, _peer) = lab();
    let netns = lab.container("c1");
    let result = lab.add(&netns, &plain());
    ip(&netns, "link set net1 address 02:00:00:00:00:99");
    let found = lab.difference(&netns, &plain(), &result);
    assert!(found.contains("02:00:00:00:00:99"), "{found}");
    ip(&netns, "link set net1 address 02:00:00:00:00:d1 alias hdev");
    ip(&netns, "link set net1 down");
    assert!(lab.difference(&netns, &plain(), &result).contains("expected up"));
    ip(&netns, "link set net1 name wi");
    assert!(lab.difference(&netns, &plain(), &result).contains("net1 in the container is missing"));
}

#[test]
fn a_failed_add_leaves_the_device_as_it_was() {
    let (lab, _peer) = lab();
    lab.ip("addr add 192.0.2.7/24 dev hdev");
    lab.ip("addr add 2001:db8::7/64 dev hdev nodad");
    lab.ip("route add 198.51.100.0/24 via 192.0.2.9");
    let netns = lab.container("c1");
    let (before, inside) = (lab.world.snapshot(), netns.snapshot());
    for keys in [
        json!({"ipam": {"type": "absent"}}),
        json!({"ipam": {"type": "static", "addresses": []}}),
        json!({"ipam": {"type": "static", "addresses": [{"address": "10.1.0.2/24"}],
            "routes": [{"dst": "fd09::/64", "gw": "10.1.0.1"}]}}),
        json!({"device": "absent"}),
        json!({"device": ""}),
        json!({"device": "../x"}),
        json!({"device": null, "hwaddr": "02:00:00:00:00"}),
        json!({"device": null, "hwaddr": "02:00:00:00:00:77"}),
        json!({"device": null, "kernelpath": "/etc"}),
        json!({"device": null, "pciBusID": "../../../etc"}),
        json!({"device": "lo"}),
    ] {
        let error = lab.call("ADD", &netns, &with(&plain(), &keys)).run().failure().json();
        assert!(error["msg"].is_string());
        netns.snapshot().since(&inside).assert_empty();
        lab.world.snapshot().since(&before).without(is_bookkeeping).assert_empty();
    }
}

/// B121: the container's name is taken, on either side.
#[test]
fn a_name_that_is_taken_inside_is_refused_and_one_outside_is_not() {
    let (lab, _peer) = lab();
    let [one, two] = ["c1", "c2"].map(|name| lab.container(name));
    ip(&one, "link add net1 type veth peer name other");
    let error = lab.call("ADD", &one, &plain()).run().error(102);
    assert!(error["msg"].as_str().unwrap().contains("net1 already exists"), "{error}");
    assert_home(&lab);
    lab.ip("link add net1 type ifb");
    let result = lab.add(&two, &plain());
    lab.del(&two, &plain(), &result);
    assert_eq!(links(lab.world.host()), ["hdev", "net1"]);
}

#[test]
fn gc_brings_home_what_the_dead_had() {
    let (lab, _peer) = lab();
    lab.ip("link add hdev2 type veth peer name eth1 netns peer");
    let [alive, dead] = ["c1", "c2"].map(|name| lab.container(name));
    let other = with(&addressed(), &json!({"device": "hdev2"}));
    lab.add(&dead, &addressed());
    let result = lab.add(&alive, &other);
    lab.gc(&addressed(), &[&alive]);
    assert_home(&lab);
    lab.check(&alive, &other, &result).success();
    assert_eq!(reservations("n"), ["10.1.0.3", "fd00:1::3"]);
    lab.gc(&addressed(), &[]);
    assert_eq!(links(lab.world.host()), ["hdev", "hdev2"]);
    assert!(reservations("n").is_empty());
    lab.gc(&addressed(), &[]);
}

#[test]
fn status_misses_a_device_that_nobody_has() {
    let (lab, _peer) = lab();
    lab.status(&addressed()).success();
    let netns = lab.container("c1");
    lab.add(&netns, &plain());
    lab.status(&plain()).success();

    let lab = Lab::new("host-device");
    let error = lab.status(&plain()).error(50);
    assert!(error["msg"].as_str().unwrap().contains("device hdev"), "{error}");
    // The device of a capability isn't known before ADD.
    lab.status(&with(&plain(), &json!({"device": null}))).success();
}

#[test]
fn the_device_is_found_by_its_address() {
    let (lab, _peer) = lab();
    let netns = lab.container("c1");
    let config = with(&plain(), &json!({"device": null, "hwaddr": "02:00:00:00:00:D1"}));
    let result = lab.add(&netns, &config);
    assert_eq!(links(&netns), ["net1"]);
    lab.del(&netns, &config, &result);
    assert_home(&lab);
}

#[test]
fn an_alias_of_the_administrator_comes_back() {
    let (lab, _peer) = lab();
    lab.ip("link set hdev alias uplink");
    let netns = lab.container("c1");
    let result = lab.add(&netns, &plain());
    assert_eq!(link(&netns, "net1").unwrap()["ifalias"], "hdev");
    lab.del(&netns, &plain(), &result);
    assert_eq!(link(lab.world.host(), "hdev").unwrap()["ifalias"], "uplink");
}
