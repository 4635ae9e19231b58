//! The testkit tested: worlds, probes, fakes and counted kills.

use std::net::{IpAddr, SocketAddr};
use std::process::Command;

use podwire_testkit::kill::{Killed, count, run_and_kill};
use podwire_testkit::probe::{self, ANSWER, SILENCE, TcpEcho, UdpEcho};
use podwire_testkit::{Netns, Plugin, World, fake};
use serde_json::json;

const LEFT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 9, 0, 1));
const RIGHT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 9, 0, 2));

/// Two namespaces with a cable between them.
fn pair(world: &World) -> (Netns, Netns) {
    let (left, right) = (world.netns("left"), world.netns("right"));
    world.exec(&[
        "ip", "link", "add", "l0", "netns", "left", "type", "veth", "peer", "name", "r0", "netns",
        "right",
    ]);
    for (side, link, address) in [(&left, "l0", LEFT), (&right, "r0", RIGHT)] {
        side.exec(&["ip", "addr", "add", &format!("{address}/24"), "dev", link]);
        side.exec(&["ip", "link", "set", link, "up"]);
    }
    (left, right)
}

#[test]
fn a_world_is_empty_and_private() {
    let world = World::new();
    let names: Vec<_> = world
        .ip_json(&["link"])
        .as_array()
        .unwrap()
        .iter()
        .map(|link| link["ifname"].clone())
        .collect();
    assert_eq!(names, ["lo"]);
    assert!(std::fs::read_dir("/var/lib/cni").unwrap().next().is_none());
    std::fs::write("/run/mark", "x").unwrap();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let _world = World::new();
            std::path::Path::new("/run/mark").exists()
        });
        assert!(!other.join().unwrap());
    });
    assert!(!world.host().open().is_same(&world.netns("x").open()).unwrap());
}

#[test]
fn probes_pass_a_cable_and_say_who_they_are() {
    let world = World::new();
    let (left, right) = pair(&world);
    probe::ping(&left, RIGHT, ANSWER).unwrap();
    let tcp = TcpEcho::start(&right, SocketAddr::new(RIGHT, 0));
    let mut connection = probe::tcp_connect(&left, tcp.address(), ANSWER).unwrap();
    assert_eq!(connection.seen_as.ip(), LEFT);
    connection.exchange(b"hello").unwrap();
    let udp = UdpEcho::start(&right, SocketAddr::new(RIGHT, 0));
    assert_eq!(probe::udp_exchange(&left, udp.address(), ANSWER).unwrap().ip(), LEFT);
    // And they fail where nothing is.
    assert!(probe::ping(&left, IpAddr::from([10, 9, 0, 3]), SILENCE).is_err());
    assert!(probe::tcp_connect(&left, SocketAddr::new(RIGHT, 1), SILENCE).is_err());
    assert!(probe::udp_exchange(&left, SocketAddr::new(RIGHT, 1), SILENCE).is_err());
}

#[test]
fn ipv6_is_probed_too() {
    let world = World::new();
    let (left, right) = pair(&world);
    let address: IpAddr = "fd09::2".parse().unwrap();
    left.exec(&["ip", "addr", "add", "fd09::1/64", "dev", "l0", "nodad"]);
    right.exec(&["ip", "addr", "add", "fd09::2/64", "dev", "r0", "nodad"]);
    probe::ping(&left, address, ANSWER).unwrap();
    let tcp = TcpEcho::start(&right, SocketAddr::new(address, 0));
    let connection = probe::tcp_connect(&left, tcp.address(), ANSWER).unwrap();
    assert_eq!(connection.seen_as.ip(), "fd09::1".parse::<IpAddr>().unwrap());
}

