//! containerd on a node of its own, with our plugins in its folder of plugins.
//!
//! It has its own root, state and socket, and a process namespace: whatever it
//! started, shims and containers included, ends with the test, however that ends.

mod call;
mod cri;
mod image;
mod machine;
mod messages;

use std::path::{Path, PathBuf};
use std::time::Duration;

use podwire_testkit::fake::Fake;
use podwire_testkit::{Background, Log, Output, peers_directory};
use serde_json::Value;

use self::machine::Machine;
use crate::node::{Node, Plugins, wait_until};

pub use self::call::Failure;
pub use self::cri::{Cri, Pod, Sandbox};
pub use self::image::{IMAGE, PAGE};
pub use self::messages::RuntimeCondition;

/// Which containerd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// That of this machine's release; 1.6 in Debian 12.
    Installed,
    /// That of Debian sid, 2.1 or newer; `cargo xtask peers` fetches it.
    Newest,
}

impl Release {
    /// The folder of its programs.
    #[track_caller]
    fn programs(self) -> PathBuf {
        let folder = match self {
            Self::Installed => PathBuf::from("/usr/bin"),
            Self::Newest => peers_directory().join("containerd"),
        };
        let found = folder.join("containerd").is_file();
        assert!(found, "no containerd in {}; run: cargo xtask interop", folder.display());
        folder
    }

    /// The version of the specification that its lists may have.
    pub fn cni_version(self) -> &'static str {
        match self {
            Self::Installed => "1.0.0",
            Self::Newest => "1.1.0",
        }
    }
}

/// Where it listens.
const SOCKET: &str = "/run/containerd/containerd.sock";
/// Its configuration; one of version 2 is understood by both.
const CONFIG: &str = "/run/world/containerd.toml";
/// Its store, as in its configuration.
const ROOT: &str = "/run/world/containerd/root";
/// How long its start may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// A node with containerd running on it.
#[derive(Debug)]
pub struct Containerd {
    /// The node; the calling thread is on it.
    pub node: Node,
    /// The client.
    pub cri: Cri,
    release: Release,
    log: Log,
    service: Option<Background>,
    machine: Machine,
}

impl Containerd {
    /// Starts containerd on a fresh node with our plugins, this network and the image of
    /// [`IMAGE`].
    #[track_caller]
    pub fn start(release: Release, network: &Value) -> Self {
        Self::start_with(release, network, &[])
    }

    /// The same with more plugins.
    #[track_caller]
    pub fn start_with(release: Release, network: &Value, more: &[Fake]) -> Self {
        let node = Node::new(Plugins::Ours);
        node.network(network);
        let plugins = node.plugin_directory();
        for plugin in more {
            plugin.write(&plugins);
        }
        podwire_sys::mount::bind(&plugins, Path::new("/opt/cni/bin")).unwrap();
        // What containerd mounts there, such as the pods' namespaces, is seen here too.
        podwire_sys::mount::make_shared(Path::new("/run")).unwrap();
        let machine = Machine::start();
        let cgroup = machine.cgroup().to_owned();
        node.world.write("containerd.toml", CONFIGURATION);
        let cri = Cri { socket: SOCKET.into(), cgroup };
        let mut started = Self { node, cri, release, log: Log::default(), service: None, machine };
        started.restart();
        started.import();
        let condition = started.cri.network_ready();
        assert!(condition.status, "{condition:?}");
        started
    }

    /// Starts it again, after a kill, on the same state.
    #[track_caller]
    pub fn restart(&mut self) {
        let program = self.release.programs().join("containerd");
        let command =
            self.machine.service(&program, &["--config", CONFIG], &self.release.programs());
        let mark = self.log.mark();
        self.service = Some(Background::spawn(command, &self.log));
        self.log.wait_for(mark, "containerd's start", PATIENCE, |line| {
            line.contains("containerd successfully booted")
        });
        wait_until("an answer of containerd", || self.cri.answers());
    }

    /// Kills it with signal 9; its shims and containers live on.
    #[track_caller]
    pub fn kill(&mut self) {
        let mut service = self.service.take().expect("a running containerd");
        self.machine.kill_service(&self.node.world);
        service.wait();
    }

    /// Kills the process that holds a sandbox, by its number as containerd knows it.
    #[track_caller]
    pub fn kill_process(&self, number: u64) {
        self.run(&["/bin/kill", "-9", &number.to_string()]).success();
    }

    /// Brings the image.
    #[track_caller]
    pub fn import(&self) {
        let archive = self.node.world.path("image.tar");
        image::write(&archive);
        self.ctr(&["-n", "k8s.io", "images", "import", archive.to_str().unwrap()]).success();
    }

    /// Empties the store of a killed one: it knows of no pod when it starts again.
    #[track_caller]
    pub fn forget(&self) {
        assert!(self.service.is_none(), "it runs");
        std::fs::remove_dir_all(format!("{ROOT}/io.containerd.metadata.v1.bolt")).unwrap();
    }

    /// What it wrote, for messages.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Runs its `ctr`, which makes calls of plugins by itself.
    #[track_caller]
    pub fn ctr(&self, arguments: &[&str]) -> Output {
        let program = self.release.programs().join("ctr");
        let start = [program.to_str().unwrap(), "--address", SOCKET];
        self.run(&[&start[..], arguments].concat())
    }

    /// The control group below which everything on this node belongs.
    pub fn cgroup(&self) -> &str {
        self.machine.cgroup()
    }

    /// Runs a command line among containerd's processes.
    #[track_caller]
    fn run(&self, command: &[&str]) -> Output {
        let inside: Vec<&str> = self.machine.inside().iter().map(String::as_str).collect();
        self.node.world.try_exec(&[&inside[..], command].concat())
    }
}

/// Without what a test machine refuses (a profile of `AppArmor`, lower OOM scores).
const CONFIGURATION: &str = r#"
version = 2
root = "/run/world/containerd/root"
state = "/run/containerd/state"
disabled_plugins = [
    "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
    "io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri",
]
[grpc]
address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/podwire/busybox:1"
disable_apparmor = true
restrict_oom_score_adj = true
disable_tcp_service = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/opt/cni/bin"
conf_dir = "/etc/cni/net.d"
"#;
