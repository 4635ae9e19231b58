//! ADD, CHECK, DEL, STATUS and GC of one attachment, and what goes wrong with
//! it.

use std::net::IpAddr;

use podwire_testkit::probe::{ANSWER, ping};
use podwire_tests::segment::{Segment, config, is_empty, link, run};
use serde_json::{Value, json};

fn dual_stack(more: &Value) -> Value {
    let mut config = config("macvlan", more);
    config["ipam"] = json!({
        "type": "host-local",
        "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd01::/64"}]],
        "routes": [
            {"dst": "0.0.0.0/0", "gw": "10.1.0.254"}, {"dst": "::/0", "gw": "fd01::254"},
            {"dst": "10.9.0.0/16", "gw": "10.1.0.254", "table": 77, "mtu": 1300, "priority": 5},
        ],
    });
    config
}

#[test]
fn a_whole_life_in_every_version() {
    let segment = Segment::new();
    for version in ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let container = segment.container("c1");
        let before = segment.world.snapshot();
        let more = json!({"master": "up0", "cniVersion": version});
        let is_dual_stack = matches!(version, "0.2.0" | "0.3.1" | "1.1.0");
        let config = if is_dual_stack { dual_stack(&more) } else { config("macvlan", &more) };
        let checked = segment.add(&config, &container);
        let result = &checked["prevResult"];
        assert_eq!(result["cniVersion"], version);
        ping(&container, [10, 1, 0, 254], ANSWER).unwrap();
        if is_dual_stack {
            ping(&container, "fd01::254".parse::<IpAddr>().unwrap(), ANSWER).unwrap();
        }
        if version >= "0.3.0" {
            let interface = &result["interfaces"][0];
            assert_eq!(result["interfaces"].as_array().unwrap().len(), 1);
            assert_eq!(interface["name"], "eth0");
            assert_eq!(interface["mac"], link(&container)["address"]);
            assert_eq!(interface["sandbox"], container.path().to_str().unwrap());
            assert!(result["ips"].as_array().unwrap().iter().all(|ip| ip["interface"] == 0));
        }
        if version >= "0.4.0" {
            segment.check(&checked, &container).unwrap();
        }
        // prevResult isn't sent before 0.4.0.
        segment.del(if version < "0.4.0" { &config } else { &checked }, &container);
        assert!(is_empty(&container), "{version}");
        assert_eq!(segment.reserved("pods"), [""; 0], "{version}");
        segment.del(&config, &container);
        segment.world.snapshot().since(&before).beyond_residue(&[]).assert_empty();
        container.remove();
    }
}

#[test]
fn neighbours_are_told_and_routes_are_as_asked() {
    let segment = Segment::new();
    let container = segment.container("c1");
    let checked = segment.add(&dual_stack(&json!({"master": "up0"})), &container);
    for key in ["net.ipv4.conf.eth0.arp_notify", "net.ipv6.conf.eth0.ndisc_notify"] {
        assert_eq!(run(&container, &format!("sysctl -n {key}")).stdout.trim(), "1", "{key}");
    }
    let route = run(&container, "ip route show table 77").stdout;
    assert!(route.contains("10.9.0.0/16 via 10.1.0.254 dev eth0 metric 5 mtu 1300"), "{route}");
    segment.check(&checked, &container).unwrap();
    run(&container, "ip route flush table 77");
    let error = segment.check(&checked, &container).unwrap_err();
    assert!(error.contains("10.9.0.0/16"), "{error}");
}

#[test]
fn check_names_what_differs() {
    let segment = Segment::new();
    let container = segment.container("c1");
    let checked = segment.add(&config("macvlan", &json!({"master": "up0"})), &container);
    let differs = |change: &str, part: &str| {
        run(&container, change);
        let error = segment.check(&checked, &container).unwrap_err();
        assert!(error.contains(part), "{change}: {error}");
    };
    let mac = link(&container)["address"].as_str().unwrap().to_owned();
    differs("ip link set eth0 address 02:00:00:00:00:01", "MAC address");
    run(&container, &format!("ip link set eth0 address {mac}"));
    differs("ip link set eth0 type macvlan mode private", "macvlan mode");
    run(&container, "ip link set eth0 type macvlan mode bridge");
    segment.check(&checked, &container).unwrap();
    differs("ip route del default", "0.0.0.0/0");
    differs("ip addr del 10.1.0.2/24 dev eth0", "10.1.0.2/24");
    differs("ip link set eth0 down", "expected up, found down");
    let mut other = checked.clone();
    other["master"] = json!("up1");
    segment.host("ip link add up1 type veth peer name far1");
    let error = segment.check(&other, &container).unwrap_err();
    assert!(error.contains("master: expected up1"), "{error}");
    run(&container, "ip link del eth0");
    differs("ip link add eth0 type veth peer name eth1", "expected a macvlan, found veth");
}

