//! From ADD to DEL.

use podwire_plugin::OwnerMark;
use podwire_spec::id::NetworkName;
use serde_json::json;

use crate::lab::{HOST_END, Lab, both_ways};

fn names_of(container: &str, ifname: &str) -> Vec<String> {
    let owner = OwnerMark::new(&NetworkName::parse("pods").unwrap(), container, ifname);
    (0..8).map(|candidate| owner.short_name("bwp", candidate)).collect()
}

#[test]
fn both_directions_are_limited_and_the_ifb_is_in_the_result() {
    let lab = Lab::new();
    lab.world.exec(&["ip", "link", "set", HOST_END, "mtu", "1400"]);
    let before = lab.snapshot();
    let result = lab.add(&both_ways()).json();
    let ifb = lab.ifb();
    assert_eq!(ifb, names_of("c1", "eth0")[0]);
    let link = &lab.world.ip_json(&["-d", "link", "show", &ifb])[0];
    assert_eq!((&link["mtu"], &link["ifalias"]), (&json!(1400), &json!("podwire:pods:c1:eth0")));
    assert!(link["flags"].as_array().unwrap().contains(&json!("UP")));

    let interfaces = result["interfaces"].as_array().unwrap();
    assert_eq!(interfaces.len(), 3);
    assert_eq!(interfaces[2], json!({"name": ifb, "mac": link["address"]}));
    assert_eq!(result["ips"], lab.prev_result()["ips"]);

    let root = lab.root(HOST_END);
    assert_eq!((&root["kind"], &root["handle"]), (&json!("tbf"), &json!("1:")));
    assert_eq!(root["options"]["rate"], 1_000_000);
    assert_eq!(root["options"]["burst"], 100_000);
    assert_eq!(lab.root(&ifb)["options"]["rate"], 2_000_000);
    let filters = lab.filters(HOST_END);
    assert_eq!(filters.len(), 1, "{filters:?}");
    let actions = filters[0]["options"]["actions"].as_array().unwrap();
    assert_eq!(actions.len(), 1, "one action: {actions:?}");
    assert_eq!((&actions[0]["to_dev"], &actions[0]["kind"]), (&json!(ifb), &json!("mirred")));

    lab.call("CHECK", &both_ways()).run().success();
    for _ in 0..2 {
        lab.del(&both_ways());
        lab.assert_unchanged(&before);
    }
}

#[test]
fn without_limits_the_result_passes_and_nothing_is_made() {
    let lab = Lab::new();
    let before = lab.snapshot();
    for keys in [json!({}), json!({"ingressRate": 0, "ingressBurst": 0})] {
        let result = lab.add(&keys).json();
        assert_eq!(result["interfaces"], lab.prev_result()["interfaces"]);
        lab.call("CHECK", &keys).run().success();
        lab.assert_unchanged(&before);
        lab.del(&keys);
    }
    // Go's plugin ends in a nil dereference.
    lab.call("ADD", &json!({"prevResult": null})).run().error(7);
}

#[test]
fn one_direction_only_needs_no_ifb() {
    let lab = Lab::new();
    let capability = json!({"bandwidth": {"IngressRate": 8000, "IngressBurst": 80000}});
    let result = lab.add(&json!({"runtimeConfig": capability})).json();
    assert_eq!(result["interfaces"].as_array().unwrap().len(), 2);
    assert_eq!(lab.root(HOST_END)["options"]["rate"], 1000);
    assert!(lab.ifbs().is_empty());
}

