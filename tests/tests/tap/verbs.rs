//! ADD, CHECK, STATUS and GC.

use podwire_tests::lab::{
    Lab, addresses, ip, is_bookkeeping, link, links, reservations, routes, with,
};
use serde_json::json;

use crate::{addressed, plain, tun};

#[test]
fn the_device_has_addresses_and_routes_before_anybody_attaches() {
    let lab = Lab::new("tap");
    let netns = lab.container("c1");
    let before = lab.world.snapshot();
    let config = with(&addressed(), &json!({"dns": {"domain": "x.test"}}));
    let result = lab.add(&netns, &config);
    assert_eq!(result["interfaces"][0]["name"], "eth0");
    assert_eq!(result["interfaces"][0]["sandbox"], netns.path().to_str().unwrap());
    assert_eq!(result["interfaces"][0]["mac"], link(&netns, "eth0").unwrap()["address"]);
    assert_eq!(result["dns"], json!({"domain": "x.test"}));
    assert!(result["ips"].as_array().unwrap().iter().all(|ip| ip["interface"] == 0));
    assert_eq!(addresses(&netns, "eth0"), ["10.1.0.2/24", "fd00:1::2/64"]);
    let there = routes(&netns);
    for wanted in ["default via 10.1.0.1 dev eth0", "default via fd00:1::1 dev eth0"] {
        assert!(there.iter().any(|route| route.starts_with(wanted)), "{there:#?}");
    }
    let device = tun(&netns, "eth0");
    for (key, wanted) in [("type", json!("tap")), ("pi", json!(false)), ("persist", json!(true))] {
        assert_eq!(device[key], wanted, "{device:#}");
    }
    lab.check(&netns, &config, &result).success();
    lab.del(&netns, &config, &result);
    assert!(links(&netns).is_empty() && reservations("n").is_empty());
    lab.world.snapshot().since(&before).beyond_residue(&[]).assert_empty();
}

#[test]
fn check_names_what_is_different() {
    let lab = Lab::new("tap");
    let netns = lab.container("c1");
    let config = with(&addressed(), &json!({"owner": 1000, "group": 1001}));
    let result = lab.add(&netns, &config);
    lab.check(&netns, &config, &result).success();
    let found = lab.difference(&netns, &with(&config, &json!({"owner": 7})), &result);
    assert!(found.contains("owner: expected 7, found 1000"), "{found}");
    let found = lab.difference(&netns, &with(&config, &json!({"multiQueue": true})), &result);
    assert!(found.contains("multiple queues: expected on, found off"), "{found}");
    ip(&netns, "addr del 10.1.0.2/24 dev eth0");
    assert!(lab.difference(&netns, &config, &result).contains("10.1.0.2/24"));
    ip(&netns, "link del eth0");
    ip(&netns, "tuntap add eth0 mode tun");
    let found = lab.difference(&netns, &config, &result);
    assert!(found.contains("expected tap, found tun"), "{found}");
    ip(&netns, "link del eth0");
    ip(&netns, "link add eth0 type ifb");
    let found = lab.difference(&netns, &config, &result);
    assert!(found.contains("expected a tun, found ifb"), "{found}");
}

/// defect list 17: an interface that is there is never taken.
#[test]
fn an_interface_of_the_name_is_left_alone() {
    for kind in ["link add eth0 type ifb", "tuntap add eth0 mode tap"] {
        let lab = Lab::new("tap");
        let netns = lab.container("c1");
        ip(&netns, kind);
        let inside = netns.snapshot();
        let error = lab.call("ADD", &netns, &addressed()).run().error(102);
        assert!(error["msg"].as_str().unwrap().contains("eth0 already exists"), "{error}");
        netns.snapshot().since(&inside).assert_empty();
        assert!(reservations("n").is_empty());
        // Nor does DEL take it.
        lab.call("DEL", &netns, &addressed()).run().success();
        netns.snapshot().since(&inside).assert_empty();
    }
}

/// B121: one of the name on the host is in nobody's way.
#[test]
fn an_interface_of_the_name_on_the_host_does_not_matter() {
    let lab = Lab::new("tap");
    lab.ip("link add eth0 type ifb");
    let netns = lab.container("c1");
    let result = lab.add(&netns, &plain());
    lab.del(&netns, &plain(), &result);
    assert_eq!(links(lab.world.host()), ["eth0"]);
}

#[test]
fn a_failed_add_leaves_nothing() {
    let lab = Lab::new("tap");
    let netns = lab.container("c1");
    ip(&netns, "link add ifb0 type ifb");
    let (before, inside) = (lab.world.snapshot(), netns.snapshot());
    for keys in [
        json!({"ipam": {"type": "absent"}}),
        json!({"ipam": {"type": "static", "addresses": []}}),
        json!({"ipam": {"type": "static", "addresses": [{"address": "10.1.0.2/24"}],
            "routes": [{"dst": "fd09::/64", "gw": "10.1.0.1"}]}}),
        json!({"mtu": -1}),
        json!({"mtu": 67}),
        json!({"mac": "02:00:00:00:00"}),
        json!({"mac": "01:00:00:00:00:01"}),
        json!({"owner": -1}),
        json!({"owner": "root"}),
        json!({"owner": 4_294_967_295_u32}),
        json!({"bridge": "absent"}),
        json!({"bridge": "ifb0"}),
        json!({"bridge": "../x"}),
        json!({"multiQueue": "yes"}),
        json!({"runtimeConfig": {"mac": "x"}}),
    ] {
        let error = lab.call("ADD", &netns, &with(&plain(), &keys)).run().failure().json();
        assert!(error["msg"].is_string(), "{keys}");
        netns.snapshot().since(&inside).assert_empty();
        lab.world.snapshot().since(&before).without(is_bookkeeping).assert_empty();
    }
}

#[test]
fn gc_returns_the_addresses_of_the_dead() {
    let lab = Lab::new("tap");
    let [alive, dead] = ["c1", "c2"].map(|name| lab.container(name));
    let result = lab.add(&alive, &addressed());
    lab.add(&dead, &addressed());
    dead.remove();
    lab.gc(&addressed(), &[&alive]);
    assert_eq!(reservations("n"), ["10.1.0.2", "fd00:1::2"]);
    lab.check(&alive, &addressed(), &result).success();
}

#[test]
fn status_misses_the_driver() {
    let lab = Lab::new("tap");
    lab.status(&addressed()).success();
    lab.world.exec(&["mount", "-t", "tmpfs", "none", "/dev/net"]);
    let error = lab.status(&addressed()).error(50);
    assert!(error["details"].as_str().unwrap().contains("module tun"), "{error}");
    let netns = lab.container("c1");
    lab.call("ADD", &netns, &addressed()).run().error(999);
    assert!(reservations("n").is_empty());
}
