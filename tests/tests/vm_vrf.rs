//! `vrf` on a kernel that has VRFs: routes, addresses, packets.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // It is all of tests.

use std::net::IpAddr;
use std::path::Path;

use podwire_testkit::probe::{ANSWER, ping};
use podwire_testkit::{Feature, Netns, Plugin, World};
use serde_json::{Value, json};

struct Lab {
    world: World,
    container: Netns,
}

impl Lab {
    /// A container with `net1` and `net2`, each with addresses and routes as
    /// an IPAM plugin gives them, and a router behind.
    fn new() -> Self {
        let world = World::new();
        world.needs(Feature::Vrf);
        let container = world.netns("c");
        container.exec(&["ip", "link", "set", "lo", "up"]);
        for number in [1, 2] {
            let (router, inside) = (format!("r{number}"), format!("net{number}"));
            let netns = world.netns(&router);
            container.exec(&[
                "ip", "link", "add", &inside, "type", "veth", "peer", "name", "eth0", "netns",
                &router,
            ]);
            for (netns, device, host) in [(&netns, "eth0", 1), (&container, inside.as_str(), 2)] {
                netns.exec(&["ip", "link", "set", device, "up"]);
                // The same subnets behind both: that's what VRFs are for.
                let v4 = format!("10.1.0.{host}/24");
                netns.exec(&["ip", "addr", "add", &v4, "dev", device]);
                let v6 = format!("fd00:1::{host}/64");
                netns.exec(&["ip", "addr", "add", &v6, "dev", device, "nodad"]);
            }
        }
        let lab = Self { world, container };
        lab.container.exec(&[
            "ip",
            "route",
            "add",
            "10.20.0.0/16",
            "via",
            "10.1.0.1",
            "dev",
            "net1",
        ]);
        lab.container.exec(&["ip", "route", "add", "default", "via", "10.1.0.1", "dev", "net1"]);
        lab.container.exec(&["ip", "route", "add", "default", "via", "fd00:1::1", "dev", "net1"]);
        lab
    }

    fn vrf(&self, verb: &str, number: u8, keys: &Value) -> Plugin {
        let mut config = json!({
            "cniVersion": "1.0.0", "name": "n", "type": "vrf", "vrfname": "blue",
            "prevResult": {
                "cniVersion": "1.0.0",
                "interfaces": [{"name": format!("net{number}"), "sandbox": self.container.path()}],
                "ips": [{"address": "10.1.0.2/24", "interface": 0}]
            }
        });
        for (key, value) in keys.as_object().unwrap() {
            config[key] = value.clone();
        }
        let plugin = self.world.plugin("vrf").command(verb).container("c1");
        plugin.netns(&self.container).ifname(&format!("net{number}")).config(config)
    }

    fn routes(&self, table: &str) -> String {
        let of = |family| {
            self.container.try_exec(&["ip", family, "route", "show", "table", table]).stdout
        };
        format!("{}{}", of("-4"), of("-6"))
    }

    fn master(&self, device: &str) -> Option<String> {
        let link = self.container.ip_json(&["link", "show", "dev", device]);
        link[0]["master"].as_str().map(str::to_owned)
    }

    fn has(&self, device: &str) -> bool {
        self.container.try_exec(&["ip", "link", "show", "dev", device]).code == 0
    }
}

#[test]
fn b124_routes_and_addresses_come_along_once() {
    let lab = Lab::new();
    lab.vrf("ADD", 1, &json!({})).run().success();
    assert_eq!(lab.master("net1").as_deref(), Some("blue"));
    let table = lab.routes("1");
    for route in [
        "default via 10.1.0.1 dev net1",
        "10.20.0.0/16 via 10.1.0.1 dev net1",
        "10.1.0.0/24 dev net1",
        "default via fd00:1::1 dev net1",
        "fd00:1::/64 dev net1",
    ] {
        assert_eq!(table.matches(route).count(), 1, "{route} in {table}");
    }
    assert!(!lab.routes("main").contains("net1"));
    let addresses = lab.container.exec(&["ip", "addr", "show", "dev", "net1"]).stdout;
    assert!(addresses.contains("10.1.0.2/24") && addresses.contains("fd00:1::2/64"));
    lab.vrf("CHECK", 1, &json!({})).run().success();
    let state = lab.container.snapshot();
    lab.vrf("ADD", 1, &json!({})).run().success();
    lab.container.snapshot().since(&state).assert_empty();
}

#[test]
fn b124_two_domains_have_the_same_addresses_and_reach_their_own_router() {
    let lab = Lab::new();
    lab.vrf("ADD", 1, &json!({"table": 10})).run().success();
    lab.vrf("ADD", 2, &json!({"vrfname": "red"})).run().success();
    assert!(lab.routes("10").contains("net1") && lab.routes("1").contains("net2"));
    let answers = |name: &str| {
        let path = Path::new("/run/netns").join(name);
        assert!(path.exists());
        lab.world.exec(&["ip", "netns", "exec", name, "ping", "-c", "1", "-W", "5", "10.1.0.2"]);
    };
    answers("r1");
    answers("r2");
    for number in [1, 2] {
        let name = if number == 1 { "blue" } else { "red" };
        lab.vrf("DEL", number, &json!({"vrfname": name})).run().success();
        assert!(!lab.has(name));
        lab.vrf("DEL", number, &json!({"vrfname": name})).run().success();
    }
    let gateway: IpAddr = "10.1.0.1".parse().unwrap();
    ping(&lab.container, gateway, ANSWER).unwrap();
}

