//! A node whose runtime looks into `/opt/cni/bin`, and traffic that must not stop.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use podwire_testkit::probe::{self, ANSWER, TcpEcho};
use podwire_testkit::{GoPlugins, Netns, Output};
use podwire_tests::{Container, Node, Outside, Plugins};

/// Where the runtime looks.
pub const BIN: &str = "/opt/cni/bin";
/// The originals that tests of a life need.
const ORIGINALS: [&str; 6] =
    ["bandwidth", "bridge", "firewall", "host-device", "host-local", "portmap"];

/// A node with Go plugins of its own in `/opt/cni/bin`.
pub struct Lab {
    pub node: Node,
    before: Vec<(String, u64)>,
}

impl Lab {
    /// Copies the plugins of a release there.
    #[track_caller]
    pub fn new(plugins: Plugins) -> Self {
        let node = Node::new(plugins);
        let go = match plugins {
            Plugins::Sid => GoPlugins::sid(),
            _ => GoPlugins::debian(),
        };
        for name in ORIGINALS {
            std::fs::copy(go.directory().join(name), Path::new(BIN).join(name)).unwrap();
        }
        node.install_from(Path::new(BIN));
        Self { node, before: names() }
    }

    /// Has the node's `iptables` be the legacy one, as `update-alternatives` does.
    #[track_caller]
    pub fn prefer_legacy(&self) {
        let world = &self.node.world;
        let alternatives = world.path("alternatives");
        let to = alternatives.to_str().unwrap();
        world.exec(&["cp", "-a", "/etc/alternatives", to]);
        for tool in ["iptables", "ip6tables"] {
            for kind in ["", "-save", "-restore"] {
                let target = format!("/usr/sbin/{tool}-legacy{kind}");
                let link = format!("{to}/{tool}{kind}");
                world.exec(&["ln", "-sfn", &target, &link]);
            }
        }
        world.exec(&["mount", "--bind", to, "/etc/alternatives"]);
        let version = world.exec(&["iptables", "--version"]).stdout;
        assert!(version.contains("legacy"), "{version}");
    }

    /// All rules on the node, those in legacy xtables too.
    #[track_caller]
    pub fn rules(&self) -> String {
        let mut text = self.node.world.exec(&["nft", "list", "ruleset"]).stdout;
        for tool in ["iptables-legacy-save", "ip6tables-legacy-save"] {
            text += &self.node.world.exec(&[tool]).stdout;
        }
        text
    }

    /// Runs `podwire migrate` with more arguments.
    #[track_caller]
    pub fn migrate(&self, arguments: &str) -> Output {
        let program = program().display().to_string();
        let mut command = vec![program.as_str(), "migrate"];
        command.extend(arguments.split_ascii_whitespace());
        self.node.world.try_exec(&command)
    }

    /// Panics unless the directory holds exactly the files of before.
    #[track_caller]
    pub fn assert_as_before(&self) {
        assert_eq!(names(), self.before);
        assert!(!Path::new(BIN).join(".podwire").exists());
    }
}

/// The `podwire` that was built with this test.
pub fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let program = own.parent().unwrap().with_file_name("podwire");
    assert!(program.is_file(), "{} is not built; run: cargo build -p podwire", program.display());
    program
}

/// `podwire migrate`, to be started otherwise.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.arg("migrate").args(arguments).env("PATH", std::env::var_os("PATH").unwrap());
    command
}

/// Names and files of the plugin directory.
pub fn names() -> Vec<(String, u64)> {
    let mut names: Vec<_> = std::fs::read_dir(BIN)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()))
        .map(|(name, path)| (name, std::fs::symlink_metadata(path).unwrap().ino()))
        .collect();
    names.sort();
    names
}

/// How often traffic is made.
const PACE: Duration = Duration::from_millis(5);

/// A TCP connection through a host port, and pings out of the container, that go on
/// until they are asked whether all of it was answered.
pub struct Traffic {
    stops: [Sender<()>; 2],
    threads: [JoinHandle<u64>; 2],
    _server: TcpEcho,
}

impl Traffic {
    #[track_caller]
    pub fn start(outside: &Outside, container: &Container) -> Self {
        let (host_port, port) = container.ports[0];
        let address = container.addresses()[0];
        let server = TcpEcho::start(&container.netns, SocketAddr::new(address, port));
        let mapped = SocketAddr::new(outside.node, host_port);
        let mut connection = probe::tcp_connect(&outside.netns, mapped, ANSWER).unwrap();
        connection.stream.set_read_timeout(Some(ANSWER)).unwrap();
        let (inside, node) = (container.netns.clone(), outside.node);
        let (stop_stream, stream) =
            again_and_again(move || connection.exchange(b"still there?").unwrap());
        let (stop_pings, pings) = again_and_again(move || {
            probe::ping(&inside, node, Duration::from_secs(2)).unwrap();
        });
        Self { stops: [stop_stream, stop_pings], threads: [stream, pings], _server: server }
    }

    /// Panics if anything was ever without an answer.
    #[track_caller]
    pub fn assert_unbroken(self) {
        drop(self.stops);
        let counts = self.threads.map(|thread| thread.join().expect("traffic broke off"));
        assert!(counts.iter().all(|count| *count > 1), "{counts:?}");
    }
}

/// Works until the sender is dropped, and once more then; says how often.
fn again_and_again(mut work: impl FnMut() + Send + 'static) -> (Sender<()>, JoinHandle<u64>) {
    let (stop, stopped) = channel();
    let thread = std::thread::spawn(move || {
        let mut count = 0;
        loop {
            let is_last = stopped.recv_timeout(PACE) != Err(RecvTimeoutError::Timeout);
            work();
            count += 1;
            if is_last {
                return count;
            }
        }
    });
    (stop, thread)
}

/// The host port leads to the container.
#[track_caller]
pub fn is_reached(outside: &Outside, container: &Container) {
    let (host_port, port) = container.ports[0];
    let server = TcpEcho::start(&container.netns, SocketAddr::new(container.addresses()[0], port));
    let mapped = SocketAddr::new(outside.node, host_port);
    probe::tcp_connect(&outside.netns, mapped, ANSWER).unwrap().exchange(b"hello").unwrap();
    drop(server);
}

/// Whom the other machine sees when the container connects to it.
#[track_caller]
pub fn seen_as(outside: &Outside, from: &Netns) -> std::net::IpAddr {
    let listener = TcpEcho::start(&outside.netns, SocketAddr::new(outside.address, 0));
    probe::tcp_connect(from, listener.address(), ANSWER).unwrap().seen_as.ip()
}
