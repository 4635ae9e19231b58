//! The parts of the script. Each checks what must be so whoever plays, and notes
//! what must only be the same.

use std::net::SocketAddr;

use podwire_testkit::probe::{self, ANSWER, SILENCE, TcpEcho};
use podwire_tests::lab::reservations;
use serde_json::{Value, json};

use crate::driver::{Stage, fails_about, outcome};

/// All that a runtime can ask for, by the plugins that take it.
fn full() -> Value {
    json!({
        "cniVersion": "1.1.0",
        "name": "pods",
        "plugins": [
            {
                "type": "bridge", "bridge": "br0", "isDefaultGateway": true, "ipMasq": true,
                "hairpinMode": true, "capabilities": {"ips": true, "mac": true},
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd01::/64"}]],
                },
                "dns": {"nameservers": ["10.1.0.1"], "search": ["pods.example"]},
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
            {"type": "bandwidth", "capabilities": {"bandwidth": true}},
            {"type": "firewall"},
            {
                "type": "tuning", "sysctl": {"net.core.somaxconn": "500"}, "mtu": 1400,
                "capabilities": {"mac": true},
            },
        ],
    })
}

fn bridge(name: &str, ipam: &Value) -> Value {
    json!({
        "cniVersion": "1.1.0",
        "name": name,
        "plugins": [{"type": "bridge", "bridge": "br0", "isGateway": true, "ipam": ipam}],
    })
}

/// ADD, CHECK, DEL with all capability arguments, and traffic.
pub(crate) fn attachments(stage: &Stage) {
    let node = &stage.node;
    let outside = node.outside();
    node.network(&full());
    stage.validate("pods").success();
    stage.status("pods").success();
    let first = node.container("first");
    let port =
        json!({"portMappings": [{"hostPort": 8079, "containerPort": 80, "protocol": "tcp"}]});
    stage.call("add", "pods", &first, &port).success();
    stage.call("del", "pods", &first, &port).success();
    let before = node.world.snapshot();

    let asked = json!({
        "portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}],
        "bandwidth": {"ingressRate": 8_000_000, "ingressBurst": 800_000,
                      "egressRate": 16_000_000, "egressBurst": 1_600_000},
        "ips": ["10.1.0.77/24", "fd01::77/64"],
        "mac": "02:00:5e:10:00:77",
        "dns": {"servers": ["10.1.0.53"]},
        "unasked": {"by": "nobody"},
    });
    let container = node.container("c1").with_arg("IgnoreUnknown", "1").with_arg("K8S_POD", "a");
    let other = node.container("c2");
    let result = stage.add("pods", &container, &asked);
    stage.add("pods", &other, &json!({}));
    assert_eq!(result["interfaces"][2]["mac"], "02:00:5e:10:00:77", "{result}");
    assert_eq!(result["ips"][0]["address"], "10.1.0.77/24", "{result}");
    stage.assert_recorded("pods", &container, &result);
    stage.note("reservations", &reservations("pods").join(" "));
    let queues: Vec<_> = node
        .world
        .snapshot()
        .facts()
        .map(|(name, value)| format!("{name} {value}"))
        .filter(|fact| fact.starts_with("qdisc "))
        .collect();
    stage.note("queues", &queues.join("\n"));
    let somaxconn = container.netns.exec(&["sysctl", "-n", "net.core.somaxconn"]);
    stage.note("sysctl", &somaxconn.stdout.trim());

    let server =
        TcpEcho::start(&container.netns, SocketAddr::new("10.1.0.77".parse().unwrap(), 80));
    let port = SocketAddr::new(outside.node, 8080);
    probe::tcp_connect(&outside.netns, port, ANSWER).unwrap().exchange(b"hello").unwrap();
    let listener = TcpEcho::start(&outside.netns, SocketAddr::new(outside.address, 0));
    let leaving = probe::tcp_connect(&container.netns, listener.address(), ANSWER).unwrap();
    assert_eq!(leaving.seen_as.ip(), outside.node, "masqueraded");
    drop((server, listener));
    for _ in 0..2 {
        stage.call("check", "pods", &container, &asked).success();
    }
    stage.on("check", "pods", &other).success();
    // Everything from the record, as after a restart of the runtime with less memory.
    stage.on("check", "pods", &container).success();

    other.netns.exec(&["ip", "route", "flush", "table", "main"]);
    stage.note("check without routes", &outcome(&stage.on("check", "pods", &other)));
    container.netns.exec(&["ip", "addr", "flush", "dev", "eth0"]);
    fails_about(stage.call("check", "pods", &container, &asked), &["10.1.0.77"]);
    for _ in 0..2 {
        stage.call("del", "pods", &container, &asked).success();
    }
    assert!(probe::tcp_connect(&outside.netns, port, SILENCE).is_err());
    other.netns.remove();
    stage.on("del", "pods", &other).success();
    assert_eq!(stage.records(), 0);
    assert!(!container.is_attached());
    stage.assert_nothing_left(&before);
}

