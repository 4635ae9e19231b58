//! A world with a bridge that filters VLANs.

use podwire_testkit::{Feature, Netns, Plugin, World};
use serde_json::{Value, json};

/// The host is the world's own namespace.
pub(crate) struct Lab {
    pub(crate) world: World,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let world = World::new();
        world.needs(Feature::BridgeVlanFiltering);
        Self { world }
    }

    /// A call of the plugin for `eth0` of a container of that name.
    pub(crate) fn call(&self, verb: &str, netns: &Netns, config: &Value) -> Plugin {
        let plugin = self.world.plugin("bridge").command(verb).netns(netns);
        plugin.container(netns.name()).ifname("eth0").config(config)
    }

    /// A successful ADD; returns what it printed.
    #[track_caller]
    pub(crate) fn add(&self, netns: &Netns, config: &Value) -> Value {
        self.call("ADD", netns, config).run().success().json()
    }

    /// CHECK or DEL, with the result of the ADD.
    pub(crate) fn with_result(
        &self,
        verb: &str,
        netns: &Netns,
        config: &Value,
        result: &Value,
    ) -> Plugin {
        self.call(verb, netns, &with(config, &json!({ "prevResult": result })))
    }

    /// What a port of the host carries: `100 untagged pvid`, `200`, in order.
    #[track_caller]
    pub(crate) fn vlans(&self, port: &str) -> Vec<String> {
        let listed = self.world.exec(&["bridge", "-j", "vlan", "show", "dev", port]).json();
        let vlans = listed[0]["vlans"].as_array().cloned().unwrap_or_default();
        vlans.iter().map(shown).collect()
    }
}

fn shown(vlan: &Value) -> String {
    let mut text = vlan["vlan"].to_string();
    if let Some(last) = vlan["vlanEnd"].as_u64() {
        text = format!("{text}-{last}");
    }
    let flags = vlan["flags"].as_array().cloned().unwrap_or_default();
    for (flag, word) in [("Egress Untagged", " untagged"), ("PVID", " pvid")] {
        if flags.iter().any(|one| one == flag) {
            text.push_str(word);
        }
    }
    text
}

/// The host end of an attachment, as its result names it.
pub(crate) fn host_end(result: &Value) -> &str {
    result["interfaces"][1]["name"].as_str().unwrap()
}

/// A configuration with keys replaced or added.
pub(crate) fn with(config: &Value, more: &Value) -> Value {
    let mut config = config.clone();
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

/// A network on bridge `br0` with one address and these keys.
pub(crate) fn network(address: &str, more: &Value) -> Value {
    let config = json!({
        "cniVersion": "1.1.0", "name": "n", "type": "bridge", "bridge": "br0",
        "ipam": {"type": "static", "addresses": [{"address": address}]},
    });
    with(&config, more)
}
