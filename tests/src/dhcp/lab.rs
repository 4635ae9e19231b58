//! A machine with an uplink to a DHCP server's, and containers on it.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use podwire_testkit::{Background, GoPlugins, Log, Netns, Plugin, World};
use serde_json::{Value, json};

use super::daemon::Daemon;
use crate::lab::{addresses, with_previous};
use crate::node::wait_until;
use crate::segment::{prepared, run};

/// How containers get to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wiring {
    /// Plugin `bridge`, the uplink being a port of the bridge.
    Bridge,
    /// Plugin `macvlan` on the uplink.
    Macvlan,
}

/// Whose programs are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Podwire's.
    Ours,
    /// Go's, release 1.9.1 or newer.
    Go,
}

/// The machine, and the one with the server.
#[derive(Debug)]
pub struct Lab {
    /// The machine.
    pub world: World,
    /// The server's machine, with `eth0`.
    pub server: Netns,
    wiring: Wiring,
    plugins: Side,
}

impl Lab {
    /// A machine with our plugins.
    #[track_caller]
    pub fn new(wiring: Wiring) -> Self {
        Self::with_plugins(Side::Ours, wiring)
    }

    /// A machine with the plugins of either side.
    #[track_caller]
    pub fn with_plugins(plugins: Side, wiring: Wiring) -> Self {
        let world = World::new();
        let server = world.netns("server");
        let lab = Self { world, server, wiring, plugins };
        lab.host("ip link add up0 type veth peer name eth0 netns server");
        if wiring == Wiring::Bridge {
            lab.host("ip link add br0 type bridge");
            lab.host("ip link set br0 up");
            lab.host("ip link set up0 master br0");
        }
        lab.host("ip link set up0 up");
        run(&lab.server, "ip link set lo up");
        run(&lab.server, "ip link set eth0 up");
        // Until the kernel has noticed that both ends are up, it drops frames.
        for (netns, name) in [(lab.world.host(), "up0"), (&lab.server, "eth0")] {
            let is_up = || netns.ip_json(&["link", "show", "dev", name])[0]["operstate"] == "UP";
            wait_until("the uplink", is_up);
        }
        lab
    }

    /// The same machine with the other plugins from now on.
    #[must_use]
    pub fn switched_to(self, plugins: Side) -> Self {
        Self { plugins, ..self }
    }

    /// Starts `dhcp daemon` on the machine.
    #[track_caller]
    pub fn daemon(&self, side: Side, options: &[&str]) -> Daemon {
        Daemon::start(&self.program(side), options)
    }

    /// The program `dhcp` of either side.
    #[track_caller]
    pub fn program(&self, side: Side) -> PathBuf {
        match side {
            Side::Ours => self.world.plugin_directory().join("dhcp"),
            Side::Go => GoPlugins::sid().directory().join("dhcp"),
        }
    }

    /// A namespace for a container.
    #[track_caller]
    pub fn container(&self, id: &str) -> Netns {
        self.world.netns(id)
    }

    /// The wiring's plugin with IPAM by DHCP.
    pub fn config(&self) -> Value {
        self.config_with(&json!({}))
    }

    /// The same with more keys in `ipam`.
    #[track_caller]
    pub fn config_with(&self, more: &Value) -> Value {
        let mut config = match self.wiring {
            Wiring::Bridge => json!({"type": "bridge", "bridge": "br0"}),
            Wiring::Macvlan => json!({"type": "macvlan", "master": "up0", "mode": "bridge"}),
        };
        config["cniVersion"] = "1.1.0".into();
        config["name"] = "lan".into();
        config["ipam"] = json!({"type": "dhcp"});
        for (key, value) in more.as_object().expect("an object") {
            config["ipam"][key] = value.clone();
        }
        config
    }

    /// A call for `eth0` of a container, of the plugin that the configuration names.
    #[track_caller]
    pub fn call(&self, verb: &str, container: &Netns, config: &Value) -> Plugin {
        let name = config["type"].as_str().expect("a type");
        let plugin = match self.plugins {
            Side::Ours => self.world.plugin(name),
            Side::Go => GoPlugins::sid().plugin(name),
        };
        prepared(plugin, verb, config, container)
    }

    /// ADD; returns the result.
    #[track_caller]
    pub fn add(&self, container: &Netns, config: &Value) -> Value {
        self.call("ADD", container, config).run().success().json()
    }

    /// CHECK with the result of ADD.
    #[track_caller]
    pub fn check(&self, container: &Netns, config: &Value, result: &Value) {
        self.call("CHECK", container, &with_previous(config, result)).run().success();
    }

    /// DEL with the result of ADD.
    #[track_caller]
    pub fn del(&self, container: &Netns, config: &Value, result: &Value) {
        self.call("DEL", container, &with_previous(config, result)).run().success();
    }

    /// Starts to write down every DHCP packet on the server's `eth0`, a line each,
    /// in tcpdump's words.
    #[track_caller]
    pub fn packets(&self) -> Background {
        let mut command = Command::new("/usr/bin/tcpdump");
        command.args(["-l", "-n", "-e", "-v", "-s", "0", "--immediate-mode", "-i", "eth0"]);
        command.args(["-Z", "root", "udp and (port 67 or port 68)"]);
        let log = Log::default();
        let process = self.server.run(|| Background::spawn(command, &log));
        let patience = Duration::from_secs(10);
        log.wait_for(0, "tcpdump", patience, |line| line.contains("listening on eth0"));
        process
    }

    /// Starts to write down every change of addresses in a container, a line each,
    /// in the words of `ip monitor`.
    #[track_caller]
    pub fn address_changes(&self, container: &Netns) -> Background {
        let mut command = Command::new("/bin/ip");
        command.args(["-4", "-o", "monitor", "address"]);
        let process = container.run(|| Background::spawn(command, &Log::default()));
        let sockets = format!("/proc/{}/net/netlink", process.id());
        let id = process.id().to_string();
        wait_until("ip monitor", || {
            let sockets = std::fs::read_to_string(&sockets).unwrap_or_default();
            // Kernel address, protocol, port (the process id), groups.
            let fields = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            fields.into_iter().any(|fields| fields[2] == id && fields[3] != "00000000")
        });
        process
    }

    /// A command line on the machine.
    #[track_caller]
    pub fn host(&self, command: &str) {
        run(self.world.host(), command);
    }
}

/// The address in a result.
#[track_caller]
pub fn address_in(result: &Value) -> Ipv4Addr {
    let address = result["ips"][0]["address"].as_str().expect("an address");
    address.split('/').next().unwrap().parse().expect("an IPv4 address")
}

/// Waits for a change that [`Lab::address_changes`] writes down.
#[track_caller]
pub fn wait_for_address(changes: &Background, address: Ipv4Addr, change: AddressChange) {
    let wanted = format!(" inet {address}/");
    changes.log().wait_for(0, &format!("{change:?} {address}"), Duration::from_secs(40), |line| {
        line.contains(&wanted) && line.starts_with("Deleted") == (change == AddressChange::Removed)
    });
}

/// What happened to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressChange {
    /// It came.
    Added,
    /// It went.
    Removed,
}

/// The only address of a container's `eth0` in the kernel.
#[track_caller]
pub fn address_of(container: &Netns) -> Ipv4Addr {
    let all = addresses(container, "eth0");
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].split('/').next().unwrap().parse().expect("an IPv4 address")
}
