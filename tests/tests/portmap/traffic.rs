//! Who reaches what, and whom the server sees.

use std::net::Ipv6Addr;

use podwire_testkit::probe::{TcpEcho, tcp_connect};
use serde_json::json;

use crate::lab::{
    GATEWAY, HOST, Lab, OUTSIDE, PATIENCE, ip, tcp, tcp_refused, tcp_seen, udp, udp_refused,
    udp_seen,
};

#[test]
fn b107_every_way_to_a_port_works_and_outside_sources_are_kept() {
    // A name with a dot: sysctl keys must not be put together with dots.
    let lab = Lab::with_bridge("br.1");
    let (c1, c2) = (lab.container("c1", 11), lab.container("c2", 12));
    let _servers = c1.tcp(80);
    lab.add(&c1, &tcp(8080, 80)).success();
    let host = lab.world.host();
    for (family, bridged) in [(0, false), (1, false), (0, true), (1, true)] {
        lab.filter_bridged(bridged);
        assert_eq!(tcp_seen(&lab.outside, HOST[family], 8080), ip(OUTSIDE[family]));
        assert_eq!(tcp_seen(host, HOST[family], 8080), ip(HOST[family]), "from the host");
        assert_eq!(tcp_seen(host, GATEWAY[family], 8080), ip(GATEWAY[family]), "from the host");
        assert_eq!(tcp_seen(&c1.netns, HOST[family], 8080), ip(GATEWAY[family]), "from itself");
        assert_eq!(tcp_seen(&c2.netns, HOST[family], 8080), ip(GATEWAY[family]), "a neighbour");
        assert_eq!(tcp_seen(&c2.netns, GATEWAY[family], 8080), ip(GATEWAY[family]));
    }
    assert_eq!(tcp_seen(host, "127.0.0.1", 8080), ip(GATEWAY[0]), "localhost");
    let refused = tcp_connect(host, (Ipv6Addr::LOCALHOST, 8080), PATIENCE).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused, "at once");
    let localnet = |device: &str| {
        let key = format!("/proc/sys/net/ipv4/conf/{device}/route_localnet");
        lab.world.exec(&["cat", &key]).stdout.trim().to_owned()
    };
    assert_eq!(localnet("br.1"), "1");
    for other in ["all", "default", "up0", "v-c1"] {
        assert_eq!(localnet(other), "0", "{other}");
    }
    lab.check(&c1, &tcp(8080, 80)).success();
    lab.del(&c1).success();
    for family in [0, 1] {
        tcp_refused(&lab.outside, HOST[family], 8080);
        tcp_refused(host, HOST[family], 8080);
    }
    assert!(!lab.mentions("c1"), "{}", lab.ruleset());
}

#[test]
fn udp_is_forwarded_over_both_versions_of_ip() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let _servers = c1.udp(53);
    lab.add(&c1, &udp(5353, 53)).success();
    for family in [0, 1] {
        assert_eq!(udp_seen(&lab.outside, HOST[family], 5353).unwrap(), ip(OUTSIDE[family]));
        assert_eq!(udp_seen(&c1.netns, HOST[family], 5353).unwrap(), ip(GATEWAY[family]));
    }
    udp_refused(&lab.outside, HOST[0], 53);
    lab.del(&c1).success();
    for family in [0, 1] {
        udp_refused(&lab.outside, HOST[family], 5353);
    }
}

/// This kernel has no SCTP sockets, so what is looked at is the element; the
/// rules that look it up are the same for all protocols.
#[test]
fn sctp_and_names_in_any_case_have_elements_of_their_own() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let mappings = json!([
        {"HostPort": 7777, "ContainerPort": 99, "Protocol": "SCTP", "HostIP": ""},
        {"HostPort": 7777, "ContainerPort": 98, "Protocol": "Tcp", "HostIP": ""}
    ]);
    lab.add(&c1, &mappings).success();
    let ruleset = lab.ruleset();
    assert!(ruleset.contains("sctp . 7777"), "{ruleset}");
    assert!(ruleset.contains(": 10.1.0.11 . 99"), "{ruleset}");
    assert!(ruleset.contains(": fd00:1::11 . 98"), "{ruleset}");
    lab.check(&c1, &mappings).success();
    lab.del(&c1).success();
    assert!(!lab.mentions("7777"));
}

