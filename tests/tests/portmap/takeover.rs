//! Containers that the Go plugin attached, handed over to ours.

use std::ffi::OsString;
use std::os::unix::fs::symlink;

use podwire_testkit::{GoPlugins, Plugin};
use serde_json::{Value, json};

use crate::lab::{Container, HOST, Lab, portmap, tcp, tcp_refused, tcp_seen};

/// A release of the Go plugin with one of its backends.
struct Peer {
    plugins: GoPlugins,
    backend: &'static str,
    /// A PATH on which `iptables` is the legacy one.
    path: Option<OsString>,
}

impl Peer {
    /// Version 1.1.1 with iptables, 1.9.1 or newer with both backends.
    fn all() -> [Self; 3] {
        let peer = |plugins, backend| Self { plugins, backend, path: None };
        [
            peer(GoPlugins::debian(), "iptables"),
            peer(GoPlugins::sid(), "iptables"),
            peer(GoPlugins::sid(), "nftables"),
        ]
    }

    fn call(&self, verb: &str, container: &Container, keys: &Value) -> Plugin {
        let mut keys = keys.clone();
        keys["backend"] = json!(self.backend);
        let plugin = portmap(self.plugins.plugin("portmap"), verb, container, &keys);
        match &self.path {
            Some(path) => plugin.env("PATH", path),
            None => plugin,
        }
    }

    fn add(&self, container: &Container, network: &str, mappings: &Value) {
        let keys = json!({"name": network, "runtimeConfig": {"portMappings": mappings}});
        self.call("ADD", container, &keys).run().success();
    }

    fn name(&self) -> String {
        format!("{} with {}", self.plugins.directory().display(), self.backend)
    }
}

fn four(port: u16) -> Value {
    json!([{"hostPort": port, "containerPort": 80, "protocol": "tcp"},
           {"hostPort": port + 1, "containerPort": 80, "protocol": "tcp", "hostIP": HOST[0]},
           {"hostPort": port, "containerPort": 80, "protocol": "udp"},
           {"hostPort": port + 2, "containerPort": 80, "protocol": "tcp"}])
}

#[test]
fn del_and_check_take_over_what_the_go_plugin_made() {
    for peer in Peer::all() {
        let lab = Lab::new();
        let (c1, c2) = (lab.container("c1", 11), lab.container("c2", 12));
        let _servers = (c1.tcp(80), c2.tcp(80));
        peer.add(&c1, "pods", &four(8010));
        peer.add(&c2, "pods", &four(8020));
        tcp_seen(&lab.outside, HOST[0], 8010);
        lab.check(&c1, &four(8010)).success();
        let mut more = four(8010);
        more.as_array_mut().unwrap().extend(tcp(8030, 80).as_array().unwrap().clone());
        lab.check(&c1, &more).failure();
        lab.del(&c1).success();
        lab.del(&c1).success();
        for family in [0, 1] {
            tcp_refused(&lab.outside, HOST[family], 8010);
            tcp_seen(&lab.outside, HOST[family], 8020);
        }
        lab.check(&c1, &four(8010)).failure();
        lab.check(&c2, &four(8020)).success();
        let left = lab.ruleset();
        assert!(
            !left.contains("10.1.0.11") && !left.contains("fd00:1::11"),
            "{}: {left}",
            peer.name()
        );
        // The port is free for one of ours, beside the other's.
        lab.add(&c1, &four(8010)).success();
        tcp_seen(&lab.outside, HOST[0], 8010);
        tcp_seen(&lab.outside, HOST[0], 8020);
        lab.del(&c1).success();
        lab.del(&c2).success();
        tcp_refused(&lab.outside, HOST[0], 8020);
        let left = lab.ruleset();
        assert!(!left.contains("10.1.0.1") && !left.contains("CNI-DN"), "{}: {left}", peer.name());
    }
}

/// Its rules come before ours: a second mapping of the port would never work.
#[test]
fn a_port_that_a_container_of_go_holds_is_refused_by_name_until_that_is_gone() {
    for peer in Peer::all() {
        let lab = Lab::new();
        let (old, new) = (lab.container("old", 11), lab.container("new", 12));
        peer.add(&old, "pods", &four(8010));
        let before = lab.ruleset();
        let error = lab.add(&new, &tcp(8012, 80)).error(101).to_string();
        let name = if peer.backend == "iptables" { "pods/old" } else { "?/old" };
        assert!(error.contains("tcp port 8012") && error.contains(name), "{error}");
        assert_eq!(lab.ruleset(), before, "{}", peer.name());
        // Go's holds this one for one address of the host only.
        lab.add(&new, &tcp(8011, 80)).success();
        lab.del(&new).success();
        // The container itself, by a network of ours.
        let network = json!({
            "name": "more", "runtimeConfig": {"portMappings": tcp(8012, 80)},
        });
        lab.portmap("ADD", &old, &network).run().success();
        lab.portmap("DEL", &old, &network).run().success();
        old.vanish(&lab);
        lab.world.exec(&["ip", "neigh", "flush", "all"]);
        let heir = lab.container("heir", 11);
        let _servers = heir.tcp(80);
        lab.add(&heir, &four(8010)).success();
        for host in HOST {
            tcp_seen(&lab.outside, host, 8010);
        }
        lab.check(&heir, &four(8010)).success();
        lab.del(&heir).success();
        assert!(!lab.mentions("10.1.0.11"), "{}: {}", peer.name(), lab.ruleset());
    }
}