/// B004: the address goes back whatever became of the namespace.
#[test]
fn b004_del_releases_the_address_without_a_namespace() {
    let segment = Segment::new();
    let config = config("macvlan", &json!({"master": "up0"}));
    for (id, fate) in [("gone", "gone"), ("empty", "empty"), ("plain", "plain")] {
        let container = segment.container(id);
        let checked = segment.add(&config, &container);
        assert_eq!(segment.reserved("pods").len(), 1);
        container.remove();
        let del = segment.call("DEL", &checked, &container);
        let del = match fate {
            "empty" => del.env("CNI_NETNS", ""),
            "plain" => {
                std::fs::write(container.path(), "").unwrap();
                del
            }
            _ => del,
        };
        del.clone().run().success();
        assert_eq!(segment.reserved("pods"), [""; 0], "{fate}");
        del.run().success();
    }
}

/// DEL needs neither the master nor a right configuration.
#[test]
fn del_needs_no_master() {
    let segment = Segment::new();
    let before = segment.world.snapshot();
    segment.host("ip link add up1 type veth peer name far1");
    let container = segment.container("c1");
    let mut checked = segment.add(&config("macvlan", &json!({"master": "up1"})), &container);
    segment.host("ip link del up1");
    assert!(is_empty(&container));
    checked["mode"] = json!("x");
    checked["mtu"] = json!("many");
    checked["prevResult"] = json!({"cniVersion": "1.1.0", "ips": 7});
    segment.del(&checked, &container);
    segment.del(&checked, &container);
    assert_eq!(segment.reserved("pods"), [""; 0]);
    segment.world.snapshot().since(&before).beyond_residue(&[]).assert_empty();
}

/// A failed ADD leaves neither interface nor address.
#[test]
fn a_failed_add_leaves_nothing() {
    let segment = Segment::new();
    let container = segment.container("c1");
    let before = (segment.world.snapshot(), container.snapshot());
    let mut lost = config("macvlan", &json!({"master": "up0"}));
    lost["ipam"]["routes"] = json!([{"dst": "10.9.0.0/16", "gw": "10.200.0.1", "scope": 253}]);
    let mut full = config("macvlan", &json!({"master": "up0"}));
    full["ipam"]["ranges"] =
        json!([[{"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.1", "rangeEnd": "10.1.0.1"}]]);
    for config in [&lost, &full] {
        segment.call("ADD", config, &container).run().failure();
        segment.world.snapshot().since(&before.0).beyond_residue(&[]).assert_empty();
        container.snapshot().since(&before.1).assert_empty();
    }
}

/// B098: on a shared segment another host may have the address.
#[test]
fn b098_a_duplicate_on_the_segment_fails_the_add() {
    let segment = Segment::new();
    let container = segment.container("c1");
    let mut config = config("macvlan", &json!({"master": "up0"}));
    config["ipam"] = json!({"type": "static", "addresses": [{"address": "fd01::254/64"}]});
    let error = segment.call("ADD", &config, &container).run().error(999).to_string();
    assert!(error.contains("dadfailed"), "{error}");
    assert!(is_empty(&container));
    // Without a carrier there is nobody to ask, and no end to wait for.
    run(&segment.outside, "ip link set eth0 down");
    segment.add(&config, &container);
}

/// B121: the host's names are no obstacle, nor is a long one.
#[test]
fn b121_names_and_queue_lengths() {
    let segment = Segment::new();
    segment.host("ip link add eth0 type veth peer name far0");
    let container = segment.container("c1");
    let config = config("macvlan", &json!({"master": "up0"}));
    segment.add(&config, &container);
    assert_eq!(link(&container)["txqlen"], 1000);
    let call = |verb| segment.call(verb, &config, &container).ifname("abcdefghijklmno");
    call("ADD").run().success();
    run(&container, "ip link show dev abcdefghijklmno");
    call("DEL").run().success();
    segment.del(&config, &container);
    assert!(is_empty(&container));
}

