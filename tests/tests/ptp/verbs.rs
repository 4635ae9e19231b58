//! ADD, CHECK, STATUS and GC.

use std::time::Duration;

use podwire_testkit::probe::ping;
use podwire_tests::lab::{
    Lab, addresses, ip, is_bookkeeping, link, links, reservations, routes, with,
};
use serde_json::{Value, json};

use crate::{dual, pods};

const PATIENCE: Duration = Duration::from_secs(5);

fn host_end(result: &Value) -> String {
    result["interfaces"][0]["name"].as_str().unwrap().to_owned()
}

#[test]
fn the_pair_routes_both_families() {
    let lab = Lab::new("ptp");
    let [one, two] = ["c1", "c2"].map(|name| lab.container(name));
    let result = lab.add(&one, &with(&dual(), &json!({"mtu": 1400})));
    lab.add(&two, &dual());
    let host = host_end(&result);
    assert_eq!(result["interfaces"][1]["name"], "eth0");
    assert_eq!(result["interfaces"][1]["sandbox"], one.path().to_str().unwrap());
    assert_eq!(result["interfaces"][1]["mac"], link(&one, "eth0").unwrap()["address"]);
    assert_eq!(result["interfaces"][0]["mac"], link(lab.world.host(), &host).unwrap()["address"]);
    assert!(result["ips"].as_array().unwrap().iter().all(|ip| ip["interface"] == 1));
    assert_eq!(link(&one, "eth0").unwrap()["mtu"], 1400);
    assert_eq!(link(lab.world.host(), &host).unwrap()["mtu"], 1400);
    assert_eq!(addresses(&one, "eth0"), ["10.1.0.2/24", "fd00:1::2/64"]);
    assert_eq!(addresses(lab.world.host(), &host), ["10.1.0.1/32", "fd00:1::1/128"]);
    assert_eq!(
        routes(&one),
        [
            "10.1.0.0/24 via 10.1.0.1 dev eth0 src 10.1.0.2",
            "10.1.0.1 dev eth0 scope link src 10.1.0.2",
            "default via 10.1.0.1 dev eth0",
            "default via fd00:1::1 dev eth0 metric 1024 pref medium",
            "fd00:1::/64 via fd00:1::1 dev eth0 src fd00:1::2 metric 1024 pref medium",
            "fd00:1::1 dev eth0 src fd00:1::2 metric 1024 pref medium",
        ]
    );
    for to in ["10.1.0.1", "10.1.0.3", "fd00:1::1", "fd00:1::3"] {
        ping(&one, to.parse::<std::net::IpAddr>().unwrap(), PATIENCE).unwrap();
    }
    for to in ["10.1.0.2", "fd00:1::2"] {
        ping(lab.world.host(), to.parse::<std::net::IpAddr>().unwrap(), PATIENCE).unwrap();
    }
}

#[test]
fn what_leaves_is_masqueraded_where_asked() {
    let lab = Lab::new("ptp");
    let outside = lab.container("outside");
    lab.ip("link add up0 type veth peer name eth0 netns outside");
    lab.ip("addr add 192.0.2.1/24 dev up0");
    lab.ip("link set up0 up");
    ip(&outside, "addr add 192.0.2.2/24 dev eth0");
    ip(&outside, "link set eth0 up");
    let [plain, hidden] = ["c1", "c2"].map(|name| lab.container(name));
    let masquerade = with(&pods(), &json!({"ipMasq": true}));
    lab.add(&plain, &pods());
    let result = lab.add(&hidden, &masquerade);
    let outside_address: std::net::IpAddr = "192.0.2.2".parse().unwrap();
    // The neighbour has no route back to the containers.
    ping(&hidden, outside_address, PATIENCE).unwrap();
    ping(&plain, outside_address, Duration::from_millis(300)).unwrap_err();
    lab.check(&hidden, &masquerade, &result).success();
    lab.del(&hidden, &masquerade, &result);
    let rules = lab.world.exec(&["nft", "list", "ruleset"]).stdout;
    assert!(!rules.contains("10.1.0."), "{rules}");
}