/// `ipRanges`, `ips`, `CNI_ARGS`, and interfaces of one container on two networks.
pub(crate) fn addresses(stage: &Stage) {
    let node = &stage.node;
    let mut ranged = bridge("ranged", &json!({"type": "host-local"}));
    ranged["plugins"][0]["capabilities"] = json!({"ipRanges": true});
    node.network(&ranged);
    let mut fixed = bridge("fixed", &json!({"type": "static"}));
    fixed["plugins"][0]["bridge"] = json!("br1");
    fixed["plugins"][0]["capabilities"] = json!({"ips": true, "mac": true});
    node.network(&fixed);
    let before = node.world.snapshot();
    let ranges = json!({"ipRanges": [
        [{"subnet": "10.2.0.0/24", "rangeStart": "10.2.0.9", "rangeEnd": "10.2.0.10", "gateway": "10.2.0.1"}],
        [{"subnet": "fd02::/64"}],
    ]});
    let (left, right) = (node.container("c1"), node.container("c2"));
    let result = stage.add("ranged", &left, &ranges);
    assert_eq!(result["ips"][0]["address"], "10.2.0.9/24", "{result}");
    stage.add("ranged", &right, &ranges);
    let late = node.container("late");
    fails_about(stage.call("add", "ranged", &late, &ranges), &["10.2.0.9"]);
    stage.call("del", "ranged", &late, &ranges).success();
    stage.call("check", "ranged", &left, &ranges).success();

    let second = left.clone().with_ifname("net1");
    let asked = json!({"ips": ["10.3.0.7/24"], "mac": "02:00:5e:10:00:07"});
    let result = stage.call("add", "fixed", &second, &asked).success().json();
    stage.note("second result", &result);
    stage.look("second", &second);
    stage.assert_recorded("fixed", &second, &result);
    assert_eq!(stage.records(), 3);
    stage.call("check", "fixed", &second, &asked).success();
    stage.call("del", "fixed", &second, &asked).success();
    assert!(left.is_attached() && !second.is_attached());
    stage.call("check", "ranged", &left, &ranges).success();
    stage.call("del", "ranged", &left, &ranges).success();
    stage.call("del", "ranged", &right, &ranges).success();
    stage.note("reservations", &reservations("ranged").join(" "));

    let mut by_args = bridge("args", &json!({"type": "host-local", "subnet": "10.4.0.0/24"}));
    by_args["plugins"][0]["bridge"] = json!("br2");
    node.network(&by_args);
    let container = node
        .container("c3")
        .with_arg("IgnoreUnknown", "1")
        .with_arg("IP", "10.4.0.44")
        .with_arg("MAC", "02:00:5e:10:00:44");
    let result = stage.add("args", &container, &json!({}));
    assert_eq!(result["ips"][0]["address"], "10.4.0.44/24", "{result}");
    stage.on("del", "args", &container).success();
    assert_eq!(stage.records(), 0);
    let is_bridge = |change: &podwire_testkit::state::Change| {
        [" br1", " br2"].iter().any(|bridge| change.name().contains(bridge))
    };
    stage.left(&before).without(is_bridge).assert_empty();
}

/// GC: of the dead with records and without, and what it must not touch.
pub(crate) fn collection(stage: &Stage) {
    let node = &stage.node;
    node.network(&full());
    let first = node.container("first");
    stage.on("add", "pods", &first).success();
    stage.on("del", "pods", &first).success();
    let before = node.world.snapshot();
    let alive = node.container("alive");
    stage.add("pods", &alive, &json!({}));
    let with_alive = node.world.snapshot();
    for (name, port) in [("dead", 8081), ("gone", 8082)] {
        let container = node.container(name);
        let ports =
            json!({"portMappings": [{"hostPort": port, "containerPort": 80, "protocol": "tcp"}]});
        stage.add("pods", &container, &ports);
        if name == "gone" {
            container.netns.remove();
        }
    }
    assert_eq!(stage.records(), 3);
    stage.gc("pods", &[&alive]).success();
    assert_eq!(stage.records(), 1);
    stage.note("kept", &reservations("pods").join(" "));
    stage.assert_nothing_left(&with_alive);
    stage.on("check", "pods", &alive).success();
    stage.gc("pods", &[&alive]).success();
    stage.gc("pods", &[]).success();
    assert!(!alive.is_attached());
    assert_eq!(stage.records(), 0);
    stage.status("pods").success();
    stage.assert_nothing_left(&before);
}

