//! One owner for a port, from ADD to DEL and garbage collection.

use podwire_testkit::probe::TcpEcho;
use serde_json::json;

use crate::lab::{HOST, Lab, ip, tcp, tcp_refused, tcp_seen};

#[test]
fn b035_a_live_holder_is_named_and_keeps_its_port() {
    let lab = Lab::new();
    let (c1, c2) = (lab.container("c1", 11), lab.container("c2", 12));
    let server = c1.tcp(80);
    lab.add(&c1, &tcp(8080, 80)).success();
    let before = lab.ruleset();
    let error = lab.add(&c2, &tcp(8080, 81)).error(101);
    let message = error["msg"].as_str().unwrap();
    assert!(message.contains("tcp port 8080"), "{message}");
    assert!(message.contains("pods/c1/eth0 (10.1.0.11)"), "{message}");
    assert_eq!(lab.ruleset(), before, "nothing of the refused ADD is left");
    tcp_seen(&lab.outside, HOST[0], 8080);
    drop(server);
    // The same port of another protocol is another port.
    lab.add(&c2, &json!([{"hostPort": 8080, "containerPort": 81, "protocol": "udp"}])).success();
}

#[test]
fn b020_b035_a_dead_holder_is_replaced_and_its_late_del_harms_nobody() {
    let lab = Lab::new();
    let (old, new) = (lab.container("old", 11), lab.container("new", 12));
    lab.add(&old, &tcp(8080, 80)).success();
    old.vanish(&lab);
    let _servers = new.tcp(81);
    lab.add(&new, &tcp(8080, 81)).success();
    tcp_seen(&lab.outside, HOST[0], 8080);
    for _ in 0..2 {
        lab.del(&old).success();
        tcp_seen(&lab.outside, HOST[0], 8080);
        tcp_seen(&lab.outside, HOST[1], 8080);
        lab.check(&new, &tcp(8080, 81)).success();
    }
    assert!(!lab.mentions("pods/old"), "{}", lab.ruleset());
    lab.del(&new).success();
    assert!(!lab.mentions("8080"), "{}", lab.ruleset());
}

/// The container's address went on to another one: whoever had it before is
/// gone, even where its interface can't tell.
#[test]
fn a_holder_whose_address_is_ours_by_now_is_replaced() {
    let lab = Lab::new();
    let old = lab.container("old", 11);
    lab.add(&old, &tcp(8080, 80)).success();
    old.vanish(&lab);
    let new = lab.container("new", 11);
    let _servers = new.tcp(80);
    lab.add(&new, &tcp(8080, 80)).success();
    tcp_seen(&lab.outside, HOST[0], 8080);
    tcp_seen(&new.netns, HOST[0], 8080);
    lab.del(&old).success();
    tcp_seen(&new.netns, HOST[0], 8080);
    lab.check(&new, &tcp(8080, 80)).success();
}

#[test]
fn a_second_add_of_the_same_attachment_has_the_last_word() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let _servers = (c1.tcp(80), c1.tcp(81));
    lab.add(&c1, &tcp(8080, 80)).success();
    lab.add(&c1, &tcp(8080, 81)).success();
    tcp_seen(&lab.outside, HOST[0], 8080);
    lab.check(&c1, &tcp(8080, 81)).success();
    lab.check(&c1, &tcp(8080, 80)).failure();
    lab.add(&c1, &tcp(9090, 80)).success();
    tcp_refused(&lab.outside, HOST[0], 8080);
    tcp_seen(&lab.outside, HOST[0], 9090);
    lab.del(&c1).success();
    assert!(!lab.mentions("c1"), "{}", lab.ruleset());
}

/// Runtimes hand a container's mappings to each of its networks.
#[test]
fn the_second_network_of_a_container_leaves_the_ports_with_the_first() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let _servers = c1.tcp(80);
    let on =
        |network: &str| json!({"name": network, "runtimeConfig": {"portMappings": tcp(8080, 80)}});
    lab.portmap("ADD", &c1, &on("pods")).run().success();
    let mut second = on("more");
    second["prevResult"] = json!({
        "cniVersion": "1.0.0",
        "interfaces": [{"name": "eth0", "sandbox": c1.netns.path()}],
        "ips": [{"address": "10.1.0.77/24", "interface": 0}]
    });
    lab.portmap("ADD", &c1, &second).run().success();
    tcp_seen(&lab.outside, HOST[0], 8080);
    lab.portmap("CHECK", &c1, &second).run().success();
    lab.portmap("DEL", &c1, &second).run().success();
    assert!(!lab.mentions("more/c1"), "{}", lab.ruleset());
    tcp_seen(&lab.outside, HOST[0], 8080);
    lab.portmap("CHECK", &c1, &on("pods")).run().success();
}