/// B109: the peer is found by its index, whatever the list says.
#[test]
fn b109_the_host_end_is_found_by_its_index() {
    let lab = Lab::new();
    lab.world.exec(&["ip", "link", "add", "cni0", "up", "type", "bridge"]);
    lab.world.exec(&["ip", "link", "set", HOST_END, "master", "cni0"]);
    lab.pair("eth1", "v1", 2);
    lab.world.exec(&["ip", "link", "set", "v1", "master", "cni0"]);
    let before = lab.snapshot();
    let path = lab.container.path();
    for interfaces in [
        json!([{"name": HOST_END}]),
        json!([{"name": "eth0", "sandbox": "eth0"}]),
        json!([{"name": "cni0"}, {"name": HOST_END}, {"name": "eth0", "sandbox": path}]),
        json!([{"name": "cni0"}, {"name": "v1"}, {"name": "eth0", "sandbox": path}]),
        json!([{"name": "eth0", "sandbox": path}, {"name": "eth1", "sandbox": path}]),
        json!([]),
    ] {
        let mut keys = both_ways();
        keys["prevResult"] = json!({"cniVersion": "1.0.0", "interfaces": interfaces});
        let added = lab.add(&keys).json();
        assert_eq!(lab.root(HOST_END)["kind"], "tbf", "{interfaces}");
        assert_eq!(lab.filters(HOST_END).len(), 1, "{interfaces}");
        for other in ["cni0", "v1"] {
            assert_eq!(lab.root(other)["kind"], "noqueue", "{interfaces}");
        }
        keys["prevResult"] = added;
        lab.call("CHECK", &keys).run().success();
        lab.del(&keys);
        lab.assert_unchanged(&before);
    }
}

/// B109
#[test]
fn b109_a_macvlan_is_told_to_need_a_veth() {
    let lab = Lab::new();
    lab.container.exec(&["ip", "link", "del", "eth0"]);
    lab.world.exec(&["ip", "link", "add", "up0", "type", "veth", "peer", "name", "far"]);
    lab.world.exec(&["ip", "link", "add", "eth0", "link", "up0", "netns", "c1", "type", "macvlan"]);
    let before = lab.snapshot();
    for verb in ["ADD", "CHECK"] {
        let error = lab.call(verb, &both_ways()).run().error(7);
        let text = error["msg"].as_str().unwrap();
        assert!(text.contains("eth0") && text.contains("veth") && text.contains("macvlan"));
    }
    lab.container.exec(&["ip", "link", "del", "eth0"]);
    let error = lab.call("ADD", &both_ways()).run().failure().json();
    assert!(error["msg"].as_str().unwrap().contains("no interface eth0"), "{error}");
    lab.del(&both_ways());
    lab.assert_unchanged(&before);
}

#[test]
fn a_second_add_takes_the_place_of_the_first() {
    let lab = Lab::new();
    let before = lab.snapshot();
    lab.add(&both_ways());
    let mut keys = both_ways();
    keys["ingressRate"] = json!(80_000_000);
    keys["egressRate"] = json!(160_000_000);
    lab.add(&keys);
    assert_eq!(lab.root(HOST_END)["options"]["rate"], 10_000_000);
    assert_eq!(lab.root(&lab.ifb())["options"]["rate"], 20_000_000);
    assert_eq!(lab.filters(HOST_END).len(), 1);
    lab.call("CHECK", &keys).run().success();
    // Somebody removed the ifb; what its filter catches would be lost.
    lab.world.exec(&["ip", "link", "del", &lab.ifb()]);
    lab.add(&keys);
    assert_eq!(lab.filters(HOST_END).len(), 1);
    // One of another kind.
    keys["unshapedSubnets"] = json!(["10.0.0.0/8"]);
    lab.add(&keys);
    lab.call("CHECK", &keys).run().success();
    lab.add(&both_ways());
    lab.call("CHECK", &both_ways()).run().success();
    lab.world.exec(&["ip", "link", "del", &lab.ifb()]);
    lab.del(&both_ways());
    lab.assert_unchanged(&before);
}

#[test]
fn two_interfaces_of_one_network_have_an_ifb_each() {
    let lab = Lab::new();
    lab.pair("eth1", "v1", 2);
    lab.add(&both_ways());
    lab.call("ADD", &both_ways()).ifname("eth1").run().success();
    assert_eq!(lab.ifbs().len(), 2);
    lab.call("DEL", &both_ways()).ifname("eth1").run().success();
    assert_eq!(lab.ifb(), names_of("c1", "eth0")[0]);
    lab.call("CHECK", &both_ways()).run().success();
}