/// defect list 21: the host's side counts too.
#[test]
fn check_finds_what_is_wrong_on_either_side() {
    let lab = Lab::new("ptp");
    let netns = lab.container("c1");
    let config = dual();
    let result = lab.add(&netns, &config);
    lab.check(&netns, &config, &result).success();
    let host = host_end(&result);
    let on_host = |arguments: &str| lab.ip(&arguments.replace("HOST", &host));
    on_host("route del 10.1.0.2 dev HOST");
    let found = lab.difference(&netns, &config, &result);
    assert!(found.contains(&format!("route to 10.1.0.2 on {host} is missing")), "{found}");
    on_host("route add 10.1.0.2 dev HOST scope host");
    on_host("addr del fd00:1::1/128 dev HOST");
    let found = lab.difference(&netns, &config, &result);
    assert!(found.contains(&format!("gateway address fd00:1::1 on {host} is missing")), "{found}");
    on_host("addr add fd00:1::1/128 dev HOST nodad");
    lab.check(&netns, &config, &result).success();
    on_host("link set HOST down");
    let found = lab.difference(&netns, &config, &result);
    assert!(found.contains("expected up, found down"), "{found}");
    on_host("link set HOST up");
    on_host("route replace 10.1.0.2 dev HOST scope host");
    on_host("addr replace fd00:1::1/128 dev HOST nodad");
    on_host("route replace fd00:1::2 dev HOST");
    lab.check(&netns, &config, &result).success();
    ip(&netns, "route del default");
    let found = lab.difference(&netns, &config, &result);
    assert!(found.contains("route to 0.0.0.0/0"), "{found}");
    // Older kernels rename only what is down.
    ip(&netns, "link set eth0 down");
    ip(&netns, "link set eth0 name eth9");
    let found = lab.difference(&netns, &config, &result);
    assert!(found.contains("interface eth0 in the container is missing"), "{found}");
}

#[test]
fn gc_takes_the_dead_and_leaves_the_living() {
    let lab = Lab::new("ptp");
    let before = lab.world.snapshot();
    let config = with(&dual(), &json!({"ipMasq": true}));
    let [alive, dead] = ["c1", "c2"].map(|name| lab.container(name));
    let result = lab.add(&alive, &config);
    lab.add(&dead, &config);
    lab.gc(&config, &[&alive]);
    lab.check(&alive, &config, &result).success();
    assert!(links(&dead).is_empty());
    assert_eq!(reservations("n"), ["10.1.0.2", "fd00:1::2"]);
    lab.gc(&config, &[]);
    assert!(links(lab.world.host()).is_empty());
    lab.world.snapshot().since(&before).beyond_residue(&[]).assert_empty();
}

#[test]
fn status_asks_ipam_and_the_packet_filter() {
    let lab = Lab::new("ptp");
    lab.status(&with(&dual(), &json!({"ipMasq": true}))).success();
    let broken = with(&pods(), &json!({"ipam": {"type": "absent"}}));
    lab.status(&broken).failure();
}

#[test]
fn a_failed_add_leaves_nothing() {
    let lab = Lab::new("ptp");
    let netns = lab.container("c1");
    let (before, inside) = (lab.world.snapshot(), netns.snapshot());
    for keys in [
        json!({"mtu": -1}),
        json!({"mtu": "large"}),
        json!({"ipMasq": true, "ipMasqBackend": "ipfw"}),
        json!({"ipam": {"type": "absent"}}),
        json!({"ipam": {"type": "static", "addresses": []}}),
        json!({"ipam": {"type": "static", "addresses": [{"address": "10.1.0.2/24"}],
            "routes": [{"dst": "fd09::/64", "gw": "10.1.0.1"}]}}),
        json!({"ipam": {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24",
            "rangeStart": "10.1.0.1", "rangeEnd": "10.1.0.1"}]]}}),
    ] {
        lab.call("ADD", &netns, &with(&pods(), &keys)).run().failure();
        netns.snapshot().since(&inside).assert_empty();
        lab.world.snapshot().since(&before).without(is_bookkeeping).assert_empty();
    }
    ip(&netns, "link add eth0 type veth peer name other");
    let error = lab.call("ADD", &netns, &pods()).run().error(102);
    assert!(error["msg"].as_str().unwrap().contains("eth0 already exists"), "{error}");
    assert!(links(lab.world.host()).is_empty());
}
