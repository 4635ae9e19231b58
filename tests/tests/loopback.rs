//! The loopback plugin on real namespaces.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // It is all of tests.

use podwire_testkit::{GoPlugins, Netns, Plugin, World};
use serde_json::{Value, json};

fn config(version: &str) -> Value {
    json!({"cniVersion": version, "name": "lo-net", "type": "loopback"})
}

fn call(world: &World, verb: &str, netns: &Netns, config: &Value) -> Plugin {
    let plugin = world.plugin("loopback").command(verb).container("c1").netns(netns);
    plugin.ifname("lo").config(config)
}

fn is_up(netns: &Netns) -> bool {
    let link = netns.ip_json(&["link", "show", "lo"]);
    link[0]["flags"].as_array().unwrap().contains(&json!("UP"))
}

/// B094
#[test]
fn b094_every_version_gets_its_own_shape() {
    let world = World::new();
    for version in ["", "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let netns = world.netns(&format!("c{version}"));
        let mut config = config(version);
        if version.is_empty() {
            config.as_object_mut().unwrap().remove("cniVersion");
        }
        let result = call(&world, "ADD", &netns, &config).run().success().json();
        assert!(is_up(&netns));
        if ["", "0.1.0", "0.2.0"].contains(&version) {
            assert_eq!(result["ip4"]["ip"], "127.0.0.1/8", "{version}: {result:#}");
            assert_eq!(result["ip6"]["ip"], "::1/128");
            assert!(result["interfaces"].is_null());
        } else {
            let interface = &result["interfaces"][0];
            assert_eq!(
                (&interface["name"], &interface["mac"]),
                (&json!("lo"), &json!("00:00:00:00:00:00"))
            );
            assert_eq!(interface["sandbox"], netns.path().to_str().unwrap());
            let addresses: Vec<_> = (0..2).map(|index| &result["ips"][index]["address"]).collect();
            assert_eq!(addresses, ["127.0.0.1/8", "::1/128"]);
        }
        if version >= "0.4.0" {
            call(&world, "CHECK", &netns, &config).run().success();
        }
        for _ in 0..2 {
            call(&world, "DEL", &netns, &config).run().success();
            assert!(!is_up(&netns));
        }
        if version >= "0.4.0" {
            let error = call(&world, "CHECK", &netns, &config).run().error(100);
            assert!(error["msg"].as_str().unwrap().contains("expected up, found down"), "{error}");
        }
    }
}

/// C13: first in a chain, whatever the interface is called; and later in one,
/// where it passes on what came before.
#[test]
fn c13_the_interface_name_and_prev_result_do_not_matter() {
    let world = World::new();
    let netns = world.netns("c1");
    let result = call(&world, "ADD", &netns, &config("0.4.0")).ifname("eth0").run();
    assert_eq!(result.success().json()["interfaces"][0]["name"], "lo");
    assert!(is_up(&netns));
    let mut chained = config("1.0.0");
    chained["prevResult"] = json!({"cniVersion": "1.0.0",
        "interfaces": [{"name": "eth0", "sandbox": netns.path().to_str().unwrap()}],
        "ips": [{"address": "10.1.0.2/24", "interface": 0}]});
    let result = call(&world, "ADD", &netns, &chained).run().success().json();
    assert_eq!(result, chained["prevResult"]);
}

/// Go prints the newest shape whatever the version is (B094), so only those
/// that have it can be compared.
#[test]
fn results_are_those_of_the_go_plugin() {
    let go = GoPlugins::sid();
    for version in ["1.0.0", "1.1.0"] {
        let world = World::new();
        let netns = world.netns("c1");
        let plugin = go.plugin("loopback").command("ADD").container("c1").netns(&netns);
        let theirs = plugin.ifname("lo").config(config(version)).run().success();
        netns.exec(&["ip", "link", "set", "lo", "down"]);
        let ours = call(&world, "ADD", &netns, &config(version)).run().success();
        assert_eq!(ours.stdout, theirs.stdout);
    }
}

/// B094: no `::1` is demanded where IPv6 is off.
#[test]
fn b094_without_ipv6_there_is_only_one_address() {
    let world = World::new();
    let netns = world.netns("c1");
    netns.run(|| std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1")).unwrap();
    let result = call(&world, "ADD", &netns, &config("1.0.0")).run().success().json();
    assert_eq!(result["ips"].as_array().unwrap().len(), 1);
    let result = call(&world, "ADD", &world.netns("c2"), &config("1.0.0")).run().success().json();
    assert_eq!(result["ips"].as_array().unwrap().len(), 2);
}

#[test]
fn a_strange_address_on_lo_is_refused_and_lo_stays_down() {
    let world = World::new();
    let netns = world.netns("c1");
    netns.exec(&["ip", "addr", "add", "10.0.0.1/32", "dev", "lo"]);
    let error = call(&world, "ADD", &netns, &config("1.0.0")).run().error(999);
    assert!(error["msg"].as_str().unwrap().contains("non-loopback address 10.0.0.1/32"), "{error}");
    assert!(!is_up(&netns));
}

/// The path of a dead container may be another's by now, or nobody's.
#[test]
fn del_leaves_a_strangers_loopback_on() {
    let world = World::new();
    let netns = world.netns("c1");
    call(&world, "ADD", &netns, &config("1.0.0")).run().success();
    netns.remove();
    let stranger = world.netns("c1");
    stranger.exec(&["ip", "link", "set", "lo", "up"]);
    call(&world, "DEL", &stranger, &config("1.0.0")).run().success();
    assert!(is_up(&stranger));
    let other = call(&world, "ADD", &stranger, &config("1.0.0")).container("c2");
    stranger.exec(&["ip", "link", "set", "lo", "down"]);
    other.run().success();
    call(&world, "DEL", &stranger, &config("1.0.0")).run().success();
    assert!(is_up(&stranger), "c2 switched it on, c1 is deleted");
    // And the host's own is never touched.
    let error = call(&world, "DEL", world.host(), &config("1.0.0")).run().error(8);
    assert!(error["msg"].as_str().unwrap().contains("should not be the same"), "{error}");
    assert!(is_up(world.host()));
}

#[test]
fn del_without_a_namespace_succeeds() {
    let world = World::new();
    let netns = world.netns("c1");
    let file = world.write("file", "");
    for path in ["", "/run/netns/absent", file.to_str().unwrap()] {
        call(&world, "DEL", &netns, &config("1.0.0")).env("CNI_NETNS", path).run().success();
    }
    call(&world, "ADD", &netns, &config("1.0.0")).env("CNI_NETNS", file.as_os_str()).run().error(8);
    for verb in ["STATUS", "GC"] {
        call(&world, verb, &netns, &config("1.1.0")).run().success();
    }
}