#[test]
fn a_snapshot_sees_each_kind_of_change() {
    let world = World::new();
    let before = world.snapshot();
    world.snapshot().since(&before).assert_empty();
    world.exec(&["ip", "link", "add", "br0", "type", "bridge"]);
    world.exec(&["ip", "addr", "add", "10.7.0.1/24", "dev", "br0"]);
    world.exec(&["ip", "link", "set", "br0", "up"]);
    world.exec(&["ip", "rule", "add", "from", "10.7.0.9", "table", "77"]);
    world.exec(&["ip", "route", "add", "10.8.0.0/24", "dev", "br0", "table", "77"]);
    world.exec(&[
        "tc", "qdisc", "add", "dev", "br0", "root", "tbf", "rate", "1mbit", "burst", "32k",
        "latency", "50ms",
    ]);
    world.exec(&["nft", "add table ip t; add chain ip t c; add set ip t s { type ipv4_addr; elements = { 1.2.3.4 }; }; add rule ip t c counter accept"]);
    std::fs::create_dir_all("/var/lib/cni/networks/n").unwrap();
    std::fs::write("/var/lib/cni/networks/n/10.7.0.2", "c1\r\neth0").unwrap();
    podwire_sys::sysctl::write(&["net", "ipv4", "ip_forward"], "1").unwrap();
    let difference = world.snapshot().since(&before);
    let names: Vec<&str> =
        difference.changes.iter().map(podwire_testkit::state::Change::name).collect();
    for expected in [
        "address br0 10.7.0.1/24",
        "file /var/lib/cni/networks/n/10.7.0.2",
        "link br0",
        "nft chain ip t c",
        "nft rule ip t c",
        "nft set ip t s",
        "nft table ip t",
        "qdisc br0 tbf",
        "route -4 77 10.8.0.0/24 br0",
        "route -4 main 10.7.0.0/24 br0",
        "sysctl net/ipv4/ip_forward",
    ] {
        assert!(names.contains(&expected), "{expected} is not in\n{difference}");
    }
    for prefix in ["nft element ip t s ", "rule -4 "] {
        assert!(
            names.iter().any(|name| name.starts_with(prefix)),
            "{prefix} is not in\n{difference}"
        );
    }
    let beyond: Vec<_> = difference.beyond_residue(&["br0"]).changes;
    assert_eq!(beyond.len(), 7, "{beyond:#?}");
}

#[test]
fn fakes_record_fail_and_answer_version() {
    let world = World::new();
    let directory = world.path("bin");
    fake::record("good").result(json!({"cniVersion": "%s", "ips": []})).write(&directory);
    fake::fail_del_once("once").write(&directory);
    fake::fail_add("bad").write(&directory);
    let call = |name: &str, verb: &str| {
        let plugin = Plugin::at(directory.join(name)).command(verb).container("c1").ifname("eth0");
        plugin.args("A=1").config(json!({"cniVersion": "1.0.0", "name": "it's"})).run()
    };
    assert_eq!(call("good", "VERSION").success().json()["cniVersion"], "1.1.0");
    assert_eq!(call("good", "ADD").success().json(), json!({"cniVersion": "1.0.0", "ips": []}));
    assert_eq!(call("bad", "ADD").error(100)["msg"], "told to fail");
    call("once", "DEL").failure();
    call("once", "DEL").success();
    let calls = fake::calls(&directory);
    let verbs: Vec<_> =
        calls.iter().map(|call| format!("{} {}", call.plugin, call.command)).collect();
    assert_eq!(verbs, ["good VERSION", "good ADD", "bad ADD", "once DEL", "once DEL"]);
    assert_eq!(calls[1].request()["name"], "it's");
    assert_eq!((calls[1].args.as_str(), calls[1].ifname.as_str()), ("A=1", "eth0"));
}

#[test]
fn a_process_is_killed_before_the_counted_call_is_made() {
    let world = World::new();
    let command = || {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "mkdir /run/world/made; cat; echo done"]);
        command
    };
    let calls = count(command(), b"input ");
    assert!(calls > 10, "{calls}");
    let (mut was_made, mut was_alone) = (Vec::new(), Vec::new());
    for number in 1..=calls {
        let _ = std::fs::remove_dir(world.path("made"));
        match run_and_kill(command(), b"input ", number) {
            Killed::At { call, is_alone, output } => {
                assert_eq!((call.count, output.code), (number, 137));
                was_alone.push(is_alone);
            }
            // The number of calls may differ by a few from run to run.
            Killed::Finished { output, .. } => assert_eq!(output.stdout, "input done\n"),
        }
        was_made.push(world.path("made").exists());
    }
    assert!(!was_made[0] && was_made[was_made.len() - 1], "{was_made:?}");
    // While the shell waits for mkdir and cat.
    assert!(was_alone[0] && was_alone.contains(&false), "{was_alone:?}");
}

/// Half of the test below; passes on its own too.
#[test]
fn four_threads_write() {
    let directory = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for number in 0..4 {
            let path = directory.path().join(number.to_string());
            scope.spawn(move || std::fs::write(path, "x").unwrap());
        }
    });
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 4);
}

#[test]
fn threads_are_counted_and_killed_together() {
    let command = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "four_threads_write"]).env("TMPDIR", "/run/world");
        command
    };
    let _world = World::new();
    let calls = count(command(), b"");
    let last = match run_and_kill(command(), b"", u64::MAX) {
        Killed::Finished { output, .. } => output.success(),
        Killed::At { call, .. } => panic!("{call}"),
    };
    assert!(last.stdout.contains("1 passed"), "{last:#?}");
    let mut killed = 0;
    for number in (1..calls).step_by(7) {
        if let Killed::At { call, output, .. } = run_and_kill(command(), b"", number) {
            killed += 1;
            assert_eq!(output.code, 137, "{call}");
            assert!(!call.to_string().is_empty());
        }
    }
    assert!(killed > 5, "{killed} of {calls}");
}
