//! A container with a pair to the host, made with `ip` rather than our own
//! plugin: what is tested here is `bandwidth` alone.

use podwire_testkit::{HostState, Netns, Output, Plugin, World};
use serde_json::{Value, json};

/// The host end of `eth0`.
pub(crate) const HOST_END: &str = "v0";
/// 8 Mbit/s and 100 kB at once, both ways.
pub(crate) fn both_ways() -> Value {
    json!({
        "ingressRate": 8_000_000, "ingressBurst": 800_000,
        "egressRate": 16_000_000, "egressBurst": 800_000,
    })
}

pub(crate) struct Lab {
    pub(crate) world: World,
    pub(crate) container: Netns,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let world = World::new();
        let container = world.netns("c1");
        let lab = Self { world, container };
        lab.pair("eth0", HOST_END, 1);
        lab
    }

    /// A pair, 10.1.N.1 on the host and 10.1.N.2 in the container.
    pub(crate) fn pair(&self, inside: &str, host_end: &str, number: u8) {
        let link = ["ip", "link", "add", host_end, "type", "veth", "peer", "name", inside];
        self.world.exec(&[&link[..], &["netns", "c1"]].concat());
        for (netns, device, last) in
            [(self.world.host(), host_end, 1), (&self.container, inside, 2)]
        {
            let ipv4 = format!("10.1.{number}.{last}/24");
            let ipv6 = format!("fd00:{number}::{last}/64");
            netns.exec(&["ip", "addr", "add", &ipv4, "dev", device]);
            netns.exec(&["ip", "addr", "add", &ipv6, "dev", device, "nodad"]);
            netns.exec(&["ip", "link", "set", device, "up"]);
        }
    }

    /// What a plugin before ours says.
    pub(crate) fn prev_result(&self) -> Value {
        json!({
            "cniVersion": "1.0.0",
            "interfaces": [
                {"name": HOST_END}, {"name": "eth0", "sandbox": self.container.path()},
            ],
            "ips": [{"address": "10.1.1.2/24", "interface": 1}],
        })
    }

    /// A call of our plugin on network `pods`.
    pub(crate) fn call(&self, verb: &str, keys: &Value) -> Plugin {
        self.with(self.world.plugin("bandwidth"), verb, keys)
    }

    /// The same call of any plugin.
    pub(crate) fn with(&self, plugin: Plugin, verb: &str, keys: &Value) -> Plugin {
        let mut config = json!({
            "cniVersion": "1.0.0", "name": "pods", "type": "bandwidth",
            "prevResult": self.prev_result(),
        });
        for (key, value) in keys.as_object().unwrap() {
            config[key] = value.clone();
        }
        let call = plugin.command(verb).container("c1").netns(&self.container);
        call.ifname("eth0").config(config)
    }

    pub(crate) fn add(&self, keys: &Value) -> Output {
        self.call("ADD", keys).run().success()
    }

    pub(crate) fn del(&self, keys: &Value) {
        self.call("DEL", keys).run().success();
    }

    /// Links and qdiscs of the host, to compare with.
    pub(crate) fn snapshot(&self) -> HostState {
        self.world.snapshot()
    }

    /// Panics if anything is left since then.
    #[track_caller]
    pub(crate) fn assert_unchanged(&self, before: &HostState) {
        let changed = self.snapshot().since(before);
        changed.without(|change| change.name().starts_with("file /run/podwire/")).assert_empty();
    }

    /// The root qdisc of a link, as `tc` shows it.
    #[track_caller]
    pub(crate) fn root(&self, device: &str) -> Value {
        let shown = self.tc(&["qdisc", "show", "dev", device]);
        let is_root = |qdisc: &&Value| qdisc["root"] == true;
        shown.as_array().unwrap().iter().find(is_root).cloned().unwrap_or_default()
    }

    /// The filters of what comes in by a link.
    pub(crate) fn filters(&self, device: &str) -> Vec<Value> {
        let shown = self.tc(&["filter", "show", "dev", device, "parent", "ffff:"]);
        let filters = shown.as_array().unwrap().iter();
        filters.filter(|one| !one["options"]["actions"].is_null()).cloned().collect()
    }

    #[track_caller]
    pub(crate) fn tc(&self, arguments: &[&str]) -> Value {
        self.world.exec(&[&["tc", "-j"], arguments].concat()).json()
    }

    /// The names of all ifbs.
    pub(crate) fn ifbs(&self) -> Vec<String> {
        let links = self.world.ip_json(&["link", "show", "type", "ifb"]);
        let links = links.as_array().unwrap().iter();
        links.filter_map(|link| link["ifname"].as_str().map(str::to_owned)).collect()
    }

    /// The only one.
    #[track_caller]
    pub(crate) fn ifb(&self) -> String {
        let mut all = self.ifbs();
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }
}