#[test]
fn b124_the_domain_goes_with_its_last_interface() {
    let lab = Lab::new();
    // Taken by a rule of somebody's: skipped.
    lab.container.exec(&["ip", "rule", "add", "from", "10.77.0.1", "lookup", "1"]);
    for number in [1, 2] {
        lab.vrf("ADD", number, &json!({})).run().success();
    }
    assert!(lab.routes("2").contains("net1"));
    lab.vrf("DEL", 1, &json!({})).run().success();
    assert!(lab.master("net1").is_none() && lab.has("blue"));
    lab.vrf("CHECK", 2, &json!({})).run().success();
    let error = lab.vrf("CHECK", 1, &json!({})).run().error(100).to_string();
    assert!(error.contains("net1"), "{error}");
    // Its interface is gone already.
    lab.container.exec(&["ip", "link", "del", "net2"]);
    lab.vrf("DEL", 2, &json!({})).run().success();
    assert!(!lab.has("blue"));
    lab.vrf("DEL", 2, &json!({})).run().success();
    lab.vrf("DEL", 2, &json!({})).env("CNI_NETNS", "/run/netns/never").run().success();
    lab.vrf("DEL", 2, &json!({"vrfname": ""})).run().success();
}

#[test]
fn refusals_change_nothing() {
    let lab = Lab::new();
    lab.container.exec(&["ip", "link", "add", "br0", "type", "bridge"]);
    lab.container.exec(&["ip", "link", "add", "red", "type", "vrf", "table", "7"]);
    let before = lab.container.snapshot();
    let wrong = [
        (json!({"vrfname": "br0"}), "is not a VRF"),
        (json!({"vrfname": "red", "table": 8}), "different routing table"),
        (json!({"vrfname": ""}), "valid vrf name"),
        (json!({"prevResult": null}), "prevResult"),
    ];
    for (keys, expected) in wrong {
        let error = lab.vrf("ADD", 1, &keys).run().error(7).to_string();
        assert!(error.contains(expected), "{error}");
    }
    lab.container.snapshot().since(&before).assert_empty();
    lab.container.exec(&["ip", "link", "set", "net1", "master", "red"]);
    let error = lab.vrf("ADD", 1, &json!({})).run().error(7).to_string();
    assert!(error.contains("already has a master set: red"), "{error}");
    assert!(!lab.has("blue"));
    lab.world
        .plugin("vrf")
        .command("STATUS")
        .config(json!({"cniVersion": "1.1.0", "name": "n", "type": "vrf", "vrfname": "blue"}))
        .run()
        .success();
}

/// A runtime's DEL that comes late: the namespace's path is another container's by now.
#[test]
fn another_container_at_the_old_path_stays_in_its_domain() {
    let world = World::new();
    world.needs(Feature::Vrf);
    let netns = world.netns("c");
    let bridge = json!({
        "cniVersion": "1.1.0", "name": "n", "type": "bridge", "bridge": "br-vrf",
        "isGateway": true,
        "ipam": {"type": "host-local", "subnet": "10.9.0.0/24", "routes": [{"dst": "0.0.0.0/0"}]}
    });
    let attach = |netns: &Netns, container: &str| {
        let plugin = world.plugin("bridge").command("ADD").container(container);
        let result = plugin.netns(netns).ifname("eth0").config(bridge.clone()).run().success();
        vrf(&world, netns, "ADD", container, Some(&result.json())).run().success().json()
    };
    let first = attach(&netns, "c1");
    netns.remove();
    let netns = world.netns("c");
    let second = attach(&netns, "c2");
    let before = netns.snapshot();
    for known in [Some(&first), None] {
        vrf(&world, &netns, "DEL", "c1", known).run().success();
        netns.snapshot().since(&before).assert_empty();
    }
    vrf(&world, &netns, "CHECK", "c2", Some(&second)).run().success();
    // Its own DEL finds it by its mark, also without a result.
    vrf(&world, &netns, "DEL", "c2", None).run().success();
    assert_eq!(netns.try_exec(&["ip", "link", "show", "dev", "blue"]).code, 1);
}

fn vrf(
    world: &World,
    netns: &Netns,
    verb: &str,
    container: &str,
    previous: Option<&Value>,
) -> Plugin {
    let mut config = json!({"cniVersion": "1.1.0", "name": "n", "type": "vrf", "vrfname": "blue"});
    if let Some(previous) = previous {
        config["prevResult"] = previous.clone();
    }
    let plugin = world.plugin("vrf").command(verb).container(container);
    plugin.netns(netns).ifname("eth0").config(config)
}
