//! A host with bridges, containers on them, and a neighbour outside.

use std::net::IpAddr;
use std::time::Duration;

use podwire_testkit::probe::ping;
use podwire_testkit::{Netns, Output, Plugin, World};
use serde_json::{Value, json};

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait for what must not come.
const SILENCE: Duration = Duration::from_millis(300);
/// The neighbour's addresses.
pub(crate) const OUTSIDE: [&str; 2] = ["192.0.2.2", "2001:db8::2"];

pub(crate) struct Lab {
    pub(crate) world: World,
    pub(crate) outside: Netns,
}

pub(crate) struct Container {
    pub(crate) netns: Netns,
    pub(crate) id: String,
    pub(crate) addresses: [IpAddr; 2],
    pub(crate) prev_result: Value,
}

impl Lab {
    /// A host whose own firewall drops what it would route.
    pub(crate) fn dropping() -> Self {
        let lab = Self::new();
        for tool in ["iptables-nft", "ip6tables-nft"] {
            lab.world.exec(&[tool, "-P", "FORWARD", "DROP"]);
        }
        lab
    }

    pub(crate) fn new() -> Self {
        let world = World::new();
        for (key, value) in [("net.ipv4.ip_forward", "1"), ("net.ipv6.conf.all.forwarding", "1")] {
            world.exec(&["sysctl", "-qw", &format!("{key}={value}")]);
        }
        // A router without a settled link-local address asks no neighbour.
        world.exec(&["sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0"]);
        let outside = world.netns("outside");
        let lab = Self { world, outside };
        lab.filter_bridged(false);
        lab.pair("up0", "outside", "eth0");
        Self::address(lab.world.host(), "up0", ["192.0.2.1/24", "2001:db8::1/64"]);
        Self::address(&lab.outside, "eth0", ["192.0.2.2/24", "2001:db8::2/64"]);
        for gateway in ["192.0.2.1", "2001:db8::1"] {
            lab.outside.exec(&["ip", "route", "add", "default", "via", gateway]);
        }
        lab
    }

    /// Whether packets between ports of one bridge pass the packet filter.
    pub(crate) fn filter_bridged(&self, on: bool) {
        for tool in ["iptables", "ip6tables"] {
            let setting = format!("net.bridge.bridge-nf-call-{tool}={}", u8::from(on));
            self.world.exec(&["sysctl", "-qw", &setting]);
        }
    }

    fn pair(&self, host_end: &str, netns: &str, inside: &str) {
        let settled = "net.ipv6.conf.default.accept_dad=0";
        self.world.exec(&["ip", "netns", "exec", netns, "sysctl", "-qw", settled]);
        self.world.exec(&[
            "ip", "link", "add", host_end, "type", "veth", "peer", "name", inside, "netns", netns,
        ]);
        self.world.exec(&["ip", "link", "set", host_end, "up"]);
    }

    fn address(netns: &Netns, device: &str, addresses: [&str; 2]) {
        netns.exec(&["ip", "link", "set", "lo", "up"]);
        netns.exec(&["ip", "link", "set", device, "up"]);
        for address in addresses {
            let nodad: &[&str] = if address.contains(':') { &["nodad"] } else { &[] };
            netns.exec(&[&["ip", "addr", "add", address, "dev", device][..], nodad].concat());
        }
    }

    /// The bridge brNUMBER with 10.NUMBER.0.1.
    pub(crate) fn bridge(&self, number: u8) {
        let name = format!("br{number}");
        let mac = format!("02:00:00:00:00:0{number}");
        self.world.exec(&["ip", "link", "add", &name, "address", &mac, "type", "bridge"]);
        let addresses = [format!("10.{number}.0.1/24"), format!("fd00:{number}::1/64")];
        Self::address(self.world.host(), &name, [&addresses[0], &addresses[1]]);
    }

