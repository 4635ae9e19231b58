//! Podman in a world of its own: its store, state and configuration are on the
//! world's tmpfs, and its containers have a control group of their own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use podwire_testkit::probe::{ANSWER, SILENCE, http_page};
use podwire_testkit::state::Change;
use podwire_testkit::{HostState, Netns, Output};
use podwire_tests::{Node, Plugins, wait_until};
use serde_json::Value;

/// What containers serve at `/`.
pub(crate) const PAGE: &str = "hello from inside";

/// Programs of busybox that the containers have.
const PROGRAMS: [&str; 5] = ["httpd", "ip", "ping", "sh", "wget"];

/// Podman, and the node that it is on.
pub(crate) struct Podman {
    pub(crate) node: Node,
    control_group: String,
}

impl Podman {
    /// A fresh node, without containers.
    #[track_caller]
    pub(crate) fn new(plugins: Plugins) -> Self {
        let node = Node::new(plugins);
        let podman = Self { node, control_group: format!("podwire-podman-{}", std::process::id()) };
        let world = &podman.node.world;
        let bin = world.path("rootfs/bin");
        for folder in ["bin", "dev", "etc", "proc", "run", "sys", "tmp"] {
            std::fs::create_dir_all(world.path("rootfs").join(folder)).unwrap();
        }
        std::fs::copy("/bin/busybox", bin.join("busybox")).unwrap();
        for program in PROGRAMS {
            std::os::unix::fs::symlink("busybox", bin.join(program)).unwrap();
        }
        world.write("rootfs/www/index.html", PAGE);
        world.write("containers.conf", CONFIGURATION);
        world.write("storage.conf", STORAGE);
        podman.install(plugins);
        podman
    }

    /// Exchanges the plugins in one step, as an upgrade does.
    #[track_caller]
    pub(crate) fn install(&self, plugins: Plugins) {
        self.node.install(plugins);
        self.install_from(&self.node.plugin_directory());
    }

    /// Has the plugins of this folder.
    #[track_caller]
    pub(crate) fn install_from(&self, folder: &Path) {
        let (place, fresh) = (self.node.world.path("plugins"), self.node.world.path("plugins.new"));
        std::os::unix::fs::symlink(folder, &fresh).unwrap();
        std::fs::rename(&fresh, &place).unwrap();
    }

