//! A node of a cluster.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use podwire_runtime::Network;
use podwire_testkit::fake::{self, Call, Fake};
use podwire_testkit::probe::{self, ANSWER, SILENCE, TcpEcho};
use podwire_testkit::{HostState, Output};
use podwire_tests::{Container, Node, Outside, Plugins, wait_until};

const CONFIGURATION: &str = "/etc/cni/net.d";

/// A node, what it looked like, and another machine.
pub struct Cluster {
    pub node: Node,
    pub network: Network,
    pub outside: Outside,
    before: HostState,
}

impl Cluster {
    /// A node with this file in its configuration folder, and stand-ins beside our
    /// plugins.
    #[track_caller]
    pub fn new(file: &str, text: &str, stand_ins: &[Fake]) -> Self {
        let node = Node::new(Plugins::Ours);
        for stand_in in stand_ins {
            stand_in.write(node.world.plugin_directory());
        }
        let path = Path::new(CONFIGURATION).join(file);
        std::fs::write(&path, text).unwrap();
        let network = Network::from_file(&path).unwrap_or_else(|problem| panic!("{problem}"));
        let outside = node.outside();
        let uplink = outside.address.to_string();
        node.world.exec(&["ip", "route", "add", "default", "via", &uplink]);
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        let before = node.world.snapshot();
        Self { node, network, outside, before }
    }

    /// What `podwire validate` says of the folder; panics if it finds errors.
    #[track_caller]
    pub fn validate(&self) -> Output {
        let own = std::env::current_exe().unwrap();
        let program = own.parent().unwrap().with_file_name("podwire");
        let directory = self.node.plugin_directory();
        let output = self.node.world.try_exec(&[
            program.to_str().unwrap(),
            "validate",
            "--plugin-dir",
            directory.to_str().unwrap(),
        ]);
        assert!(output.code < 2, "{output:#?}");
        output
    }

    /// The stand-ins' calls of one verb.
    pub fn calls(&self, command: &str) -> Vec<Call> {
        let calls = fake::calls(&self.directory());
        calls.into_iter().filter(|call| call.command == command).collect()
    }

    fn directory(&self) -> PathBuf {
        self.node.plugin_directory()
    }

    /// The host port leads to the container, at this address of it.
    #[track_caller]
    pub fn is_reached(&self, container: &Container, address: &str) {
        let (host_port, port) = container.ports[0];
        let inside = SocketAddr::new(address.parse().unwrap(), port);
        let server = TcpEcho::start(&container.netns, inside);
        let mapped = SocketAddr::new(self.outside.node, host_port);
        probe::tcp_connect(&self.outside.netns, mapped, ANSWER).unwrap().exchange(b"hi").unwrap();
        drop(server);
    }

    /// Deletes the container, twice, and finds nothing left of it.
    #[track_caller]
    pub fn del(&self, container: &Container, may_stay: &[&str]) {
        self.node.del(&self.network, container);
        let attachment = container.attachment();
        self.node
            .runtime()
            .del(&self.network, &attachment, podwire_runtime::Source::Recorded)
            .unwrap_or_else(|error| panic!("the second DEL: {error}"));
        if let Some((host_port, _)) = container.ports.first() {
            let mapped = SocketAddr::new(self.outside.node, *host_port);
            assert!(probe::tcp_connect(&self.outside.netns, mapped, SILENCE).is_err());
        }
        wait_until("the end of the links", || {
            let shown = self.node.world.ip_json(&["-d", "link", "show"]);
            let is_of_container = |name: &str| name.starts_with("veth") || name.starts_with("bwp");
            !shown
                .as_array()
                .unwrap()
                .iter()
                .any(|link| link["ifname"].as_str().is_some_and(is_of_container))
        });
        let left = podwire_tests::crash::left(&self.before, &self.node.world.snapshot(), may_stay);
        left.without(|change| change.name().contains("/run/podwire/runtime/")).assert_empty();
    }
}