#[test]
fn b107_without_snat_only_others_reach_the_port() {
    let lab = Lab::new();
    let (c1, c2) = (lab.container("c1", 11), lab.container("c2", 12));
    let _servers = c1.tcp(80);
    let config = json!({"snat": false, "runtimeConfig": {"portMappings": tcp(8080, 80)}});
    lab.portmap("ADD", &c1, &config).run().success();
    assert_eq!(tcp_seen(&lab.outside, HOST[0], 8080), ip(OUTSIDE[0]));
    assert_eq!(tcp_seen(lab.world.host(), HOST[0], 8080), ip(HOST[0]));
    tcp_refused(&c2.netns, HOST[0], 8080);
    tcp_refused(lab.world.host(), "127.0.0.1", 8080);
    assert!(!lab.mentions("from_"), "{}", lab.ruleset());
    lab.portmap("CHECK", &c1, &config).run().success();
}

#[test]
fn masq_all_hides_every_source() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let _servers = c1.tcp(80);
    let config = json!({"masqAll": true, "runtimeConfig": {"portMappings": tcp(8080, 80)}});
    lab.portmap("ADD", &c1, &config).run().success();
    for family in [0, 1] {
        assert_eq!(tcp_seen(&lab.outside, HOST[family], 8080), ip(GATEWAY[family]));
        assert_eq!(tcp_seen(&c1.netns, HOST[family], 8080), ip(GATEWAY[family]));
    }
}

/// A connection that somebody else forwarded to the same container, from a
/// neighbour of its, keeps its source: kube-proxy decides about that one.
#[test]
fn connections_forwarded_by_others_are_not_masqueraded() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let c2 = lab.container("c2", 12);
    let _servers = c1.tcp(80);
    lab.add(&c1, &tcp(8080, 80)).success();
    lab.world.exec(&["nft", "add table ip service"]);
    lab.world
        .exec(&["nft", "add chain ip service nat { type nat hook prerouting priority dstnat; }"]);
    lab.world.exec(&[
        "nft",
        "add rule ip service nat ip daddr 10.96.0.1 tcp dport 443 dnat to 10.1.0.11:80",
    ]);
    lab.filter_bridged(true);
    assert_eq!(tcp_seen(&c2.netns, "10.96.0.1", 443), ip("10.1.0.12"));
    assert_eq!(tcp_seen(&c2.netns, HOST[0], 8080), ip(GATEWAY[0]));
}

#[test]
fn b079_the_host_address_decides_the_family() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let _servers = c1.tcp(80);
    let one = |port: u16, address: &str| json!({"hostPort": port, "containerPort": 80, "protocol": "tcp", "hostIP": address});
    let mappings = json!([
        one(8001, HOST[0]),
        one(8002, HOST[1]),
        one(8003, ""),
        one(8004, "0.0.0.0"),
        one(8005, "::"),
        one(8006, "127.0.0.1")
    ]);
    lab.add(&c1, &mappings).success();
    let reachable = |address: &str, port: u16| {
        tcp_seen(&lab.outside, address, port);
    };
    reachable(HOST[0], 8001);
    tcp_refused(&lab.outside, GATEWAY[0], 8001);
    tcp_refused(&lab.outside, HOST[1], 8001);
    reachable(HOST[1], 8002);
    tcp_refused(&lab.outside, HOST[0], 8002);
    reachable(HOST[0], 8003);
    reachable(HOST[1], 8003);
    reachable(GATEWAY[0], 8003);
    reachable(HOST[0], 8004);
    tcp_refused(&lab.outside, HOST[1], 8004);
    reachable(HOST[1], 8005);
    tcp_refused(&lab.outside, HOST[0], 8005);
    tcp_refused(&lab.outside, HOST[0], 8006);
    tcp_seen(lab.world.host(), "127.0.0.1", 8006);
    lab.check(&c1, &mappings).success();
    lab.del(&c1).success();
    for port in 8001..=8006 {
        tcp_refused(&lab.outside, HOST[0], port);
        tcp_refused(&lab.outside, HOST[1], port);
    }
    assert!(!lab.mentions("c1"));
}

