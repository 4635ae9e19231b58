//! One plugin of ours in a private world, called as a runtime calls it.

use std::path::Path;

use podwire_testkit::state::Change;
use podwire_testkit::{GoPlugins, Netns, Output, Plugin, World};
use serde_json::{Value, json};

/// A world and the plugin that a test is about; the host is the world's own
/// namespace.
#[derive(Debug)]
pub struct Lab {
    /// The world.
    pub world: World,
    plugin: &'static str,
    ifname: &'static str,
}

impl Lab {
    /// A fresh world for the plugin of this type; its interface is `eth0`.
    #[track_caller]
    pub fn new(plugin: &'static str) -> Self {
        Self { world: World::new(), plugin, ifname: "eth0" }
    }

    /// The same with another interface name.
    #[must_use]
    pub fn with_ifname(self, ifname: &'static str) -> Self {
        Self { ifname, ..self }
    }

    /// A container whose `lo` is up.
    #[track_caller]
    pub fn container(&self, name: &str) -> Netns {
        let netns = self.world.netns(name);
        netns.exec(&["ip", "link", "set", "lo", "up"]);
        netns
    }

    /// The same without detection of duplicate IPv6 addresses, for tests of something
    /// else: an ADD waits a second and more for its end, the Go plugins in vain, for
    /// longer, where the interface has no carrier.
    #[track_caller]
    pub fn container_without_detection(&self, name: &str) -> Netns {
        let netns = self.container(name);
        for whose in ["all", "default"] {
            let off = format!("net.ipv6.conf.{whose}.accept_dad=0");
            netns.exec(&["sysctl", "-qw", &off]);
        }
        netns
    }

    /// A call of the plugin for a container, whose id is the namespace's name.
    #[track_caller]
    pub fn call(&self, verb: &str, netns: &Netns, config: &Value) -> Plugin {
        self.of(self.world.plugin(self.plugin), verb, netns, config)
    }

    /// The same of the Go plugin.
    #[track_caller]
    pub fn call_go(&self, go: &GoPlugins, verb: &str, netns: &Netns, config: &Value) -> Plugin {
        self.of(go.plugin(self.plugin), verb, netns, config)
    }

    fn of(&self, plugin: Plugin, verb: &str, netns: &Netns, config: &Value) -> Plugin {
        let plugin = plugin.command(verb).netns(netns).container(netns.name());
        plugin.ifname(self.ifname).config(config)
    }

    /// A successful ADD; returns what it printed.
    #[track_caller]
    pub fn add(&self, netns: &Netns, config: &Value) -> Value {
        self.call("ADD", netns, config).run().success().json()
    }

    /// A CHECK with the result of the ADD.
    #[track_caller]
    pub fn check(&self, netns: &Netns, config: &Value, result: &Value) -> Output {
        self.call("CHECK", netns, &with_previous(config, result)).run()
    }

    /// What the differences of a CHECK say; panics if it passes.
    #[track_caller]
    pub fn difference(&self, netns: &Netns, config: &Value, result: &Value) -> String {
        let error = self.check(netns, config, result).error(100);
        format!("{}; {}", error["msg"], error["details"])
    }

    /// A successful DEL with prevResult.
    #[track_caller]
    pub fn del(&self, netns: &Netns, config: &Value, result: &Value) {
        self.call("DEL", netns, &with_previous(config, result)).run().success();
    }

    /// A successful GC; these containers are alive.
    #[track_caller]
    pub fn gc(&self, config: &Value, alive: &[&Netns]) {
        let valid: Vec<_> = alive
            .iter()
            .map(|netns| json!({"containerID": netns.name(), "ifname": self.ifname}))
            .collect();
        let config = with(config, &json!({ "cni.dev/valid-attachments": valid }));
        self.world.plugin(self.plugin).command("GC").config(config).run().success();
    }

    /// A STATUS.
    #[track_caller]
    pub fn status(&self, config: &Value) -> Output {
        self.world.plugin(self.plugin).command("STATUS").config(config).run()
    }

    /// `ip` on the host.
    #[track_caller]
    pub fn ip(&self, arguments: &str) {
        ip(self.world.host(), arguments);
    }
}

/// `ip` in a namespace.
#[track_caller]
pub fn ip(namespace: &Netns, arguments: &str) {
    let mut command = vec!["ip"];
    command.extend(arguments.split_ascii_whitespace());
    namespace.exec(&command);
}

/// The link of this name, as `ip -j -d` shows it, if it is there.
pub fn link(namespace: &Netns, name: &str) -> Option<Value> {
    let all = namespace.ip_json(&["-d", "link", "show"]);
    all.as_array().unwrap().iter().find(|link| link["ifname"] == name).cloned()
}

/// Names of the links, sorted, without `lo`.
pub fn links(namespace: &Netns) -> Vec<String> {
    let links = namespace.ip_json(&["link"]);
    let names = links.as_array().unwrap().iter().map(|link| link["ifname"].as_str().unwrap());
    let mut names: Vec<_> = names.filter(|name| *name != "lo").map(ToOwned::to_owned).collect();
    names.sort();
    names
}

/// `<address>/<prefix>` of every address on a link that isn't link-local.
#[track_caller]
pub fn addresses(namespace: &Netns, name: &str) -> Vec<String> {
    let shown = namespace.ip_json(&["addr", "show", name]);
    let all = shown[0]["addr_info"].as_array().unwrap().iter();
    all.filter(|one| one["scope"] != "link")
        .map(|one| format!("{}/{}", one["local"].as_str().unwrap(), one["prefixlen"]))
        .collect()
}

/// Routes of the main table as `ip route` words them, sorted, without those that
/// the kernel makes for link-local addresses.
#[track_caller]
pub fn routes(namespace: &Netns) -> Vec<String> {
    let mut routes = Vec::new();
    for family in ["-4", "-6"] {
        let shown = namespace.exec(&["ip", family, "route"]).stdout;
        routes.extend(shown.lines().map(|line| line.trim().to_owned()));
    }
    routes.retain(|route| !route.starts_with("fe80::/64"));
    routes.sort();
    routes
}

/// Reservations of host-local for a network.
pub fn reservations(network: &str) -> Vec<String> {
    let directory = Path::new("/var/lib/cni/networks").join(network);
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.parse::<std::net::IpAddr>().is_ok()).collect();
    names.sort();
    names
}

/// Marks, locks and indexes, which may stay behind.
pub fn is_bookkeeping(change: &Change) -> bool {
    let name = change.name();
    name.contains("last_reserved_ip") || name.ends_with("/lock") || name.contains("/.podwire/")
}

/// The configuration as a runtime sends it after ADD.
#[must_use]
pub fn with_previous(config: &Value, result: &Value) -> Value {
    with(config, &json!({ "prevResult": result }))
}

/// A configuration with keys replaced or added.
#[must_use]
pub fn with(config: &Value, more: &Value) -> Value {
    let mut config = config.clone();
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

/// `ipam` of host-local with one range set for each subnet.
#[must_use]
pub fn host_local(subnets: &[&str]) -> Value {
    let ranges: Vec<_> = subnets.iter().map(|subnet| json!([{ "subnet": subnet }])).collect();
    let routes: Vec<_> = subnets
        .iter()
        .map(|subnet| json!({"dst": if subnet.contains(':') { "::/0" } else { "0.0.0.0/0" }}))
        .collect();
    json!({"type": "host-local", "ranges": ranges, "routes": routes})
}
