//! `host-local` as a runtime sees it: the program, the directory, the Go plugin
//! beside it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod concurrency;
mod crash;
mod faults;
mod peers;
mod verbs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use podwire_testkit::{Plugin, World};
use serde_json::{Value, json};

/// A world with one data directory, and calls on the network `n1` in it.
struct Pool {
    world: World,
    directory: PathBuf,
}

impl Pool {
    fn new() -> Self {
        let world = World::new();
        let directory = world.path("networks");
        Self { world, directory }
    }

    /// A configuration with these members in `ipam`.
    fn config(&self, ipam: &Value) -> Value {
        let mut ipam = ipam.clone();
        ipam["type"] = json!("host-local");
        ipam["dataDir"] = json!(self.directory);
        json!({"cniVersion": "1.1.0", "name": "n1", "ipam": ipam})
    }

    /// A call of our plugin for a container's `eth0`. There is no namespace.
    fn call(&self, verb: &str, container: &str, config: &Value) -> Plugin {
        attach(self.world.plugin("host-local"), verb, container, config)
    }

    fn add(&self, container: &str, config: &Value) -> Vec<String> {
        addresses(&self.call("ADD", container, config).run().success().json())
    }

    fn del(&self, container: &str, config: &Value) {
        self.call("DEL", container, config).run().success();
    }

    /// The file of an address.
    fn file(&self, name: &str) -> PathBuf {
        self.directory.join("n1").join(name)
    }

    /// Writes a file as another program would.
    fn write(&self, name: &str, content: &str) {
        std::fs::create_dir_all(self.directory.join("n1")).unwrap();
        std::fs::write(self.file(name), content).unwrap();
    }

    fn reservations(&self) -> BTreeMap<String, String> {
        reservations(&self.directory.join("n1"))
    }
}

fn attach(plugin: Plugin, verb: &str, container: &str, config: &Value) -> Plugin {
    plugin
        .command(verb)
        .container(container)
        .ifname("eth0")
        .env("CNI_NETNS", "/run/netns/none")
        .config(config)
}

/// The addresses of a result, as `10.9.0.2/24`.
fn addresses(result: &Value) -> Vec<String> {
    let ips = result["ips"].as_array().unwrap_or_else(|| panic!("no ips in {result}"));
    ips.iter().map(|ip| ip["address"].as_str().unwrap().to_owned()).collect()
}

/// Every file that is named after an address, with its content.
fn reservations(directory: &Path) -> BTreeMap<String, String> {
    files(directory)
        .into_iter()
        .filter(|(name, _)| name.parse::<std::net::IpAddr>().is_ok())
        .collect()
}

/// Every plain file of a directory, with its content; none when it isn't there.
fn files(directory: &Path) -> BTreeMap<String, String> {
    let names = podwire_sys::file::regular_files(directory, 100_000).unwrap();
    let content = |name: &std::ffi::OsString| {
        // Another process may remove it.
        let bytes = std::fs::read(directory.join(name)).ok()?;
        Some((name.to_str().unwrap().to_owned(), String::from_utf8(bytes).unwrap()))
    };
    names.iter().filter_map(content).collect()
}

fn one_range(subnet: &str) -> Value {
    json!({"ranges": [[{"subnet": subnet}]]})
}
