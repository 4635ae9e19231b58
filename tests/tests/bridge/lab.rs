//! A world with the bridge plugin in it.

use podwire_testkit::state::Change;
use podwire_testkit::{Netns, Output, Plugin, World};
use serde_json::{Value, json};

/// The host is the world's own namespace.
pub(crate) struct Lab {
    pub(crate) world: World,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self { world: World::new() }
    }

    /// A call of the bridge plugin for `eth0` of a container of that name.
    pub(crate) fn call(&self, verb: &str, netns: &Netns, config: &Value) -> Plugin {
        let plugin = self.world.plugin("bridge").command(verb).netns(netns);
        plugin.container(netns.name()).ifname("eth0").config(config)
    }

    /// A successful ADD; returns what it printed.
    #[track_caller]
    pub(crate) fn add(&self, netns: &Netns, config: &Value) -> Value {
        self.call("ADD", netns, config).run().success().json()
    }

    /// A CHECK with the result of the ADD.
    pub(crate) fn check(&self, netns: &Netns, config: &Value, result: &Value) -> Output {
        self.call("CHECK", netns, &with_prev(config, result)).run()
    }

    /// What the one difference of a CHECK says; panics if it passes.
    #[track_caller]
    pub(crate) fn difference(&self, netns: &Netns, config: &Value, result: &Value) -> String {
        let error = self.check(netns, config, result).error(100);
        format!("{}; {}", error["msg"], error["details"])
    }

    /// A successful DEL with prevResult.
    #[track_caller]
    pub(crate) fn del(&self, netns: &Netns, config: &Value, result: &Value) {
        self.call("DEL", netns, &with_prev(config, result)).run().success();
    }

    /// `ip` on the host.
    #[track_caller]
    pub(crate) fn ip(&self, arguments: &str) {
        ip(self.world.host(), arguments);
    }

    /// The only link of this name on the host, as `ip -j -d` shows it.
    #[track_caller]
    pub(crate) fn link(&self, name: &str) -> Value {
        self.world.ip_json(&["-d", "link", "show", name])[0].clone()
    }

    /// Whether the host has a link of this name.
    pub(crate) fn has_link(&self, name: &str) -> bool {
        self.world.try_exec(&["ip", "link", "show", name]).code == 0
    }

    /// Names of the host's links, sorted, without `lo`.
    pub(crate) fn links(&self) -> Vec<String> {
        let links = self.world.ip_json(&["link"]);
        let links = links.as_array().unwrap().iter();
        let mut names: Vec<_> =
            links.map(|link| link["ifname"].as_str().unwrap().to_owned()).collect();
        names.retain(|name| name != "lo");
        names.sort();
        names
    }

    /// `<address>/<prefix>` of every address on a link of the host that isn't
    /// link-local.
    pub(crate) fn addresses(&self, link: &str) -> Vec<String> {
        addresses(self.world.host(), link)
    }

    /// Reservations of host-local for a network.
    pub(crate) fn reservations(network: &str) -> Vec<String> {
        let directory = format!("/var/lib/cni/networks/{network}");
        let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> =
            names.filter(|name| name.parse::<std::net::IpAddr>().is_ok()).collect();
        names.sort();
        names
    }
}

/// `ip` in a namespace.
#[track_caller]
pub(crate) fn ip(namespace: &Netns, arguments: &str) {
    let mut command = vec!["ip"];
    command.extend(arguments.split_ascii_whitespace());
    namespace.exec(&command);
}

/// `<address>/<prefix>` of every address on a link that isn't link-local.
pub(crate) fn addresses(namespace: &Netns, link: &str) -> Vec<String> {
    let shown = namespace.ip_json(&["addr", "show", link]);
    let all = shown[0]["addr_info"].as_array().unwrap().iter();
    all.filter(|one| one["scope"] != "link")
        .map(|one| format!("{}/{}", one["local"].as_str().unwrap(), one["prefixlen"]))
        .collect()
}

/// Marks, locks and indexes, which may stay behind.
pub(crate) fn is_bookkeeping(change: &Change) -> bool {
    let name = change.name();
    name.contains("last_reserved_ip") || name.ends_with("/lock") || name.contains("/.podwire/")
}

/// The configuration as a runtime sends it after ADD.
pub(crate) fn with_prev(config: &Value, result: &Value) -> Value {
    let mut config = config.clone();
    config["prevResult"] = result.clone();
    config
}

/// A configuration with keys replaced or added.
pub(crate) fn with(config: &Value, more: &Value) -> Value {
    let mut config = config.clone();
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

/// A network on bridge `br0` without addresses.
pub(crate) fn layer2() -> Value {
    json!({"cniVersion": "1.1.0", "name": "n", "type": "bridge", "bridge": "br0"})
}

/// A gateway network on bridge `br0`, addresses from host-local.
pub(crate) fn pods() -> Value {
    with(
        &layer2(),
        &json!({
            "isDefaultGateway": true,
            "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24"}]]},
        }),
    )
}

/// The same with both families.
pub(crate) fn dual() -> Value {
    with(
        &pods(),
        &json!({"ipam": {"type": "host-local", "ranges":
            [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd00:1::/64"}]]}}),
    )
}

/// A gateway network with these addresses and no others.
pub(crate) fn fixed(addresses: &[&str]) -> Value {
    let addresses: Vec<_> = addresses.iter().map(|address| json!({"address": address})).collect();
    with(&pods(), &json!({"ipam": {"type": "static", "addresses": addresses}}))
}
