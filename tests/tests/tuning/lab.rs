//! A container with a pair to the host, made with `ip` rather than our own
//! plugin: what is tested here is `tuning` alone.

use std::path::{Path, PathBuf};

use podwire_testkit::{Netns, Output, Plugin, World};
use serde_json::{Value, json};

/// The interface's original address.
pub(crate) const MAC: &str = "02:00:5e:10:00:01";

pub(crate) struct Lab {
    pub(crate) world: World,
    pub(crate) container: Netns,
}

/// Every attribute, each another than the kernel gives.
pub(crate) fn everything() -> Value {
    json!({
        "mac": "02:00:5e:10:00:99", "mtu": 1300, "promisc": true, "allmulti": true, "txQLen": 77,
        "sysctl": {"net.ipv4.conf.IFNAME.log_martians": "1"},
    })
}

impl Lab {
    pub(crate) fn new() -> Self {
        let world = World::new();
        let container = world.netns("c1");
        world.exec(&[
            "ip", "link", "add", "v0", "type", "veth", "peer", "name", "eth0", "address", MAC,
            "netns", "c1",
        ]);
        world.exec(&["ip", "link", "set", "v0", "up"]);
        container.exec(&["ip", "link", "set", "eth0", "up"]);
        Self { world, container }
    }

    pub(crate) fn prev_result(&self) -> Value {
        json!({
            "cniVersion": "1.1.0",
            "interfaces": [
                {"name": "v0"},
                {"name": "eth0", "mac": MAC, "sandbox": self.container.path()},
            ],
            "ips": [{"address": "10.1.1.2/24", "interface": 1}],
        })
    }

    /// A call of our plugin on network `pods`.
    pub(crate) fn call(&self, verb: &str, keys: &Value) -> Plugin {
        self.with(self.world.plugin("tuning"), verb, keys)
    }

    /// The same call of any plugin.
    pub(crate) fn with(&self, plugin: Plugin, verb: &str, keys: &Value) -> Plugin {
        let mut config = json!({
            "cniVersion": "1.1.0", "name": "pods", "type": "tuning",
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

    #[track_caller]
    pub(crate) fn check_passes(&self, keys: &Value) {
        self.call("CHECK", keys).run().success();
    }

    /// Expects these words of a CHECK.
    #[track_caller]
    pub(crate) fn check_fails(&self, keys: &Value, words: &[&str]) {
        let text = self.call("CHECK", keys).run().error(100).to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }

    /// MAC address, MTU, queue length, promiscuous, allmulti.
    #[track_caller]
    pub(crate) fn attributes(&self) -> (String, u64, u64, bool, bool) {
        attributes(&self.container, "eth0")
    }

    #[track_caller]
    pub(crate) fn sysctl(&self, key: &str) -> String {
        self.container.exec(&["sysctl", "-n", key]).stdout.trim().to_owned()
    }

    /// Where the originals are kept.
    pub(crate) fn backup() -> PathBuf {
        Path::new("/run/cni/tuning/c1_eth0.json").to_owned()
    }
}

#[track_caller]
pub(crate) fn attributes(netns: &Netns, device: &str) -> (String, u64, u64, bool, bool) {
    let link = &netns.ip_json(&["-d", "link", "show", "dev", device])[0];
    let has = |flag: &str| link["flags"].as_array().unwrap().contains(&json!(flag));
    (
        link["address"].as_str().unwrap().to_owned(),
        link["mtu"].as_u64().unwrap(),
        link["txqlen"].as_u64().unwrap_or(0),
        has("PROMISC"),
        has("ALLMULTI"),
    )
}

/// What the kernel gave.
pub(crate) fn originals() -> (String, u64, u64, bool, bool) {
    (MAC.to_owned(), 1500, 1000, false, false)
}