/// The Go plugin's nftables rules name only the container; its address tells
/// which of its networks one is of.
#[test]
fn del_of_one_network_leaves_the_containers_other_one() {
    for peer in Peer::all() {
        let lab = Lab::new();
        let c1 = lab.container("c1", 11);
        let _servers = c1.tcp(80);
        let second = json!({
            "name": "more", "runtimeConfig": {"portMappings": four(8020)},
            "prevResult": {
                "cniVersion": "1.0.0",
                "interfaces": [{"name": "eth0", "sandbox": c1.netns.path()}],
                "ips": [{"address": "10.1.0.77/24", "interface": 0}]
            }
        });
        peer.add(&c1, "pods", &four(8010));
        peer.call("ADD", &c1, &second).run().success();
        lab.portmap("DEL", &c1, &second).run().success();
        let left = lab.ruleset();
        assert!(!left.contains("10.1.0.77"), "{}: {left}", peer.name());
        tcp_seen(&lab.outside, HOST[0], 8010);
        tcp_seen(&lab.outside, HOST[1], 8010);
    }
}

/// With iptables the entry rules name network and container; with nftables
/// they don't, and nothing is removed.
#[test]
fn garbage_collection_removes_what_names_its_network_and_a_dead_container() {
    for peer in Peer::all() {
        let lab = Lab::new();
        let (c1, c2, c3) =
            (lab.container("c1", 11), lab.container("c2", 12), lab.container("c3", 13));
        let _servers = (c2.tcp(80), c3.tcp(80));
        peer.add(&c1, "pods", &four(8010));
        peer.add(&c2, "pods", &four(8020));
        peer.add(&c3, "other", &four(8030));
        lab.world.exec(&["iptables-nft", "-t", "nat", "-N", "CNI-DN-ofauser"]);
        lab.gc(&[&c2]).success();
        let left = lab.ruleset();
        assert!(left.contains("CNI-DN-ofauser"), "{left}");
        let named = peer.backend == "iptables";
        assert_eq!(!left.contains("10.1.0.11"), named, "{}: {left}", peer.name());
        tcp_seen(&lab.outside, HOST[0], 8020);
        tcp_seen(&lab.outside, HOST[0], 8030);
    }
}

#[test]
fn b076_del_and_gc_look_into_legacy_xtables_where_they_are_in_use() {
    let lab = Lab::new();
    for tool in ["iptables", "ip6tables"] {
        let link = lab.world.path(tool);
        symlink(format!("/usr/sbin/{tool}-legacy"), link).unwrap();
    }
    let directory = lab.world.path("");
    let path = std::env::join_paths([directory, "/usr/sbin".into()]).unwrap();
    let peer = Peer { plugins: GoPlugins::sid(), backend: "iptables", path: Some(path) };
    let (c1, c2, c3) = (lab.container("c1", 11), lab.container("c2", 12), lab.container("c3", 13));
    let _servers = (c1.tcp(80), c2.tcp(80), c3.tcp(80));
    for (container, port) in [(&c1, 8010), (&c2, 8020), (&c3, 8030)] {
        peer.add(container, "pods", &four(port));
        tcp_seen(&lab.outside, HOST[0], port);
    }
    let legacy = |tool: &str| lab.world.exec(&[tool, "-t", "nat", "-S"]).stdout;
    assert!(legacy("iptables-legacy").contains("10.1.0.11"));
    // One mapping: of more, ip6tables-legacy takes the second for the first that it has.
    let c4 = lab.container("c4", 14);
    peer.add(&c4, "pods", &tcp(8040, 80));
    lab.check(&c4, &tcp(8040, 80)).success();
    let mut more = tcp(8040, 80);
    more.as_array_mut().unwrap().extend(tcp(8050, 80).as_array().unwrap().clone());
    lab.check(&c4, &more).failure();
    let error = lab.add(&c2, &tcp(8040, 80)).error(101).to_string();
    assert!(error.contains("pods/c4"), "{error}");
    lab.del(&c4).success();
    lab.check(&c4, &tcp(8040, 80)).failure();
    lab.del(&c1).success();
    lab.gc(&[&c2]).success();
    for (tool, [first, second, third]) in [
        ("iptables-legacy", ["10.1.0.11", "10.1.0.12", "10.1.0.13"]),
        ("ip6tables-legacy", ["fd00:1::11", "fd00:1::12", "fd00:1::13"]),
    ] {
        let left = legacy(tool);
        assert!(!left.contains(first) && !left.contains(third), "{left}");
        assert!(left.contains(second), "{left}");
    }
    tcp_seen(&lab.outside, HOST[0], 8020);
    tcp_refused(&lab.outside, HOST[0], 8010);
}
