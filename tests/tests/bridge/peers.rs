//! The same request to ours and to the Go plugin of 1.9.1: the same result and
//! the same state, but for what is listed.

use std::collections::BTreeMap;

use podwire_testkit::{GoPlugins, Netns};
use serde_json::{Value, json};

use crate::lab::{Lab, addresses, dual, layer2, pods, with};

/// Values that are different in every run.
const ARBITRARY: [&str; 1] = ["mac"];

/// What an ADD printed, without what is arbitrary.
fn normal(mut result: Value) -> Value {
    if let Some(interfaces) = result["interfaces"].as_array_mut() {
        for interface in interfaces {
            for key in ARBITRARY {
                if interface[key].is_string() {
                    interface[key] = json!("(some)");
                }
            }
            if interface["name"].as_str().unwrap().starts_with("veth") {
                interface["name"] = json!("(veth)");
            }
        }
    }
    result
}

/// What a container and the host have afterwards.
fn state(lab: &Lab, netns: &Netns) -> BTreeMap<String, Value> {
    let mut state = BTreeMap::new();
    state.insert("addresses".to_owned(), json!(addresses(netns, "eth0")));
    let mut routes = Vec::new();
    for family in ["-4", "-6"] {
        for mut route in netns.ip_json(&[family, "route"]).as_array().unwrap().clone() {
            let object = route.as_object_mut().unwrap();
            object.retain(|key, _| ["dst", "gateway", "dev", "scope", "metric"].contains(&&**key));
            routes.push(route);
        }
    }
    state.insert("routes".to_owned(), json!(routes));
    let inside = netns.ip_json(&["-d", "link", "show", "eth0"])[0].clone();
    for key in ["mtu", "txqlen", "operstate", "num_tx_queues"] {
        state.insert(format!("eth0 {key}"), inside[key].clone());
    }
    let bridge = lab.link("br0");
    for key in ["mtu", "txqlen", "promiscuity"] {
        state.insert(format!("br0 {key}"), bridge[key].clone());
    }
    state.insert("br0 addresses".to_owned(), json!(lab.addresses("br0")));
    let host = lab.links().into_iter().find(|name| name.starts_with("veth")).unwrap();
    let port = lab.link(&host);
    for key in ["hairpin", "isolated", "learning", "state", "flood"] {
        state.insert(format!("port {key}"), port["linkinfo"]["info_slave_data"][key].clone());
    }
    state.insert("port mtu".to_owned(), port["mtu"].clone());
    for key in [
        "ipv4/conf/eth0/arp_notify",
        "ipv6/conf/eth0/accept_dad",
        "ipv6/conf/eth0/keep_addr_on_down",
        "ipv6/conf/eth0/disable_ipv6",
    ] {
        let value = netns.exec(&["cat", &format!("/proc/sys/net/{key}")]).stdout;
        state.insert(format!("inside {key}"), json!(value.trim()));
    }
    for key in [
        "ipv4/ip_forward".to_owned(),
        "ipv6/conf/all/forwarding".to_owned(),
        "ipv6/conf/br0/accept_ra".to_owned(),
        format!("ipv6/conf/{host}/accept_ra"),
    ] {
        let value = std::fs::read_to_string(format!("/proc/sys/net/{key}")).unwrap();
        state.insert(format!("host {}", key.replace(&host, "(veth)")), json!(value.trim()));
    }
    state
}

#[test]
fn results_and_state_are_those_of_the_go_plugin() {
    let go = GoPlugins::sid();
    let mut many = pods();
    many["ipam"]["routes"] =
        json!([{"dst": "10.7.0.0/16"}, {"dst": "10.8.0.0/16", "gw": "10.1.0.9"}]);
    let configs = [
        layer2(),
        pods(),
        dual(),
        many,
        with(&pods(), &json!({"isDefaultGateway": false})),
        with(&pods(), &json!({"isDefaultGateway": false, "isGateway": true, "hairpinMode": true})),
        with(&dual(), &json!({"mtu": 1400, "promiscMode": true, "dns": {"domain": "x.test"}})),
        with(&layer2(), &json!({"portIsolation": true})),
        with(&layer2(), &json!({"disableContainerInterface": true})),
    ];
    for config in configs {
        for version in ["0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
            let config = with(&config, &json!({"cniVersion": version}));
            let lab = Lab::new();
            let netns = lab.world.netns("c1");
            let theirs = go.plugin("bridge").command("ADD").container("c1").netns(&netns);
            let theirs = theirs.ifname("eth0").config(&config).run().success();
            let their_state = state(&lab, &netns);

            let lab = Lab::new();
            let netns = lab.world.netns("c1");
            let ours = lab.call("ADD", &netns, &config).run().success();
            assert_eq!(normal(ours.json()), normal(theirs.json()), "{config:#}");
            assert_eq!(ours.stdout.lines().count(), theirs.stdout.lines().count());
            assert_eq!(state(&lab, &netns), their_state, "{config:#}");
        }
    }
}

/// The same mistakes get the same words.
#[test]
fn errors_have_the_words_of_the_go_plugin() {
    let go = GoPlugins::sid();
    for keys in [
        json!({"hairpinMode": true, "promiscMode": true}),
        json!({"vlan": 5000}),
        json!({"disableContainerInterface": true, "ipam": {"type": "host-local"}}),
        json!({"bridge": "taken"}),
        json!({"ipam": {"type": "absent"}}),
    ] {
        let config = with(&layer2(), &keys);
        let lab = Lab::new();
        let netns = lab.world.netns("c1");
        lab.ip("link add taken type veth peer name other");
        let theirs = go.plugin("bridge").command("ADD").container("c1").netns(&netns);
        let theirs = theirs.ifname("eth0").config(&config).run().failure().json();
        let lab = Lab::new();
        let netns = lab.world.netns("c1");
        lab.ip("link add taken type veth peer name other");
        let ours = lab.call("ADD", &netns, &config).search_in(&[go.directory()]);
        let ours = ours.run().failure().json();
        let (ours, theirs) = (ours["msg"].as_str().unwrap(), theirs["msg"].as_str().unwrap());
        // Ours may say more around it, and name the step.
        let core = theirs.rsplit(": ").next().unwrap();
        assert!(ours.contains(core), "ours: {ours}\ntheirs: {theirs}");
    }
}
