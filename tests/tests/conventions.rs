//! What runtimes take for granted beside the specification: nerdctl, CRI-O and
//! containerd, without the programs themselves. Each is driven by Go's own libcni
//! or as a plugin is called.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use podwire_testkit::probe::{self, ANSWER, TcpEcho};
use podwire_tests::{Node, Plugins};
use serde_json::{Value, json};

/// A list as nerdctl and CRI-O write it.
fn list(version: &str) -> Value {
    json!({
        "cniVersion": version,
        "name": "pods",
        "nerdctlID": "17f29b07",
        "plugins": [
            {
                "type": "bridge", "bridge": "br0", "isGateway": true, "ipMasq": true,
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd01::/64"}]],
                    "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
            {"type": "firewall", "ingressPolicy": "same-bridge"},
            {"type": "tuning"},
        ],
    })
}

/// nerdctl deletes before it attaches, to clean up after a container of the same id;
/// it has no namespace then, and says so with an empty path.
#[test]
fn nerdctl_deletes_before_it_attaches_and_names_no_namespace() {
    let node = Node::new(Plugins::Ours);
    let config = list("1.0.0");
    node.network(&config);
    let neighbour = node.container("neighbour").with_port(8079, 80);
    node.libcni().on("add", "pods", &neighbour).success();
    let before = node.world.snapshot();
    let delete = || {
        let arguments = ["del", "--network", "pods", "--container-id", "c1", "--ifname", "eth0"];
        let mapping = r#"{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}"#;
        let more = ["--netns", "", "--args", "", "--capability-args", mapping];
        node.libcni().run(&[&arguments[..], &more].concat()).success();
    };
    delete();
    node.assert_nothing_left(&before);

    let container = node.container("c1").with_port(8080, 80);
    node.libcni().on("add", "pods", &container).success();
    node.libcni().on("check", "pods", &container).success();
    // And after it, still without a namespace: nothing of it stays but what is inside.
    delete();
    delete();
    let rules = node.world.exec(&["nft", "list", "ruleset"]).stdout;
    assert!(!rules.contains("/c1/") && rules.contains("/neighbour/"), "{rules}");
    let reserved: Vec<_> = podwire_tests::lab::reservations("pods");
    assert_eq!(reserved, ["10.1.0.2", "fd01::2"]);
    // The container starts again under its id, in a new namespace.
    container.netns.remove();
    let again = node.container("c1").with_port(8080, 80);
    node.libcni().on("add", "pods", &again).success();
    node.libcni().on("check", "pods", &again).success();
    node.libcni().on("check", "pods", &neighbour).success();
}

/// The libraries of CRI-O and containerd write the fields of a mapping and of a limit
/// as Go names them, in capitals.
#[test]
fn capability_arguments_are_read_in_gos_capitals() {
    let node = Node::new(Plugins::Ours);
    let mut config = list("1.0.0");
    let limit = json!({"type": "bandwidth", "capabilities": {"bandwidth": true}});
    config["plugins"].as_array_mut().unwrap().push(limit);
    node.network(&config);
    let outside = node.outside();
    let container = node.container("c1");
    let values = json!({
        "portMappings": [
            {"HostPort": 8080, "ContainerPort": 80, "Protocol": "TCP", "HostIP": ""},
        ],
        "bandwidth": {"IngressRate": 8_000_000, "IngressBurst": 800_000,
                      "EgressRate": 8_000_000, "EgressBurst": 800_000},
    });
    let netns = container.netns.path().to_str().unwrap().to_owned();
    let call = |verb: &str| {
        let values = values.to_string();
        let arguments = [verb, "--network", "pods", "--container-id", "c1", "--ifname", "eth0"];
        let more = ["--netns", &netns, "--args", "", "--capability-args", &values];
        node.libcni().run(&[&arguments[..], &more].concat()).success();
    };
    call("add");
    let address = container.addresses()[0];
    let server = TcpEcho::start(&container.netns, SocketAddr::new(address, 80));
    let mapped = SocketAddr::new(outside.node, 8080);
    probe::tcp_connect(&outside.netns, mapped, ANSWER).unwrap().exchange(b"hi").unwrap();
    drop(server);
    let shaped = node.world.exec(&["tc", "qdisc"]).stdout;
    assert_eq!(shaped.matches("tbf").count(), 2, "{shaped}");
    call("check");
    call("del");
    assert!(!node.world.exec(&["tc", "qdisc"]).stdout.contains("tbf"));
}

/// nerdctl reads the release of `firewall` from its about text, and takes the second
/// policy only from 1.1.0 on.
#[test]
fn the_about_text_tells_a_release_that_nerdctl_understands() {
    let node = Node::new(Plugins::Ours);
    for name in ["firewall", "bridge", "host-local"] {
        let program = Path::new(node.world.plugin_directory()).join(name);
        let output = Command::new(program).env_clear().stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        let release = text.lines().next().unwrap().strip_prefix(&format!("CNI {name} plugin v"));
        let release = release.unwrap_or_else(|| panic!("{text}"));
        let numbers: Vec<u32> = release.split('.').map(|part| part.parse().unwrap()).collect();
        assert!(numbers.len() == 3 && numbers >= vec![1, 1, 0], "{release}");
        let versions = text.lines().last().unwrap();
        assert!(versions.starts_with("CNI protocol versions supported: "), "{text}");
    }
}

/// CRI-O asks for a CHECK as soon as ADD has returned.
#[test]
fn check_holds_straight_after_add() {
    let node = Node::new(Plugins::Ours);
    node.network(&list("1.0.0"));
    for number in 0..5 {
        let container = node.container(&format!("c{number}")).with_port(8080 + number, 80);
        node.libcni().on("add", "pods", &container).success();
        node.libcni().on("check", "pods", &container).success();
    }
}

/// containerd asks for the state of a network every few seconds, also while it
/// attaches: an answer each time, and nothing changed by asking.
#[test]
fn status_is_asked_again_and_again_and_changes_nothing() {
    let node = Node::new(Plugins::Ours);
    node.network(&list("1.1.0"));
    let before = node.world.snapshot();
    for _ in 0..5 {
        node.libcni().status("status", "pods").success();
    }
    node.assert_nothing_left(&before);
    let container = node.container("c1").with_port(8080, 80);
    node.libcni().on("add", "pods", &container).success();
    let before = node.world.snapshot();
    let plugins = node.plugin_directory();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| {
            let bridge = plugins.join("bridge");
            let config = {
                let mut config = list("1.1.0")["plugins"][0].clone();
                config["cniVersion"] = json!("1.1.0");
                config["name"] = json!("pods");
                config
            };
            (0..20).all(|_| {
                let call = podwire_testkit::Plugin::at(&bridge).search_in(&[&plugins]);
                call.command("STATUS").config(&config).run().code == 0
            })
        });
        for number in 1..4 {
            let other = node.container(&format!("other{number}"));
            node.libcni().on("add", "pods", &other).success();
            node.libcni().on("del", "pods", &other).success();
            other.netns.remove();
        }
        assert!(asked.join().unwrap(), "a STATUS failed while containers came and went");
    });
    node.assert_nothing_left(&before);
}

/// CRI-O collects at its start: before there was any attachment, and with those that
/// it knows.
#[test]
fn gc_at_the_start_of_a_runtime_keeps_what_it_knows() {
    let node = Node::new(Plugins::Ours);
    node.network(&list("1.1.0"));
    let before = node.world.snapshot();
    node.libcni().gc("pods", &[]).success();
    node.assert_nothing_left(&before);
    let kept = node.container("kept").with_port(8080, 80);
    let lost = node.container("lost").with_port(8081, 80);
    for container in [&kept, &lost] {
        node.libcni().on("add", "pods", container).success();
    }
    lost.netns.remove();
    node.libcni().gc("pods", &[&kept]).success();
    node.libcni().on("check", "pods", &kept).success();
    let rules = node.world.exec(&["nft", "list", "ruleset"]).stdout;
    assert!(!rules.contains("/lost/") && rules.contains("/kept/"), "{rules}");
    assert_eq!(podwire_tests::lab::reservations("pods"), ["10.1.0.2", "fd01::2"]);
}
