//! A machine with an uplink to another one, and plugins that hang a container's
//! interface on it.

use podwire_testkit::{GoPlugins, Netns, Output, Plugin, World};
use serde_json::{Value, json};

use crate::node::wait_until;

/// The uplink's name on the host.
pub const UPLINK: &str = "up0";

/// The machine, and the one beside it.
#[derive(Debug)]
pub struct Segment {
    /// The machine.
    pub world: World,
    /// The other one: 10.1.0.254 and `fd01::254`, at the far end of the uplink.
    pub outside: Netns,
}

impl Segment {
    /// A machine whose uplink has no address.
    #[track_caller]
    #[allow(clippy::new_without_default)] // It has an effect.
    pub fn new() -> Self {
        let world = World::new();
        let outside = world.netns("outside");
        let segment = Self { world, outside };
        segment.host("ip link add up0 type veth peer name eth0 netns outside");
        segment.host("ip link set up0 up");
        for command in [
            "ip link set lo up",
            "ip addr add 10.1.0.254/24 dev eth0",
            "ip addr add fd01::254/64 dev eth0 nodad",
            "ip link set eth0 up",
        ] {
            run(&segment.outside, command);
        }
        // Until the kernel has noticed that both ends are up, it drops frames.
        for (netns, name) in [(segment.world.host(), UPLINK), (&segment.outside, "eth0")] {
            let is_up = || netns.ip_json(&["link", "show", "dev", name])[0]["operstate"] == "UP";
            wait_until("the uplink", is_up);
        }
        segment
    }

    /// Runs a command line on the host.
    #[track_caller]
    pub fn host(&self, command: &str) -> Output {
        self.world.exec(&command.split(' ').collect::<Vec<_>>())
    }

    /// An empty namespace.
    #[track_caller]
    pub fn container(&self, id: &str) -> Netns {
        self.world.netns(id)
    }

    /// A call of our plugin that the configuration names, for `eth0` of a
    /// container.
    #[track_caller]
    pub fn call(&self, verb: &str, config: &Value, container: &Netns) -> Plugin {
        let plugin = self.world.plugin(config["type"].as_str().expect("a type"));
        prepared(plugin, verb, config, container)
    }

    /// ADD; returns the configuration with the result as prevResult.
    #[track_caller]
    pub fn add(&self, config: &Value, container: &Netns) -> Value {
        let result = self.call("ADD", config, container).run().success().json();
        let mut config = config.clone();
        config["prevResult"] = result;
        config
    }

    /// CHECK; returns what differs.
    ///
    /// # Errors
    /// The differences, as CHECK names them.
    #[track_caller]
    pub fn check(&self, config: &Value, container: &Netns) -> Result<(), String> {
        let output = self.call("CHECK", config, container).run();
        if output.code == 0 { Ok(()) } else { Err(output.error(100).to_string()) }
    }

    /// DEL, which always succeeds.
    #[track_caller]
    pub fn del(&self, config: &Value, container: &Netns) {
        self.call("DEL", config, container).run().success();
    }

    /// ADD by Go's plugin, CHECK and DEL by ours: nothing is left. DEL comes without
    /// prevResult where the version sends none.
    #[track_caller]
    pub fn is_taken_over(&self, go: &GoPlugins, config: &Value, works: impl Fn(&Netns)) {
        let container = self.container("c1");
        // Go's waits for the end of the search for duplicates, which others look at.
        for whose in ["all", "default"] {
            let key = format!("net.ipv6.conf.{whose}.accept_dad=0");
            run(&container, &format!("sysctl -q -w {key}"));
        }
        let before = (self.world.snapshot(), container.snapshot());
        let plugin = go.plugin(config["type"].as_str().expect("a type"));
        let mut checked = config.clone();
        checked["prevResult"] = prepared(plugin, "ADD", config, &container).run().success().json();
        works(&container);
        if config["cniVersion"].as_str() >= Some("0.4.0") {
            self.check(&checked, &container).unwrap_or_else(|found| panic!("{config}: {found}"));
            self.del(&checked, &container);
        } else {
            self.del(config, &container);
        }
        container.snapshot().since(&before.1).assert_empty();
        self.world.snapshot().since(&before.0).beyond_residue(&[]).assert_empty();
        container.remove();
    }

    /// The addresses that host-local holds for a network.
    pub fn reserved(&self, network: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(format!("/var/lib/cni/networks/{network}")) else {
            return Vec::new();
        };
        let names = entries.flatten().map(|entry| entry.file_name().display().to_string());
        let mut names: Vec<_> =
            names.filter(|name| name.parse::<std::net::IpAddr>().is_ok()).collect();
        names.sort_unstable();
        names
    }
}

/// A plugin with the variables of a call for `eth0` of a container.
#[track_caller]
pub fn prepared(plugin: Plugin, verb: &str, config: &Value, container: &Netns) -> Plugin {
    let plugin = plugin.command(verb).container(container.name()).netns(container);
    plugin.ifname("eth0").config(config)
}

/// Runs a command line in a namespace.
#[track_caller]
pub fn run(netns: &Netns, command: &str) -> Output {
    netns.exec(&command.split(' ').collect::<Vec<_>>())
}

/// A configuration of the plugin with host-local of 10.1.0.0/24, and these keys
/// besides.
pub fn config(plugin: &str, more: &Value) -> Value {
    let mut config = json!({
        "cniVersion": "1.1.0",
        "name": "pods",
        "type": plugin,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": "10.1.0.0/24"}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    });
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    config
}

/// The interface `eth0` as `ip -d link` shows it.
#[track_caller]
pub fn link(container: &Netns) -> Value {
    container.ip_json(&["-d", "link", "show", "dev", "eth0"])[0].clone()
}

/// Whether a namespace holds nothing but its loopback.
#[track_caller]
pub fn is_empty(container: &Netns) -> bool {
    container.ip_json(&["link"]).as_array().expect("links").len() == 1
}
