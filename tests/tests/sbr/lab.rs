//! A container with two interfaces, each with a router behind it.

use podwire_testkit::{GoPlugins, Netns, Output, Plugin, World};
use serde_json::{Value, json};

pub(crate) struct Lab {
    pub(crate) world: World,
    pub(crate) container: Netns,
    /// Behind `net1` and `net2`.
    pub(crate) routers: [Netns; 2],
}

impl Lab {
    /// `netN` has `10.N.0.2/24` and `fd00:N::2/64`, its router `10.N.0.1` and
    /// `fd00:N::1`. Default routes go through `net2`.
    pub(crate) fn new() -> Self {
        let world = World::new();
        let container = world.netns("c");
        let settled = ["sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0"];
        container.exec(&settled);
        container.exec(&["ip", "link", "set", "lo", "up"]);
        let routers = [1, 2].map(|number| {
            let name = format!("r{number}");
            let router = world.netns(&name);
            router.exec(&settled);
            router.exec(&["ip", "link", "set", "lo", "up"]);
            let inside = format!("net{number}");
            container.exec(&[
                "ip", "link", "add", &inside, "type", "veth", "peer", "name", "eth0", "netns",
                &name,
            ]);
            for (netns, device, host) in [(&router, "eth0", 1), (&container, inside.as_str(), 2)] {
                netns.exec(&["ip", "link", "set", device, "up"]);
                let v4 = format!("10.{number}.0.{host}/24");
                netns.exec(&["ip", "addr", "add", &v4, "dev", device]);
                let v6 = format!("fd00:{number}::{host}/64");
                netns.exec(&["ip", "addr", "add", &v6, "dev", device, "nodad"]);
            }
            router
        });
        let lab = Self { world, container, routers };
        for gateway in ["10.2.0.1", "fd00:2::1"] {
            lab.container.exec(&["ip", "route", "add", "default", "via", gateway]);
        }
        lab
    }

    /// Puts the routes back that an ADD moves, as the kernel has them.
    pub(crate) fn restore_main(&self) {
        for address in ["10.1.0.2/24", "fd00:1::2/64"] {
            let nodad: &[&str] = if address.contains(':') { &["nodad"] } else { &[] };
            self.container.exec(&["ip", "addr", "del", address, "dev", "net1"]);
            let add = ["ip", "addr", "add", address, "dev", "net1"];
            self.container.exec(&[&add[..], nodad].concat());
        }
    }

    /// What the plugin before `sbr` said about `netN`.
    pub(crate) fn prev_result(&self, number: u8) -> Value {
        json!({
            "cniVersion": "1.0.0",
            "interfaces": [{"name": format!("net{number}"), "sandbox": self.container.path()}],
            "ips": [
                {
                    "address": format!("10.{number}.0.2/24"), "interface": 0,
                    "gateway": format!("10.{number}.0.1")
                },
                {
                    "address": format!("fd00:{number}::2/64"), "interface": 0,
                    "gateway": format!("fd00:{number}::1")
                }
            ]
        })
    }

    pub(crate) fn sbr(&self, verb: &str, number: u8, keys: &Value) -> Plugin {
        self.call(self.world.plugin("sbr"), verb, number, keys)
    }

    pub(crate) fn go(&self, verb: &str, number: u8, keys: &Value) -> Plugin {
        self.call(GoPlugins::sid().plugin("sbr"), verb, number, keys)
    }

    fn call(&self, plugin: Plugin, verb: &str, number: u8, keys: &Value) -> Plugin {
        let mut config = json!({
            "cniVersion": "1.0.0", "name": "n", "type": "sbr",
            "prevResult": self.prev_result(number)
        });
        for (key, value) in keys.as_object().unwrap() {
            config[key] = value.clone();
        }
        plugin
            .command(verb)
            .container("c1")
            .netns(&self.container)
            .ifname(&format!("net{number}"))
            .config(config)
    }

    #[track_caller]
    pub(crate) fn add(&self, number: u8, keys: &Value) -> Output {
        self.sbr("ADD", number, keys).run().success()
    }

    /// The rules that lead from one address to a table, as `ip rule` says.
    pub(crate) fn rules(&self) -> Vec<String> {
        let mut rules = Vec::new();
        for family in ["-4", "-6"] {
            let output = self.container.exec(&["ip", family, "rule"]);
            rules.extend(
                output
                    .stdout
                    .lines()
                    .filter_map(|line| line.split_once("from ").map(|(_, rest)| rest))
                    .filter(|rule| !rule.starts_with("all"))
                    .map(|rule| rule.trim().to_owned()),
            );
        }
        rules.sort();
        rules
    }

    /// A table's routes, destination and gateway, link-local ones left out.
    pub(crate) fn routes(&self, table: &str) -> Vec<String> {
        let mut routes = Vec::new();
        for family in ["-4", "-6"] {
            let listed = self.container.try_exec(&["ip", family, "route", "show", "table", table]);
            for line in listed.stdout.lines() {
                let words: Vec<_> = line.split(' ').collect();
                if !words[0].starts_with("fe80") && !words[0].starts_with("multicast") {
                    let via = words.windows(2).find(|pair| pair[0] == "via");
                    let via = via.map(|pair| format!(" via {}", pair[1])).unwrap_or_default();
                    let device = words.windows(2).find(|pair| pair[0] == "dev").unwrap()[1];
                    routes.push(format!("{}{via} dev {device}", words[0]));
                }
            }
        }
        routes.sort();
        routes
    }
}