/// What isn't provably this attachment's stays.
#[test]
fn others_interfaces_are_left_alone() {
    let segment = Segment::new();
    let container = segment.container("c1");
    let config = config("macvlan", &json!({"master": "up0"}));
    let mut other = config.clone();
    other["name"] = json!("others");
    let checked = segment.add(&config, &container);
    let error = segment.call("ADD", &other, &container).run().error(102).to_string();
    assert!(error.contains("interface eth0 already exists in the container"), "{error}");
    assert_eq!(segment.reserved("others"), [""; 0]);
    // As a runtime does behind a failed ADD.
    segment.del(&other, &container);
    segment.check(&checked, &container).unwrap();
    segment.del(&checked, &container);
    assert!(is_empty(&container));
    // Of the right kind, but nobody says that it is the attachment's.
    segment.host("ip link add link up0 name tmp0 type macvlan mode bridge");
    segment.host("ip link set tmp0 netns c1 name eth0");
    segment.del(&config, &container);
    assert_eq!(link(&container)["linkinfo"]["info_kind"], "macvlan");
    run(&container, "ip link del eth0");
    run(&container, "ip link add eth0 type veth peer name eth1");
    segment.del(&checked, &container);
    assert_eq!(link(&container)["linkinfo"]["info_kind"], "veth");
}

/// B101: killed at any system call, ADD and DEL leave what the next DEL removes,
/// and no address is free while its interface is there.
#[test]
fn b101_killed_anywhere_the_next_del_removes_all() {
    let segment = Segment::new();
    let container = segment.container("c1");
    let config = config("macvlan", &json!({"master": "up0"}));
    segment.add(&config, &container);
    segment.del(&config, &container);
    let before = (segment.world.snapshot(), container.snapshot());
    let clean = |place: &str| {
        segment.del(&config, &container);
        assert!(is_empty(&container), "{place}");
        assert_eq!(segment.reserved("pods"), [""; 0], "{place}");
    };
    for number in 1.. {
        let killed = segment.call("ADD", &config, &container).kill_at(number);
        clean(&format!("ADD {number}"));
        if !killed.is_killed() {
            break;
        }
    }
    for number in 1.. {
        segment.add(&config, &container);
        let killed = segment.call("DEL", &config, &container).kill_at(number);
        let is_free = segment.reserved("pods").is_empty();
        assert!(is_empty(&container) || !is_free, "DEL {number}");
        clean(&format!("DEL {number}"));
        if !killed.is_killed() {
            break;
        }
    }
    segment.world.snapshot().since(&before.0).beyond_residue(&[]).assert_empty();
    container.snapshot().since(&before.1).assert_empty();
}

#[test]
fn status_is_about_master_and_ipam() {
    let segment = Segment::new();
    let container = segment.container("c1");
    let status = |more: &Value| segment.call("STATUS", &config("macvlan", more), &container).run();
    let before = segment.world.snapshot();
    status(&json!({"master": "up0"})).success();
    segment.world.snapshot().since(&before).beyond_residue(&[]).assert_empty();
    let error = status(&json!({"master": "up9"})).error(50).to_string();
    assert!(error.contains("up9"), "{error}");
    let error = status(&json!({})).error(50).to_string();
    assert!(error.contains("default route"), "{error}");
    status(&json!({"linkInContainer": true})).success();
    status(&json!({"master": "up0", "mode": "x"})).error(7);
}

/// The interface goes with its namespace; the address is IPAM's to collect.
#[test]
fn gc_frees_addresses_of_the_dead() {
    let segment = Segment::new();
    let mut config = config("macvlan", &json!({"master": "up0"}));
    let (alive, dead) = (segment.container("alive"), segment.container("dead"));
    segment.add(&config, &alive);
    segment.add(&config, &dead);
    dead.remove();
    config["cni.dev/valid-attachments"] = json!([{"containerID": "alive", "ifname": "eth0"}]);
    segment.call("GC", &config, &alive).run().success();
    assert_eq!(segment.reserved("pods"), ["10.1.0.2"]);
    assert_eq!(link(&alive)["linkinfo"]["info_kind"], "macvlan");
}