#[test]
fn a_failed_add_leaves_nothing() {
    let lab = Lab::new();
    for name in names_of("c1", "eth0") {
        lab.world.exec(&["ip", "link", "add", &name, "type", "bridge"]);
    }
    let before = lab.snapshot();
    let error = lab.call("ADD", &both_ways()).run().failure().json();
    assert!(error["msg"].as_str().unwrap().contains(&names_of("c1", "eth0")[7]), "{error}");
    lab.assert_unchanged(&before);
    lab.del(&both_ways());
    lab.assert_unchanged(&before);

    for name in names_of("c1", "eth0") {
        lab.world.exec(&["ip", "link", "del", &name]);
    }
    lab.world.exec(&["tc", "qdisc", "add", "dev", HOST_END, "root", "handle", "7:", "htb"]);
    let before = lab.snapshot();
    let error = lab.call("ADD", &both_ways()).run().failure().json();
    assert!(error["msg"].as_str().unwrap().contains("htb 7:"), "{error}");
    lab.assert_unchanged(&before);
}

#[test]
fn del_finds_the_ifb_when_all_else_is_gone() {
    let lab = Lab::new();
    lab.add(&both_ways());
    lab.container.exec(&["ip", "link", "del", "eth0"]);
    lab.call("DEL", &json!({"prevResult": null, "egressRate": "?"})).run().success();
    assert!(lab.ifbs().is_empty());
    lab.pair("eth0", HOST_END, 1);
    lab.add(&both_ways());
    lab.container.remove();
    for _ in 0..2 {
        lab.call("DEL", &json!({"prevResult": null})).without_env("CNI_NETNS").run().success();
        assert!(lab.ifbs().is_empty());
    }
}

#[test]
fn others_filters_and_limits_stay() {
    let lab = Lab::new();
    lab.world.exec(&["ip", "link", "add", "far", "up", "type", "ifb"]);
    lab.world.exec(&["tc", "qdisc", "add", "dev", HOST_END, "ingress"]);
    let to_far = ["match", "u32", "1", "0xff", "at", "0", "action", "mirred", "egress"];
    let add = ["tc", "filter", "add", "dev", HOST_END, "parent", "ffff:", "prio", "9", "u32"];
    lab.world.exec(&[&add[..], &to_far, &["redirect", "dev", "far"]].concat());
    let before = lab.snapshot();
    lab.add(&both_ways());
    assert_eq!(lab.filters(HOST_END).len(), 2);
    lab.call("CHECK", &both_ways()).run().success();
    lab.del(&both_ways());
    lab.assert_unchanged(&before);
    let left = lab.filters(HOST_END);
    assert_eq!((left.len(), &left[0]["pref"]), (1, &json!(9)));
    // Another's rate is another's limit.
    lab.world.exec(&[
        "tc", "qdisc", "add", "dev", HOST_END, "root", "handle", "1:", "tbf", "rate", "1mbit",
        "burst", "20kb", "latency", "25ms",
    ]);
    lab.del(&both_ways());
    assert_eq!(lab.root(HOST_END)["kind"], "tbf");
}

#[test]
fn bursts_are_sane() {
    let lab = Lab::new();
    let capability = json!({"ingressRate": 80_000_000, "ingressBurst": 4_294_967_295_u64});
    lab.add(&json!({"runtimeConfig": {"bandwidth": capability}}));
    assert_eq!(lab.root(HOST_END)["options"]["burst"], 1_000_000);
    // One that lets no full frame pass: an untagged one has 1514 bytes.
    lab.add(&json!({"ingressRate": 800_000, "ingressBurst": 800}));
    assert_eq!(lab.root(HOST_END)["options"]["burst"], 1517);
    lab.call("CHECK", &json!({"ingressRate": 800_000, "ingressBurst": 800})).run().success();
}
