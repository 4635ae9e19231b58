//! The six operations, in every version, and packets.

use std::net::IpAddr;

use podwire_testkit::probe::{self, ANSWER};
use serde_json::{Value, json};

use crate::lab::{Lab, addresses, dual, layer2, pods, with, with_prev};

fn address(result: &Value, index: usize) -> IpAddr {
    let text = result["ips"][index]["address"].as_str().unwrap();
    text.split_once('/').unwrap().0.parse().unwrap()
}

#[test]
fn two_containers_and_the_host_talk_over_both_families() {
    let lab = Lab::new();
    let (one, two) = (lab.world.netns("c1"), lab.world.netns("c2"));
    let before = lab.world.snapshot();
    let config = dual();
    let (first, second) = (lab.add(&one, &config), lab.add(&two, &config));
    for family in [0, 1] {
        probe::ping(&one, address(&second, family), ANSWER).unwrap();
        probe::ping(&two, address(&first, family), ANSWER).unwrap();
        probe::ping(lab.world.host(), address(&first, family), ANSWER).unwrap();
        let gateway = first["ips"][family]["gateway"].as_str().unwrap();
        probe::ping(&one, gateway.parse::<IpAddr>().unwrap(), ANSWER).unwrap();
    }
    lab.check(&one, &config, &first).success();
    lab.del(&one, &config, &first);
    lab.del(&two, &config, &second);
    assert_eq!(one.ip_json(&["link"]).as_array().unwrap().len(), 1, "only lo is left");
    assert!(Lab::reservations("n").is_empty());
    lab.world.snapshot().since(&before).beyond_residue(&["br0"]).assert_empty();
}

#[test]
fn every_version_gets_its_own_shape() {
    let lab = Lab::new();
    for version in ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let netns = lab.world.netns(&format!("c-{version}"));
        let config = with(&dual(), &json!({"cniVersion": version}));
        let result = lab.add(&netns, &config);
        assert_eq!(result["cniVersion"], version);
        if ["0.1.0", "0.2.0"].contains(&version) {
            assert!(result["interfaces"].is_null() && result["ips"].is_null(), "{result:#}");
            assert!(result["ip4"]["ip"].is_string() && result["ip6"]["ip"].is_string());
        } else {
            let names: Vec<_> =
                (0..3).map(|index| result["interfaces"][index]["name"].clone()).collect();
            assert_eq!((&names[0], &names[2]), (&json!("br0"), &json!("eth0")));
            assert_eq!(result["ips"][0]["interface"], 2);
            let has_version = !result["ips"][0]["version"].is_null();
            assert_eq!(has_version, ["0.3.0", "0.3.1", "0.4.0"].contains(&version));
        }
        let check = lab.check(&netns, &config, &result);
        if version < "0.4.0" {
            check.error(1);
        } else {
            check.success();
        }
        for verb in ["STATUS", "GC"] {
            let keep = json!({"cni.dev/valid-attachments":
                [{"containerID": netns.name(), "ifname": "eth0"}]});
            let output = lab.call(verb, &netns, &with(&config, &keep)).run();
            if version == "1.1.0" {
                output.success();
                assert_eq!(addresses(&netns, "eth0").len(), 2, "GC leaves the living alone");
            } else {
                output.error(1);
            }
        }
        let prev = if version < "0.4.0" { config } else { with_prev(&config, &result) };
        lab.call("DEL", &netns, &prev).run().success();
        assert_eq!(lab.links(), ["br0"]);
    }
}

#[test]
fn the_host_end_tells_its_owner() {
    let lab = Lab::new();
    let netns = lab.world.netns("c1");
    let result = lab.add(&netns, &layer2());
    let name = result["interfaces"][1]["name"].as_str().unwrap();
    let link = lab.link(name);
    assert_eq!(link["ifalias"], "podwire:n:c1:eth0");
    assert_eq!(link["address"], result["interfaces"][1]["mac"]);
    assert_eq!(lab.link("br0")["address"], result["interfaces"][0]["mac"]);
    let inside = netns.ip_json(&["link", "show", "eth0"]);
    assert_eq!(inside[0]["address"], result["interfaces"][2]["mac"]);
    assert_eq!(result["interfaces"][2]["sandbox"], netns.path().to_str().unwrap());
    // Without a record, and again.
    for _ in 0..2 {
        lab.call("DEL", &netns, &layer2()).run().success();
        assert_eq!(lab.links(), ["br0"]);
    }
}

/// GC removes the host ends and reservations of the dead of its own network.
#[test]
fn garbage_collection_takes_the_dead_of_its_network() {
    let lab = Lab::new();
    let other = with(&pods(), &json!({"name": "other"}));
    let config = with(&pods(), &json!({"ipMasq": true, "macspoofchk": true}));
    let nets: Vec<_> =
        ["live", "dead", "foreign"].iter().map(|name| lab.world.netns(name)).collect();
    let live = lab.add(&nets[0], &config);
    lab.add(&nets[1], &config);
    lab.add(&nets[2], &other);
    lab.ip("link add veth00000000 type veth peer name user0");
    let valid = json!([{"containerID": "live", "ifname": "eth0"}]);
    let gc = |valid: &Value| {
        let config = with(&config, &json!({"cni.dev/valid-attachments": valid}));
        lab.call("GC", &nets[0], &config).run().success();
    };
    lab.call("GC", &nets[0], &config).run().success();
    assert_eq!(Lab::reservations("n").len(), 2, "no list, nothing freed");
    gc(&valid);
    assert_eq!(Lab::reservations("n").len(), 1);
    lab.check(&nets[0], &config, &live).success();
    assert_eq!(nets[1].ip_json(&["link"]).as_array().unwrap().len(), 1);
    assert_eq!(addresses(&nets[2], "eth0").len(), 1, "another network's");
    assert!(lab.has_link("veth00000000"), "a user's");
    gc(&json!([]));
    assert!(Lab::reservations("n").is_empty());
    assert_eq!(Lab::reservations("other").len(), 1);
    assert_eq!(lab.links().len(), 4, "{:?}", lab.links());
}

#[test]
fn status_says_50_and_why() {
    let lab = Lab::new();
    let netns = lab.world.netns("unused");
    let status = |config: &Value| lab.call("STATUS", &netns, config).run();
    let before = lab.world.snapshot();
    status(&with(&dual(), &json!({"ipMasq": true, "macspoofchk": true}))).success();
    lab.world.snapshot().since(&before).assert_empty();

    lab.ip("link add br0 type veth peer name br1");
    let error = status(&pods()).error(50);
    assert!(error["msg"].as_str().unwrap().contains("not a bridge (it is veth)"), "{error}");
    lab.ip("link del br0");

    let full = json!({"ipam": {"type": "host-local", "ranges":
        [[{"subnet": "10.7.0.0/29", "rangeStart": "10.7.0.2", "rangeEnd": "10.7.0.2"}]]}});
    let full = with(&pods(), &full);
    status(&full).success();
    lab.add(&netns, &full);
    let error = status(&full).error(50);
    assert!(error["msg"].as_str().unwrap().contains("10.7.0"), "{error}");
}

#[test]
fn version_needs_nothing() {
    let lab = Lab::new();
    let plugin = lab.world.plugin("bridge").command("VERSION");
    let answer = plugin.config(json!({"cniVersion": "1.0.0"})).run().success().json();
    assert_eq!(answer["supportedVersions"].as_array().unwrap().len(), 7);
}
