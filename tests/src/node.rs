//! A node: a private world, the plugins installed on it, and our runtime.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use podwire_runtime::{Attached, Existing, Network, Runtime, RuntimeError, Source};
use podwire_testkit::state::{Change, Difference};
use podwire_testkit::{GoPlugins, HostState, Netns, World};
use serde_json::Value;

use crate::container::Container;
use crate::crash::left;
use crate::libcni::Libcni;

/// Whose plugins a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plugins {
    /// Podwire's.
    Ours,
    /// Go's, release 1.1.1 as in Debian 12.
    Debian,
    /// Go's, release 1.9.1 or newer as in Debian sid.
    Sid,
}

/// A private machine with plugins.
#[derive(Debug)]
pub struct Node {
    /// The world it is in.
    pub world: World,
    plugins: RefCell<PathBuf>,
}

impl Node {
    /// A fresh node; the calling thread is moved into it.
    #[track_caller]
    pub fn new(plugins: Plugins) -> Self {
        let node = Self { world: World::new(), plugins: RefCell::default() };
        node.install(plugins);
        node
    }

    /// Replaces the plugins, as an administrator does on a running node.
    #[track_caller]
    pub fn install(&self, plugins: Plugins) {
        *self.plugins.borrow_mut() = match plugins {
            Plugins::Ours => self.world.plugin_directory().to_owned(),
            Plugins::Debian => GoPlugins::debian().directory().to_owned(),
            Plugins::Sid => GoPlugins::sid().directory().to_owned(),
        };
    }

    /// Has the plugins of this directory, our own behind them.
    pub fn install_from(&self, directory: &Path) {
        directory.clone_into(&mut self.plugins.borrow_mut());
    }

    /// Where the plugins are.
    pub fn plugin_directory(&self) -> PathBuf {
        self.plugins.borrow().clone()
    }

    /// Our runtime on this node, with the usual directories.
    pub fn runtime(&self) -> Runtime {
        Runtime::builder().plugin_directory(self.plugin_directory()).build()
    }

    /// Go's runtime on this node, with the usual directories.
    #[track_caller]
    pub fn libcni(&self) -> Libcni<'_> {
        Libcni::new(self)
    }

    /// Writes a network's configuration and loads it.
    #[track_caller]
    pub fn network(&self, config: &Value) -> Network {
        let name = config["name"].as_str().expect("a name");
        let path = Path::new("/etc/cni/net.d").join(format!("{name}.conflist"));
        std::fs::write(&path, format!("{config:#}\n")).unwrap();
        Network::from_file(&path).unwrap_or_else(|problem| panic!("{problem}"))
    }

    /// A container that is not attached yet; its `lo` is up.
    #[track_caller]
    pub fn container(&self, id: &str) -> Container {
        let netns = self.world.netns(id);
        netns.exec(&["ip", "link", "set", "lo", "up"]);
        Container {
            id: id.to_owned(),
            ifname: "eth0".to_owned(),
            netns,
            ports: Vec::new(),
            args: Vec::new(),
        }
    }

    /// Attaches by our runtime.
    #[track_caller]
    pub fn add(&self, network: &Network, container: &Container) -> Attached {
        let attached = self.runtime().add(network, &container.attachment(), Existing::Refuse);
        attached.unwrap_or_else(|error| panic!("ADD {}: {error}", container.id))
    }

    /// Checks by our runtime.
    ///
    /// # Errors
    /// What a plugin complains of.
    pub fn check(&self, network: &Network, container: &Container) -> Result<(), RuntimeError> {
        self.runtime().check(network, &container.attachment(), Source::Recorded).map(drop)
    }

    /// Detaches by our runtime.
    #[track_caller]
    pub fn del(&self, network: &Network, container: &Container) {
        let deleted = self.runtime().del(network, &container.attachment(), Source::Recorded);
        let deleted = deleted.unwrap_or_else(|error| panic!("DEL {}: {error}", container.id));
        assert!(deleted.was_recorded, "{} was not recorded", container.id);
    }

    /// Panics if anything is left since `before` beyond what may stay: the bridge
    /// `br0` and what the project documents. An idle lock's empty file stays when
    /// libcni, which has no locks, made the last operation, and which namespace it was
    /// that libcni has detached.
    #[track_caller]
    pub fn assert_nothing_left(&self, before: &HostState) {
        self.left(before).assert_empty();
    }

    /// The same, to be judged further.
    #[track_caller]
    pub fn left(&self, before: &HostState) -> Difference {
        left(before, &self.world.snapshot(), &["br0"]).without(|change| {
            matches!(change, Change::Added(name, content)
                if name.starts_with("file /run/podwire/runtime/") && content == "\"\""
                    || name.starts_with("file /var/lib/cni/podwire/sandboxes/"))
        })
    }

    /// Connects another machine to the node, 192.0.2.2 to its 192.0.2.1.
    #[track_caller]
    pub fn outside(&self) -> Outside {
        let netns = self.world.netns("outside");
        self.world.exec(&[
            "ip", "link", "add", "uplink", "type", "veth", "peer", "name", "eth0", "netns",
            "outside",
        ]);
        self.world.exec(&["ip", "addr", "add", "192.0.2.1/24", "dev", "uplink"]);
        self.world.exec(&["ip", "link", "set", "uplink", "up"]);
        netns.exec(&["ip", "link", "set", "lo", "up"]);
        netns.exec(&["ip", "addr", "add", "192.0.2.2/24", "dev", "eth0"]);
        netns.exec(&["ip", "link", "set", "eth0", "up"]);
        Outside {
            netns,
            address: Ipv4Addr::new(192, 0, 2, 2).into(),
            node: Ipv4Addr::new(192, 0, 2, 1).into(),
        }
    }
}

/// Another machine beside the node, which knows no route to the containers.
#[derive(Debug)]
pub struct Outside {
    /// Its network.
    pub netns: Netns,
    /// Its address.
    pub address: IpAddr,
    /// The node's address as it sees it.
    pub node: IpAddr,
}

/// Waits until something is so, at most half a minute.
#[track_caller]
pub fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(30), "{what} did not happen");
        std::thread::yield_now();
    }
}