/// As after `podman network disconnect` of the first network, or the collection of
/// it: the port goes on to the next that asked for it, and comes back to nobody.
#[test]
fn the_next_network_of_a_container_takes_over_the_ports_of_the_first() {
    let lab = Lab::new();
    let (c1, stranger) = (lab.container("c1", 11), lab.container("c2", 12));
    let on = |network: &str, address: &str, more: bool| {
        let mut mappings = json!([
            {"hostPort": 8080, "containerPort": 80, "protocol": "tcp"},
            {"hostPort": 8081, "containerPort": 80, "protocol": "tcp", "hostIP": HOST[0]},
        ]);
        if more {
            mappings.as_array_mut().unwrap().extend(tcp(9090, 80).as_array().unwrap().clone());
        }
        json!({
            "name": network,
            "runtimeConfig": {"portMappings": mappings},
            "prevResult": {
                "cniVersion": "1.0.0",
                "interfaces": [{"name": "eth0", "sandbox": c1.netns.path()}],
                "ips": [{"address": address, "interface": 0}]
            },
        })
    };
    let [first, second, third] = [
        on("first", "10.1.0.11/24", true),
        on("second", "10.1.0.77/24", false),
        on("third", "10.1.0.78/24", true),
    ];
    for address in ["10.1.0.77/24", "10.1.0.78/24"] {
        c1.netns.exec(&["ip", "addr", "add", address, "dev", "eth0"]);
    }
    let _servers: Vec<_> = ["10.1.0.11", "10.1.0.77", "10.1.0.78"]
        .map(|address| TcpEcho::start(&c1.netns, (ip(address), 80)))
        .into();
    // Whose the one element for a port is.
    let holders = |port: u16| -> Vec<String> {
        let ruleset = lab.ruleset();
        let elements = ruleset.split([',', '{', '}']).filter(|text| {
            text.contains(&format!("tcp . {port} comment")) && text.contains(" : 10.1.0.")
        });
        let comments = elements.filter_map(|text| text.split('"').nth(1)?.split(' ').nth(1));
        comments.map(str::to_owned).collect()
    };

    for config in [&first, &second, &third, &first] {
        lab.portmap("ADD", &c1, config).run().success();
    }
    assert_eq!(holders(8080), ["first/c1/eth0"], "{}", lab.ruleset());
    lab.portmap("DEL", &c1, &first).run().success();
    assert_eq!(holders(8080), ["second/c1/eth0"], "{}", lab.ruleset());
    assert_eq!(holders(8081), ["second/c1/eth0"], "{}", lab.ruleset());
    assert_eq!(holders(9090), ["third/c1/eth0"], "{}", lab.ruleset());
    for port in [8080, 8081, 9090] {
        tcp_seen(&lab.outside, HOST[0], port);
    }
    for config in [&second, &third] {
        lab.portmap("CHECK", &c1, config).run().success();
    }
    let error = lab.add(&stranger, &tcp(8080, 80)).error(101);
    assert!(error["msg"].to_string().contains("second/c1/eth0"), "{error}");

    // The first comes back behind them, and its DEL harms nobody.
    lab.portmap("ADD", &c1, &first).run().success();
    lab.portmap("DEL", &c1, &first).run().success();
    let collect = json!({
        "cniVersion": "1.1.0", "name": "second", "type": "portmap",
        "cni.dev/valid-attachments": []
    });
    lab.world.plugin("portmap").command("GC").config(collect).run().success();
    assert_eq!(holders(8080), ["third/c1/eth0"], "{}", lab.ruleset());
    for port in [8080, 8081, 9090] {
        tcp_seen(&lab.outside, HOST[0], port);
    }
    lab.portmap("CHECK", &c1, &third).run().success();
    lab.portmap("DEL", &c1, &third).run().success();
    assert!(!lab.mentions("c1/eth0") && !lab.mentions("8080"), "{}", lab.ruleset());
    lab.add(&stranger, &tcp(8080, 80)).success();
}