    /// A command line of Podman that succeeds.
    #[track_caller]
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.try_run(arguments).success()
    }

    /// One that may fail.
    #[track_caller]
    pub(crate) fn try_run(&self, arguments: &[&str]) -> Output {
        let start = [
            "env",
            "CONTAINERS_CONF=/run/world/containers.conf",
            "CONTAINERS_STORAGE_CONF=/run/world/storage.conf",
            "podman",
        ];
        self.node.world.try_exec(&[&start[..], arguments].concat())
    }

    /// Has Podman make a network; returns the list that it wrote.
    #[track_caller]
    pub(crate) fn network(&self, name: &str, options: &[&str]) -> Value {
        self.run(&[&["network", "create"], options, &[name]].concat());
        let path = Path::new("/etc/cni/net.d").join(format!("{name}.conflist"));
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }

    /// Starts a container that serves [`PAGE`] at port 80.
    #[track_caller]
    pub(crate) fn serve(&self, name: &str, options: &[&str]) {
        self.try_serve(name, options).success();
    }

    /// The same, which may fail.
    #[track_caller]
    pub(crate) fn try_serve(&self, name: &str, options: &[&str]) -> Output {
        let group = self.control_group_option();
        let start = ["run", "--detach", "--name", name, &group];
        let server =
            ["--rootfs", "/run/world/rootfs:O", "/bin/httpd", "-f", "-p", "80", "-h", "/www"];
        self.try_run(&[&start[..], options, &server].concat())
    }

    /// The option that keeps containers within the test's own control group.
    pub(crate) fn control_group_option(&self) -> String {
        format!("--cgroup-parent=/{}", self.control_group)
    }

    /// Runs a program in a container.
    #[track_caller]
    pub(crate) fn exec(&self, container: &str, command: &[&str]) -> Output {
        self.run(&[&["exec", container], command].concat())
    }

    /// What Podman says of a container's place in a network.
    #[track_caller]
    pub(crate) fn place(&self, container: &str, network: &str) -> Value {
        let format = ["--format", "{{json .NetworkSettings.Networks}}"];
        let networks = self.run(&[&["inspect", container], &format[..]].concat()).json();
        networks[network].clone()
    }

    /// A container's IPv4 address in a network, as Podman knows it.
    #[track_caller]
    pub(crate) fn address(&self, container: &str, network: &str) -> String {
        self.place(container, network)["IPAddress"].as_str().unwrap().to_owned()
    }

    /// Names and addresses of the interfaces in a container, without `lo` and
    /// link-local ones.
    #[track_caller]
    pub(crate) fn inside(&self, container: &str) -> Vec<String> {
        let shown = self.exec(container, &["/bin/ip", "-o", "addr", "show", "scope", "global"]);
        let lines = shown.stdout.lines().map(|line| line.split_ascii_whitespace().collect());
        let mut found: Vec<_> =
            lines.map(|words: Vec<_>| format!("{} {}", words[1], words[3])).collect();
        found.sort();
        found
    }

    /// Removes containers, and waits until the cleaning after them is over.
    #[track_caller]
    pub(crate) fn remove(&self, containers: &[&str]) {
        self.run(&[&["rm", "--force", "--time", "0"], containers].concat());
    }

    /// Removes networks, with their bridges.
    #[track_caller]
    pub(crate) fn remove_networks(&self, networks: &[&str]) {
        self.run(&[&["network", "rm"], networks].concat());
    }

    /// Panics if an attachment, a namespace or anything else is left since `before`.
    /// Chains of these names may have gone.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self, before: &HostState, gone: &[&str]) {
        let difference = self.node.world.detailed_snapshot().since(before);
        let has_gone = |change: &Change| {
            matches!(change, Change::Removed(name, content) if gone.iter().any(|chain| {
                name.ends_with(&format!(" {chain}")) || content.contains(&format!("\"{chain}\""))
            }))
        };
        difference.beyond_residue(&[]).without(is_idle_lock).without(has_gone).assert_empty();
        for folder in ["/run/netns", "/run/cni/tuning", "/var/lib/cni/results"] {
            let left: Vec<PathBuf> = std::fs::read_dir(folder)
                .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
                .unwrap_or_default();
            let left: Vec<_> = left.iter().filter(|path| !path.ends_with("outside")).collect();
            assert!(left.is_empty(), "{left:?}");
        }
    }

    fn control_groups(&self) -> Vec<PathBuf> {
        let root = Path::new("/sys/fs/cgroup");
        let mut parents = vec![root.to_owned()];
        let hierarchies = std::fs::read_dir(root).into_iter().flatten().flatten();
        parents.extend(hierarchies.map(|entry| entry.path()));
        let groups = parents.iter().map(|parent| parent.join(&self.control_group));
        groups.filter(|group| group.is_dir()).collect()
    }
}

/// A lock that nobody holds: Podman's libcni has none, ours are empty files.
fn is_idle_lock(change: &Change) -> bool {
    let name = change.name();
    name.starts_with("file /run/podwire/") && name.ends_with("/lock")
}

impl Drop for Podman {
    /// What a test leaves running goes with it.
    fn drop(&mut self) {
        let output = self.try_run(&["rm", "--all", "--force", "--time", "0"]);
        assert!(output.code == 0 || std::thread::panicking(), "{output:#?}");
        // The watcher of a container ends a little after it.
        let started = Instant::now();
        while !self.control_groups().is_empty() && started.elapsed() < Duration::from_secs(5) {
            for group in self.control_groups() {
                let children = std::fs::read_dir(&group).into_iter().flatten().flatten();
                for child in children.filter(|child| child.path().is_dir()) {
                    let _ = std::fs::remove_dir(child.path());
                }
                let _ = std::fs::remove_dir(group);
            }
            std::thread::yield_now();
        }
    }
}

/// Reads the page at an address, once it is served; panics if it never is.
#[track_caller]
pub(crate) fn read_page(from: &Netns, address: &str) {
    wait_until(&format!("a page at {address}"), || page(from, address).as_deref() == Some(PAGE));
}

/// What is served at an address just now, if anything.
pub(crate) fn page(from: &Netns, address: &str) -> Option<String> {
    let address: SocketAddr = address.parse().unwrap();
    let answer = http_page(from, address, SILENCE, ANSWER).ok()?;
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

/// The kinds of plugins that a list names, in order.
pub(crate) fn kinds(list: &Value) -> Vec<&str> {
    let plugins = list["plugins"].as_array().unwrap().iter();
    plugins.map(|plugin| plugin["type"].as_str().unwrap()).collect()
}

const CONFIGURATION: &str = r#"
[containers]
default_ulimits = []
log_driver = "k8s-file"
[network]
network_backend = "cni"
cni_plugin_dirs = ["/run/world/plugins"]
network_config_dir = "/etc/cni/net.d"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
runtime = "runc"
"#;

const STORAGE: &str = r#"
[storage]
driver = "overlay"
graphroot = "/run/world/graph"
runroot = "/run/world/runroot"
"#;
