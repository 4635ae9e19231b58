//! A host with a bridge, containers on it, and a neighbour outside.
//!
//! The containers are made with `ip` rather than our own plugin: what is tested
//! here is `portmap` alone, behind any plugin.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use podwire_testkit::probe::{TcpEcho, UdpEcho, ping, tcp_connect, udp_exchange};
use podwire_testkit::{Netns, Output, Plugin, World};
use serde_json::{Value, json};

/// Longer than any answer takes, shorter than a test may.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait for what must not come.
pub(crate) const SILENCE: Duration = Duration::from_millis(300);
/// The host's addresses towards the neighbour.
pub(crate) const HOST: [&str; 2] = ["192.0.2.1", "2001:db8::1"];
/// The neighbour's.
pub(crate) const OUTSIDE: [&str; 2] = ["192.0.2.2", "2001:db8::2"];
/// The host's addresses on the bridge.
pub(crate) const GATEWAY: [&str; 2] = ["10.1.0.1", "fd00:1::1"];

pub(crate) struct Lab {
    pub(crate) world: World,
    /// A host next to ours, with a route to nothing but ours.
    pub(crate) outside: Netns,
    bridge: &'static str,
}

pub(crate) struct Container {
    pub(crate) netns: Netns,
    id: String,
    /// IPv4 and IPv6.
    pub(crate) addresses: [IpAddr; 2],
    prev_result: Value,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self::with_bridge("cni0")
    }

    /// The host, with a bridge of that name whose frames don't pass the packet
    /// filter on their way (`br_netfilter`), as every packet must be routed.
    pub(crate) fn with_bridge(bridge: &'static str) -> Self {
        let world = World::new();
        for (key, value) in [("net.ipv4.ip_forward", "1"), ("net.ipv6.conf.all.forwarding", "1")] {
            world.exec(&["sysctl", "-qw", &format!("{key}={value}")]);
        }
        // A bridge without an address of its own takes another one with each new
        // port, and the containers go on sending to the old.
        let address = ["address", "02:00:00:00:00:01"];
        world.exec(&[&["ip", "link", "add", bridge], &address[..], &["type", "bridge"]].concat());
        world.exec(&["ip", "link", "set", bridge, "up"]);
        add_addresses(world.host(), bridge, [(GATEWAY[0], 24), (GATEWAY[1], 64)]);
        let outside = world.netns("outside");
        let pair = ["ip", "link", "add", "up0", "type", "veth", "peer", "name", "eth0", "netns"];
        world.exec(&[&pair[..], &["outside"]].concat());
        world.exec(&["ip", "link", "set", "up0", "up"]);
        add_addresses(world.host(), "up0", [(HOST[0], 24), (HOST[1], 64)]);
        let lab = Self { world, outside: outside.clone(), bridge };
        lab.filter_bridged(false);
        outside.exec(&["ip", "link", "set", "lo", "up"]);
        outside.exec(&["ip", "link", "set", "eth0", "up"]);
        add_addresses(&outside, "eth0", [(OUTSIDE[0], 24), (OUTSIDE[1], 64)]);
        for gateway in HOST {
            outside.exec(&["ip", "route", "add", "default", "via", gateway]);
        }
        lab
    }

    /// Whether bridged frames pass the packet filter too. Then a frame that is
    /// translated back to the port it came from needs that port's hairpin
    /// mode, which the containers' ports have.
    pub(crate) fn filter_bridged(&self, on: bool) {
        for tool in ["iptables", "ip6tables"] {
            let setting = format!("net.bridge.bridge-nf-call-{tool}={}", u8::from(on));
            self.world.exec(&["sysctl", "-qw", &setting]);
        }
    }

    /// A container on the bridge, at 10.1.0.NUMBER.
    pub(crate) fn container(&self, name: &str, number: u8) -> Container {
        let netns = self.world.netns(name);
        let host_end = format!("v-{name}");
        let pair = ["ip", "link", "add", &host_end, "type", "veth", "peer", "name", "eth0"];
        self.world.exec(&[&pair[..], &["netns", name]].concat());
        self.world.exec(&["ip", "link", "set", &host_end, "master", self.bridge, "up"]);
        let hairpin = ["type", "bridge_slave", "hairpin", "on"];
        self.world.exec(&[&["ip", "link", "set", &host_end], &hairpin[..]].concat());
        netns.exec(&["ip", "link", "set", "lo", "up"]);
        netns.exec(&["ip", "link", "set", "eth0", "up"]);
        let texts = [format!("10.1.0.{number}"), format!("fd00:1::{number}")];
        add_addresses(&netns, "eth0", [(&texts[0], 24), (&texts[1], 64)]);
        for gateway in GATEWAY {
            netns.exec(&["ip", "route", "add", "default", "via", gateway]);
        }
        let prev_result = json!({
            "cniVersion": "1.1.0",
            "interfaces": [
                {"name": self.bridge}, {"name": host_end},
                {"name": "eth0", "sandbox": netns.path()}
            ],
            "ips": [
                {"address": format!("{}/24", texts[0]), "interface": 2},
                {"address": format!("{}/64", texts[1]), "interface": 2}
            ]
        });
        let addresses: [IpAddr; 2] = texts.map(|text| text.parse().unwrap());
        for address in addresses {
            // Its port of the bridge takes a moment.
            ping(self.world.host(), address, PATIENCE)
                .unwrap_or_else(|error| panic!("{name} at {address}: {error}"));
        }
        Container { netns, id: name.to_owned(), addresses, prev_result }
    }

    /// A call of `portmap` about a container's `eth0` on the network `pods`.
    pub(crate) fn portmap(&self, verb: &str, container: &Container, config: &Value) -> Plugin {
        portmap(self.world.plugin("portmap"), verb, container, config)
    }

    pub(crate) fn add(&self, container: &Container, mappings: &Value) -> Output {
        let config = json!({"runtimeConfig": {"portMappings": mappings}});
        self.portmap("ADD", container, &config).run()
    }

    pub(crate) fn check(&self, container: &Container, mappings: &Value) -> Output {
        let config = json!({"runtimeConfig": {"portMappings": mappings}});
        self.portmap("CHECK", container, &config).run()
    }

    /// As a runtime that lost everything but the container's id.
    pub(crate) fn del(&self, container: &Container) -> Output {
        let config = json!({"prevResult": null});
        self.portmap("DEL", container, &config).without_env("CNI_NETNS").run()
    }

    /// Collects the network's garbage; these containers' `eth0` are alive.
    pub(crate) fn gc(&self, alive: &[&Container]) -> Output {
        let valid: Vec<_> = alive
            .iter()
            .map(|container| json!({"containerID": container.id, "ifname": "eth0"}))
            .collect();
        let config = json!({
            "cniVersion": "1.1.0", "name": "pods", "type": "portmap",
            "cni.dev/valid-attachments": valid
        });
        self.world.plugin("portmap").command("GC").config(config).run()
    }

    /// All of nftables, as the `nft` command shows it, without counters.
    pub(crate) fn ruleset(&self) -> String {
        self.world.exec(&["nft", "-s", "list", "ruleset"]).stdout
    }

    /// Whether any element, rule or owner of a container is left.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        self.ruleset().contains(text)
    }
}