/// `cniVersions`, `disableCheck`, `disableGC`, plugins in a folder of the list.
pub(crate) fn lists(stage: &Stage) {
    let node = &stage.node;
    let ipam = json!({"type": "host-local", "subnet": "10.1.0.0/24"});
    let before = node.world.snapshot();
    for (index, (version, versions)) in [
        ("0.3.1", json!(["0.4.0", "1.0.0", "1.1.0"])),
        ("1.1.0", json!(["0.4.0"])),
        ("0.4.0", json!(["0.3.1", "9.9.9"])),
        ("9.9.9", json!(["1.0.0", "0.4.0"])),
        ("1.0.0", json!([])),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("negotiated{index}");
        let mut config = bridge(&name, &ipam);
        config["cniVersion"] = json!(version);
        config["cniVersions"] = versions;
        std::fs::write(format!("/etc/cni/net.d/{name}.conflist"), config.to_string()).unwrap();
        let container = node.container(&format!("v{index}"));
        let result = stage.add(&name, &container, &json!({}));
        stage.note(&format!("{name} version"), &result["cniVersion"]);
        stage.assert_recorded(&name, &container, &result);
        stage.on("check", &name, &container).success();
        stage.on("del", &name, &container).success();
    }

    let mut quiet = bridge("quiet", &ipam);
    quiet["disableCheck"] = json!(true);
    quiet["disableGC"] = json!("True");
    node.network(&quiet);
    let container = node.container("quiet");
    stage.add("quiet", &container, &json!({}));
    container.netns.exec(&["ip", "addr", "flush", "dev", "eth0"]);
    stage.on("check", "quiet", &container).success();
    stage.gc("quiet", &[]).success();
    assert!(container.is_attached(), "nothing is collected");
    stage.on("del", "quiet", &container).success();

    let folder = std::path::Path::new("/etc/cni/net.d/folder");
    std::fs::create_dir(folder).unwrap();
    let tuning = json!({"type": "tuning", "sysctl": {"net.core.somaxconn": "333"}});
    std::fs::write(folder.join("10-tuning.conf"), tuning.to_string()).unwrap();
    std::fs::write(folder.join("20-ignored.json"), "{}").unwrap();
    std::fs::write("/etc/cni/net.d/folder.conflist", bridge("folder", &ipam).to_string()).unwrap();
    let container = node.container("folder");
    stage.add("folder", &container, &json!({}));
    let somaxconn = container.netns.exec(&["sysctl", "-n", "net.core.somaxconn"]);
    assert_eq!(somaxconn.stdout.trim(), "333");
    // The record holds what was run, though the file has gone since.
    std::fs::remove_file(folder.join("10-tuning.conf")).unwrap();
    stage.on("check", "folder", &container).success();
    stage.on("del", "folder", &container).success();
    assert_eq!(stage.records(), 0);
    stage.assert_nothing_left(&before);
}

/// What can't be: an error, and nothing left after the DEL that a runtime owes.
pub(crate) fn failures(stage: &Stage) {
    let node = &stage.node;
    let ipam = json!({"type": "host-local", "subnet": "10.1.0.0/24"});
    let good = bridge("pods", &ipam);
    node.network(&good);
    let holder = node.container("holder");
    stage.on("add", "pods", &holder).success();
    let before = node.world.snapshot();
    let container = node.container("c1");

    let mut broken = bridge("missing", &ipam);
    broken["plugins"].as_array_mut().unwrap().push(json!({"type": "no-such-plugin"}));
    node.network(&broken);
    fails_about(stage.validate("missing"), &["no-such-plugin"]);
    fails_about(stage.status("missing"), &["no-such-plugin"]);
    fails_about(stage.on("add", "missing", &container), &["no-such-plugin"]);
    // libcni doesn't undo what the first plugin made, and can't delete it before the
    // list names only what is there.
    node.network(&bridge("missing", &ipam));
    stage.on("del", "missing", &container).success();
    assert!(!container.is_attached());

    let mut broken = bridge("second", &ipam);
    broken["plugins"].as_array_mut().unwrap().push(json!({
        "type": "tuning", "sysctl": {"net.core.no_such_key": "1"},
    }));
    node.network(&broken);
    fails_about(stage.on("add", "second", &container), &["no_such_key"]);
    stage.on("del", "second", &container).success();
    assert!(!container.is_attached());
    stage.note("reservations", &reservations("second").join(" "));

    let taken = json!({"ips": ["10.1.0.2/24"]});
    let mut fixed = good;
    fixed["plugins"][0]["capabilities"] = json!({"ips": true});
    node.network(&fixed);
    fails_about(stage.call("add", "pods", &container, &taken), &["10.1.0.2"]);
    stage.call("del", "pods", &container, &taken).success();
    stage.on("check", "pods", &holder).success();

    fails_about(stage.on("add", "nowhere", &container), &["nowhere"]);
    std::fs::write("/etc/cni/net.d/torn.conflist", "{\"cniVersion\": \"1.1.0\", \"na").unwrap();
    fails_about(stage.on("add", "torn", &container), &[]);
    std::fs::remove_file("/etc/cni/net.d/torn.conflist").unwrap();
    assert_eq!(stage.records(), 1);
    stage.assert_nothing_left(&before);
    stage.on("del", "pods", &holder).success();
}