#[test]
fn a_mapping_for_one_address_comes_before_one_for_all() {
    let lab = Lab::new();
    let (c1, c2) = (lab.container("c1", 11), lab.container("c2", 12));
    let (_one, _two) = (c1.tcp(80), c2.tcp(81));
    lab.add(&c1, &tcp(8080, 80)).success();
    let special = json!([{"hostPort": 8080, "containerPort": 81, "hostIP": HOST[0]}]);
    lab.add(&c2, &special).success();
    lab.del(&c1).success();
    tcp_seen(&lab.outside, HOST[0], 8080);
    tcp_refused(&lab.outside, HOST[1], 8080);
}

#[test]
fn b014_forwarded_traffic_is_left_alone() {
    let lab = Lab::new();
    let (c1, c2) = (lab.container("c1", 11), lab.container("c2", 12));
    let (_ours, _udp) = (c1.tcp(53), c1.udp(53));
    // A server behind our host, on the mapped ports.
    let far = lab.container("far", 99);
    let far_servers = (far.tcp(53), far.udp(53));
    let mapping = |protocol: &str, address: &str| json!({"hostPort": 53, "containerPort": 53, "protocol": protocol, "hostIP": address});
    lab.add(
        &c1,
        &json!([
            mapping("tcp", ""),
            mapping("udp", ""),
            mapping("tcp", "1.1.1.1"),
            mapping("udp", "10.1.0.99"),
            mapping("tcp", "fd00:1::99")
        ]),
    )
    .success();
    for (client, seen) in [(&lab.outside, OUTSIDE), (&c2.netns, ["10.1.0.12", "fd00:1::12"])] {
        for family in [0, 1] {
            let target = far.addresses[family].to_string();
            assert_eq!(tcp_seen(client, &target, 53), ip(seen[family]));
            assert_eq!(udp_seen(client, &target, 53).unwrap(), ip(seen[family]));
        }
    }
    // Proof that it was the far server: without it there is no answer.
    drop(far_servers);
    tcp_refused(&lab.outside, "10.1.0.99", 53);
    udp_refused(&lab.outside, "10.1.0.99", 53);
    tcp_refused(&lab.outside, "1.1.1.1", 53);
    tcp_seen(&lab.outside, HOST[0], 53);
    assert_eq!(udp_seen(lab.world.host(), HOST[0], 53).unwrap(), ip(HOST[0]));
}

/// kube-proxy's rules in `ip nat`, made before ours and after: a service at
/// the same port of a host's address goes first either way.
#[test]
fn b035_service_rules_come_first_whenever_they_were_made() {
    for services_first in [true, false] {
        let lab = Lab::new();
        let (c1, c2) = (lab.container("c1", 11), lab.container("c2", 12));
        let _host_port = c1.tcp(80);
        let service = TcpEcho::start(&c2.netns, (c2.addresses[0], 81));
        let make_services = || {
            for line in [
                "-N KUBE-SERVICES",
                "-A KUBE-SERVICES -d 192.0.2.1 -p tcp --dport 8080 -j DNAT --to-destination 10.1.0.12:81",
                "-I PREROUTING -j KUBE-SERVICES",
                "-I OUTPUT -j KUBE-SERVICES",
            ] {
                let words: Vec<_> = line.split(' ').collect();
                lab.world.exec(&[&["iptables-nft", "-t", "nat"], &words[..]].concat());
            }
        };
        if services_first {
            make_services();
        }
        lab.add(&c1, &tcp(8080, 80)).success();
        if !services_first {
            make_services();
        }
        tcp_seen(&lab.outside, HOST[0], 8080);
        tcp_seen(lab.world.host(), HOST[0], 8080);
        let rules = lab.world.exec(&["iptables-nft", "-t", "nat", "-S"]).stdout;
        assert!(!rules.contains("podwire"), "{rules}");
        // The other address of the host has no service, and the mapping serves.
        tcp_seen(&lab.outside, GATEWAY[0], 8080);
        drop(service);
        tcp_refused(&lab.outside, HOST[0], 8080);
    }
}
