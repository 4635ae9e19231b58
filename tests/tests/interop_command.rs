//! The `podwire` command drives the Go plugins and shares their attachments with
//! Go's libcni.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::net::SocketAddr;

use podwire_testkit::Output;
use podwire_testkit::probe::{self, ANSWER, TcpEcho};
use podwire_tests::{Container, Node, Plugins};
use serde_json::{Value, json};

fn chain(version: &str) -> Value {
    json!({
        "cniVersion": version,
        "name": "pods",
        "plugins": [
            {
                "type": "bridge", "bridge": "br0", "isGateway": true, "ipMasq": true,
                "ipam": {
                    "type": "host-local", "subnet": "10.1.0.0/24",
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
}

/// The command on a node, with the node's plugins.
struct Podwire<'a>(&'a Node);

impl Podwire<'_> {
    fn run(&self, arguments: &[&str]) -> Output {
        let own = std::env::current_exe().unwrap();
        let program = own.ancestors().nth(2).unwrap().join("podwire");
        let plugins = self.0.plugin_directory();
        let start = [program.to_str().unwrap(), "--plugin-dir", plugins.to_str().unwrap()];
        self.0.world.try_exec(&[&start, arguments].concat())
    }

    fn on(&self, verb: &str, container: &Container) -> Output {
        let netns = container.netns.path().to_str().unwrap();
        let capabilities = container.capabilities().to_string();
        let name = ["--container-id", &container.id];
        self.run(&[&[verb, "pods", netns], &name[..], &["--cap-args", &capabilities]].concat())
    }
}

#[test]
fn the_command_drives_the_go_plugins() {
    for (plugins, version) in [(Plugins::Debian, "1.0.0"), (Plugins::Sid, "1.1.0")] {
        let node = Node::new(plugins);
        let outside = node.outside();
        node.network(&chain(version));
        let podwire = Podwire(&node);
        let first = node.container("first").with_port(8079, 80);
        podwire.on("add", &first).success();
        podwire.on("del", &first).success();
        let before = node.world.snapshot();

        podwire.run(&["status", "pods"]).success();
        let versions = podwire.run(&["-o", "json", "version", "pods"]).success().stdout;
        assert!(versions.contains("\"1.0.0\"") && versions.contains("portmap"), "{versions}");
        let container = node.container("c1").with_port(8080, 80);
        let result = podwire.on("add", &container).success().json();
        assert_eq!(result["ips"][0]["address"], "10.1.0.3/24");
        let server = TcpEcho::start(&container.netns, SocketAddr::new(container.address(), 80));
        let port = SocketAddr::new(outside.node, 8080);
        probe::tcp_connect(&outside.netns, port, ANSWER).unwrap().exchange(b"hello").unwrap();
        drop(server);

        let checked = podwire.on("check", &container);
        if plugins == Plugins::Sid {
            checked.success();
        } else {
            // 1.1.1 looks for rules of a family that the network doesn't have.
            let checked = checked.failure();
            assert!(checked.stderr.contains("portmap"), "{checked:#?}");
        }
        // Go's runtime sees the same attachment, and ours the ones of Go.
        let cached = node.libcni().on("cached-result", "pods", &container).success().json();
        assert_eq!(cached, result);
        let other = node.container("c2").with_port(8081, 80);
        node.libcni().on("add", "pods", &other).success();
        let listed = podwire.run(&["-o", "json", "list"]).success().stdout;
        assert!(listed.contains("\"c1\"") && listed.contains("\"c2\""), "{listed}");
        assert!(listed.contains("10.1.0.4"), "{listed}");

        podwire.run(&["gc", "pods", "--keep", "c1:eth0"]).success();
        assert!(container.is_attached() && !other.is_attached());
        podwire.on("del", &container).success();
        assert!(!container.is_attached());
        node.assert_nothing_left(&before);
    }
}

#[test]
fn errors_of_go_plugins_come_through_with_code_and_name() {
    let node = Node::new(Plugins::Sid);
    let mut config = chain("1.1.0");
    config["plugins"][0]["vlan"] = json!(5000);
    node.network(&config);
    let container = node.container("c1");
    let output = Podwire(&node).on("add", &container).failure();
    for part in ["bridge", "5000", "999"] {
        assert!(output.stderr.contains(part), "{part}: {output:#?}");
    }
    assert!(!container.is_attached());
}