    /// A container on brNUMBER at 10.NUMBER.0.HOST.
    pub(crate) fn container(&self, name: &str, number: u8, host: u8) -> Container {
        let netns = self.world.netns(name);
        let (bridge, host_end) = (format!("br{number}"), format!("v-{name}"));
        self.pair(&host_end, name, "eth0");
        self.world.exec(&["ip", "link", "set", &host_end, "master", &bridge]);
        let texts = [format!("10.{number}.0.{host}"), format!("fd00:{number}::{host}")];
        let nets = [format!("{}/24", texts[0]), format!("{}/64", texts[1])];
        Self::address(&netns, "eth0", [&nets[0], &nets[1]]);
        for gateway in [format!("10.{number}.0.1"), format!("fd00:{number}::1")] {
            netns.exec(&["ip", "route", "add", "default", "via", &gateway]);
        }
        let prev_result = json!({
            "cniVersion": "1.0.0",
            "interfaces": [
                {"name": &bridge}, {"name": host_end}, {"name": "eth0", "sandbox": netns.path()}
            ],
            "ips": [
                {"address": nets[0], "interface": 2}, {"address": nets[1], "interface": 2}
            ]
        });
        let addresses = texts.map(|text| text.parse().unwrap());
        // The address may have been another container's.
        self.world.exec(&["ip", "neigh", "flush", "dev", &bridge]);
        for address in addresses {
            // Its port of the bridge takes a moment.
            ping(self.world.host(), address, PATIENCE).unwrap();
        }
        Container { netns, id: name.to_owned(), addresses, prev_result }
    }

    /// A call of `firewall` about a container.
    pub(crate) fn firewall(&self, verb: &str, container: &Container, keys: &Value) -> Plugin {
        call(self.world.plugin("firewall"), verb, container, keys)
    }

    #[track_caller]
    pub(crate) fn add(&self, container: &Container, keys: &Value) -> Output {
        self.firewall("ADD", container, keys).run().success()
    }

    /// DEL as a runtime that lost everything but the container's id.
    #[track_caller]
    pub(crate) fn del_blind(&self, container: &Container, keys: &Value) {
        let mut keys = keys.clone();
        keys["prevResult"] = Value::Null;
        self.firewall("DEL", container, &keys).without_env("CNI_NETNS").run().success();
    }

    #[track_caller]
    pub(crate) fn gc(&self, keys: &Value, alive: &[&Container]) {
        let valid: Vec<_> = alive
            .iter()
            .map(|container| json!({"containerID": container.id, "ifname": "eth0"}))
            .collect();
        let mut config = json!({
            "cniVersion": "1.1.0", "name": "pods", "type": "firewall",
            "cni.dev/valid-attachments": valid
        });
        merge(&mut config, keys);
        self.world.plugin("firewall").command("GC").config(config).run().success();
    }

    /// `iptables -S` and `ip6tables -S`, which must have no complaint.
    #[track_caller]
    pub(crate) fn rules(&self) -> [String; 2] {
        ["iptables-nft", "ip6tables-nft"].map(|tool| {
            let output = self.world.exec(&[tool, "-S"]);
            assert!(!output.stderr.contains("incompatible"), "{output:#?}");
            output.stdout
        })
    }

    /// Panics unless the rules of neither IP version hold any of ours.
    #[track_caller]
    pub(crate) fn assert_clean(&self) {
        for rules in self.rules() {
            let left: Vec<_> = rules.lines().filter(|line| line.starts_with("-A")).collect();
            assert!(left.is_empty(), "{rules}");
            assert!(!rules.contains("CNI-FORWARD") && !rules.contains("ISOLATION"), "{rules}");
        }
        let sets = self.world.exec(&["nft", "list", "ruleset"]).stdout;
        assert!(!sets.contains("elements"), "{sets}");
    }
}

/// A call of any `firewall` program.
pub(crate) fn call(plugin: Plugin, verb: &str, container: &Container, keys: &Value) -> Plugin {
    let mut config = json!({
        "cniVersion": "1.0.0", "name": "pods", "type": "firewall", "backend": "iptables",
        "prevResult": container.prev_result
    });
    merge(&mut config, keys);
    plugin
        .command(verb)
        .container(&container.id)
        .netns(&container.netns)
        .ifname("eth0")
        .config(config)
}

fn merge(config: &mut Value, keys: &Value) {
    for (key, value) in keys.as_object().unwrap() {
        config[key] = value.clone();
    }
}

/// Whether packets come and go, by both IP versions, which must agree.
#[track_caller]
pub(crate) fn reaches(from: &Netns, to: [IpAddr; 2]) -> bool {
    let outcome = to.map(|address| ping(from, address, SILENCE).is_ok());
    assert_eq!(outcome[0], outcome[1], "IPv4 and IPv6 from {} to {to:?}", from.name());
    outcome[0]
}

pub(crate) fn outside() -> [IpAddr; 2] {
    OUTSIDE.map(|text| text.parse().unwrap())
}