/// An ADD again with fewer mappings lets go of the rest.
#[test]
fn a_port_that_its_holder_wants_no_more_goes_to_the_containers_next_network() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let _servers = c1.tcp(80);
    let on = |network: &str, port: u16| json!({"name": network, "runtimeConfig": {"portMappings": tcp(port, 80)}});
    lab.portmap("ADD", &c1, &on("first", 8080)).run().success();
    lab.portmap("ADD", &c1, &on("second", 8080)).run().success();
    lab.portmap("ADD", &c1, &on("first", 9090)).run().success();
    for port in [8080, 9090] {
        tcp_seen(&lab.outside, HOST[0], port);
        tcp_seen(&lab.outside, HOST[1], port);
    }
    lab.portmap("CHECK", &c1, &on("first", 9090)).run().success();
    lab.portmap("CHECK", &c1, &on("second", 8080)).run().success();
    lab.portmap("DEL", &c1, &on("second", 8080)).run().success();
    tcp_refused(&lab.outside, HOST[0], 8080);
    tcp_seen(&lab.outside, HOST[0], 9090);
    lab.portmap("DEL", &c1, &on("first", 9090)).run().success();
    assert!(!lab.mentions("c1/eth0"), "{}", lab.ruleset());
}

#[test]
fn garbage_collection_frees_the_dead_of_its_network_only() {
    let lab = Lab::new();
    let (c1, c2, c3) = (lab.container("c1", 11), lab.container("c2", 12), lab.container("c3", 13));
    let _servers = c2.tcp(80);
    lab.add(&c1, &tcp(8081, 80)).success();
    lab.add(&c2, &tcp(8082, 80)).success();
    let other = json!({"name": "other", "runtimeConfig": {"portMappings": tcp(8083, 80)}});
    lab.portmap("ADD", &c3, &other).run().success();
    // A user's own objects, alike but for the owner.
    lab.world.exec(&["nft", "add table ip user"]);
    lab.world.exec(&["nft", "add chain ip user CNI-USER"]);
    lab.gc(&[&c2]).success();
    let ruleset = lab.ruleset();
    assert!(!ruleset.contains("c1/eth0") && !ruleset.contains("8081"), "{ruleset}");
    assert!(ruleset.contains("other/c3/eth0") && ruleset.contains("CNI-USER"), "{ruleset}");
    tcp_seen(&lab.outside, HOST[0], 8082);
    lab.check(&c2, &tcp(8082, 80)).success();
    lab.gc(&[]).success();
    assert!(!lab.mentions("8082") && lab.mentions("8083"));
}

#[test]
fn garbage_collection_without_a_list_frees_nothing() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    lab.add(&c1, &tcp(8080, 80)).success();
    let config = json!({"cniVersion": "1.1.0", "name": "pods", "type": "portmap"});
    let before = lab.ruleset();
    lab.world.plugin("portmap").command("GC").config(config).run();
    assert_eq!(lab.ruleset(), before);
}

/// `nft list ruleset` into a file and back is how hosts keep their rules: the
/// owners come through it.
#[test]
fn owners_survive_saving_and_restoring_the_ruleset() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let _servers = c1.tcp(80);
    let mut mappings: Vec<_> = (9000..9030)
        .map(|port| json!({"hostPort": port, "containerPort": 80, "protocol": "tcp"}))
        .collect();
    mappings.push(json!({"hostPort": 8080, "containerPort": 80, "hostIP": HOST[1]}));
    let mappings = json!(mappings);
    lab.add(&c1, &mappings).success();
    let saved = lab.world.write("ruleset", lab.ruleset());
    lab.world.exec(&["nft", "flush", "ruleset"]);
    lab.check(&c1, &mappings).failure();
    lab.world.exec(&["nft", "-f", saved.to_str().unwrap()]);
    lab.check(&c1, &mappings).success();
    tcp_seen(&lab.outside, HOST[0], 9029);
    tcp_seen(&lab.outside, HOST[1], 8080);
    lab.del(&c1).success();
    assert!(!lab.mentions("c1") && !lab.mentions("90"), "{}", lab.ruleset());
}