impl Container {
    pub(crate) fn tcp(&self, port: u16) -> [TcpEcho; 2] {
        self.addresses.map(|address| TcpEcho::start(&self.netns, (address, port)))
    }

    pub(crate) fn udp(&self, port: u16) -> [UdpEcho; 2] {
        self.addresses.map(|address| UdpEcho::start(&self.netns, (address, port)))
    }

    /// As a reboot or a crash leaves it: gone, with its interface, without a DEL.
    pub(crate) fn vanish(&self, lab: &Lab) {
        lab.world.exec(&["ip", "link", "del", &format!("v-{}", self.id)]);
        self.netns.remove();
    }
}

/// A call of any `portmap` program, with these keys on top of the usual ones.
pub(crate) fn portmap(plugin: Plugin, verb: &str, container: &Container, keys: &Value) -> Plugin {
    let mut config = json!({
        "cniVersion": "1.0.0", "name": "pods", "type": "portmap",
        "capabilities": {"portMappings": true},
        "prevResult": container.prev_result
    });
    if config["cniVersion"] == "1.0.0" {
        config["prevResult"]["cniVersion"] = json!("1.0.0");
    }
    for (key, value) in keys.as_object().unwrap() {
        config[key] = value.clone();
    }
    plugin
        .command(verb)
        .container(&container.id)
        .netns(&container.netns)
        .ifname("eth0")
        .config(config)
}

fn add_addresses(netns: &Netns, device: &str, addresses: [(&str, u8); 2]) {
    for (address, prefix) in addresses {
        let address = format!("{address}/{prefix}");
        let nodad: &[&str] = if address.contains(':') { &["nodad"] } else { &[] };
        netns.exec(&[&["ip", "addr", "add", &address, "dev", device][..], nodad].concat());
    }
}

/// One TCP mapping for all addresses.
pub(crate) fn tcp(host_port: u16, container_port: u16) -> Value {
    json!([{"hostPort": host_port, "containerPort": container_port, "protocol": "tcp"}])
}

/// One UDP mapping for all addresses.
pub(crate) fn udp(host_port: u16, container_port: u16) -> Value {
    json!([{"hostPort": host_port, "containerPort": container_port, "protocol": "udp"}])
}

fn socket(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().unwrap(), port)
}

/// Connects and returns the address that the server saw.
#[track_caller]
pub(crate) fn tcp_seen(from: &Netns, address: &str, port: u16) -> IpAddr {
    match tcp_connect(from, socket(address, port), PATIENCE) {
        Ok(connection) => connection.seen_as.ip(),
        Err(error) => panic!("{} to {address} port {port}: {error}", from.name()),
    }
}

/// Panics if a connection comes about.
#[track_caller]
pub(crate) fn tcp_refused(from: &Netns, address: &str, port: u16) {
    if let Ok(connection) = tcp_connect(from, socket(address, port), SILENCE) {
        panic!("{} reached {address} port {port}: {connection:?}", from.name());
    }
}

/// Sends a datagram and returns the address that the server saw.
pub(crate) fn udp_seen(from: &Netns, address: &str, port: u16) -> io::Result<IpAddr> {
    udp_exchange(from, socket(address, port), PATIENCE).map(|seen| seen.ip())
}

/// Panics if a datagram is answered.
#[track_caller]
pub(crate) fn udp_refused(from: &Netns, address: &str, port: u16) {
    if let Ok(seen) = udp_exchange(from, socket(address, port), SILENCE) {
        panic!("{} reached {address} port {port}, seen as {seen}", from.name());
    }
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}
