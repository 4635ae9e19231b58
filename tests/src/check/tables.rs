//! `tuning`, `bandwidth`, `sbr` and `vrf`: what is done to an interface that is there.

use podwire_testkit::Feature;
use serde_json::{Value, json};

use super::bridge::addresses;
use super::{Mutation, Subject, host, inside, listen, listen_inside};

pub(super) fn subjects() -> Vec<Subject> {
    vec![
        Subject {
            plugin: "tuning",
            setting: "every attribute and a sysctl",
            needs: &[],
            prepare: "",
            chain: || vec![before(), tuned()],
            noticed: attributes,
            tolerated: || vec![listen("br0"), listen_inside()],
        },
        Subject {
            plugin: "tuning",
            setting: "MTU alone",
            needs: &[],
            prepare: "",
            chain: || vec![before(), json!({"type": "tuning", "mtu": 1300})],
            noticed: || vec![attributes().remove(1)],
            tolerated: || {
                vec![
                    listen_inside(),
                    inside(
                        "the interface is set to promiscuous mode",
                        "ip link set eth0 promisc on",
                        &[],
                    ),
                    inside(
                        "another sysctl is set",
                        "sysctl -qw net.ipv4.conf.eth0.forwarding=1",
                        &[],
                    ),
                ]
            },
        },
        Subject {
            plugin: "bandwidth",
            setting: "both ways, an unshaped subnet of each family",
            needs: &[],
            prepare: "",
            chain: || {
                let mut limit = limit();
                limit["unshapedSubnets"] = json!(["10.9.0.0/16", "fd09::/16"]);
                vec![before(), limit]
            },
            noticed: trees,
            tolerated: || vec![listen("br0"), listen("$HOST"), listen_inside()],
        },
        Subject {
            plugin: "bandwidth",
            setting: "both ways",
            needs: &[],
            prepare: "",
            chain: || vec![before(), limit()],
            noticed: limits,
            tolerated: || vec![listen("$HOST"), listen("$IFB"), listen_inside()],
        },
        Subject {
            plugin: "sbr",
            setting: "both families",
            needs: &[],
            prepare: "",
            chain: || vec![before(), json!({"type": "sbr"})],
            noticed: source_routing,
            tolerated: || {
                vec![
                    listen_inside(),
                    inside(
                        "somebody else's rule is made",
                        "ip rule add from 10.9.0.0/16 table 9",
                        &[],
                    ),
                ]
            },
        },
        Subject {
            plugin: "vrf",
            setting: "table 10",
            needs: &[Feature::Vrf],
            prepare: "",
            chain: || vec![before(), json!({"type": "vrf", "vrfname": "blue", "table": 10})],
            noticed: domain,
            tolerated: || vec![listen_inside()],
        },
    ]
}

/// The bridge that they are behind.
pub(super) fn before() -> Value {
    json!({"type": "bridge", "bridge": "br0", "isGateway": true,
        "ipam": addresses(&["10.1.0.2/24", "fd00:1::2/64"])})
}

fn tuned() -> Value {
    json!({
        "type": "tuning", "mac": "02:00:5e:10:00:99", "mtu": 1300, "promisc": true,
        "allmulti": true, "txQLen": 77,
        "sysctl": {"net.ipv4.conf.IFNAME.log_martians": "1"},
    })
}

fn limit() -> Value {
    json!({
        "type": "bandwidth", "ingressRate": 8_000_000, "ingressBurst": 800_000,
        "egressRate": 16_000_000, "egressBurst": 800_000,
    })
}

fn attributes() -> Vec<Mutation> {
    vec![
        inside(
            "the interface has another MAC address",
            "ip link set eth0 address 02:00:00:00:00:05",
            &["MAC address", "found 02:00:00:00:00:05"],
        ),
        inside(
            "the interface has another MTU",
            "ip link set eth0 mtu 1280",
            &["MTU", "found 1280"],
        ),
        inside(
            "the interface's promiscuous mode is switched off",
            "ip link set eth0 promisc off",
            &["promiscuous", "off"],
        ),
        inside(
            "the interface takes not all multicast any more",
            "ip link set eth0 allmulticast off",
            &["allmulti", "off"],
        ),
        inside(
            "the interface has another queue length",
            "ip link set eth0 txqueuelen 5",
            &["transmit queue length", "found 5"],
        ),
        inside(
            "a kernel parameter is another (sysctl)",
            "sysctl -qw net.ipv4.conf.eth0.log_martians=0",
            &["log_martians", "found 0"],
        ),
        inside(
            "the interface has another name",
            "ip link set eth0 down; ip link set eth0 name eth9",
            &["interface eth0 in the container is missing"],
        ),
    ]
}

fn limits() -> Vec<Mutation> {
    vec![
        host(
            "a limit (qdisc) is removed",
            "tc qdisc del dev $HOST root",
            &["$HOST", "tbf", "noqueue"],
        ),
        host(
            "the limit (qdisc) of what is sent is removed",
            "tc qdisc del dev $IFB root",
            &["$IFB", "tbf"],
        ),
        host(
            "a limit is another",
            "tc qdisc change dev $HOST root handle 1: tbf rate 9mbit burst 100kb latency 25ms",
            &["$HOST", "1000000 bytes/s", "1125000 bytes/s"],
        ),
        host(
            "the limit of what is sent is another",
            "tc qdisc change dev $IFB root handle 1: tbf rate 9mbit burst 100kb latency 25ms",
            &["$IFB", "2000000 bytes/s", "1125000 bytes/s"],
        ),
        host(
            "a burst is another",
            "tc qdisc change dev $HOST root handle 1: tbf rate 8mbit burst 50kb latency 25ms",
            &["$HOST", "ticks"],
        ),
        host(
            "the shaping interface (ifb) is removed",
            "ip link del $IFB",
            &["redirection", "missing"],
        ),
        host(
            "the shaping interface (ifb) is down",
            "ip link set $IFB down",
            &["$IFB", "up", "down"],
        ),
        host(
            "the shaping interface (ifb) has another alias",
            "ip link set $IFB alias mine",
            &["redirection", "missing"],
        ),
        host(
            "the redirection (ingress qdisc) is removed",
            "tc qdisc del dev $HOST ingress",
            &["redirection", "missing"],
        ),
        host(
            "the redirection (filter) is removed",
            "tc filter del dev $HOST parent ffff: prio 1",
            &["redirection", "missing"],
        ),
        host(
            "the redirection (filter) is for a part",
            "tc filter del dev $HOST parent ffff: prio 1
             tc filter add dev $HOST parent ffff: prio 1 protocol ip u32 match ip dst 10.0.0.0/8 \
             action mirred egress redirect dev $IFB",
            &["redirection", "a part"],
        ),
        host(
            "the redirection (filter) leads elsewhere",
            "ip link add far type ifb
             tc filter del dev $HOST parent ffff: prio 1
             tc filter add dev $HOST parent ffff: prio 1 protocol all u32 match u32 0 0 \
             action mirred egress redirect dev far",
            &["redirection", "missing"],
        ),
    ]
}

fn trees() -> Vec<Mutation> {
    vec![
        host(
            "an exception's filter is removed",
            "tc filter del dev $HOST parent 1: prio 15",
            &["$HOST", "filter for fd09::/16"],
        ),
        host(
            "an exception's filter of what is sent is removed",
            "tc filter del dev $IFB parent 1: prio 16",
            &["$IFB", "filter for 10.9.0.0/16"],
        ),
        host(
            "an exception's filter is one too many",
            "tc filter add dev $HOST parent 1: prio 14 protocol ip u32 match ip src 10.0.0.0/8 \
             classid 1:",
            &["$HOST", "filters", "expected 2, found 3"],
        ),
        host(
            "a limit (class) is another",
            "tc class change dev $HOST parent 1: classid 1:30 htb rate 9mbit ceil 9mbit",
            &["$HOST", "1000000 bytes/s", "1125000"],
        ),
        host(
            "a limit (qdisc) is of another kind",
            "tc qdisc del dev $HOST root
             tc qdisc add dev $HOST root handle 1: tbf rate 8mbit burst 100kb latency 25ms",
            &["$HOST", "htb", "tbf"],
        ),
    ]
}

fn source_routing() -> Vec<Mutation> {
    vec![
        inside("a rule is removed", "ip rule del from 10.1.0.2", &["rule", "10.1.0.2", "missing"]),
        inside(
            "an IPv6 rule is removed",
            "ip -6 rule del from fd00:1::2",
            &["rule", "fd00:1::2", "missing"],
        ),
        inside(
            "a rule leads to another table",
            "ip rule del from 10.1.0.2; ip rule add from 10.1.0.2 table 77",
            &["default route via 10.1.0.1 in table 77", "missing"],
        ),
        inside(
            "the routes of the rule's table are removed",
            "ip route flush table 100",
            &["10.1.0.0/24", "table 100"],
        ),
        inside(
            "a route of the rule's table is removed",
            "ip route del default table 100",
            &["default route via 10.1.0.1 in table 100", "missing"],
        ),
        inside(
            "a route of the rule's table has another gateway",
            "ip route replace default via 10.1.0.9 dev eth0 onlink table 100",
            &["default route via 10.1.0.1 in table 100", "missing"],
        ),
        inside(
            "the IPv6 routes of the rule's table are removed",
            "ip -6 route flush table 101",
            &["fd00:1::/64", "table 101"],
        ),
        inside(
            "the interface is removed",
            "ip link del eth0",
            &["interface eth0 in the container is missing"],
        ),
    ]
}

fn domain() -> Vec<Mutation> {
    vec![
        inside("the VRF is removed", "ip link del blue", &["VRF blue in the container is missing"]),
        inside(
            "the VRF is down",
            "ip link set blue down",
            &["VRF blue in the container: expected up, found down"],
        ),
        inside(
            "the VRF has another table",
            "ip link del blue; ip link add blue type vrf table 11; ip link set blue up
             ip link set eth0 master blue",
            &["VRF blue in the container: expected table 10, found 11"],
        ),
        inside(
            "the VRF is one of another kind",
            "ip link del blue; ip link add blue type bridge; ip link set blue up",
            &["VRF blue in the container: expected a VRF, found bridge"],
        ),
        inside(
            "the interface leaves the VRF",
            "ip link set eth0 nomaster",
            &["interface eth0 in the container: expected in VRF blue, found in none"],
        ),
        inside(
            "the interface is in another VRF",
            "ip link add red type vrf table 11; ip link set eth0 master red",
            &["interface eth0 in the container: expected in VRF blue"],
        ),
        inside(
            "the interface is removed",
            "ip link del eth0",
            &["interface eth0 in the container is missing"],
        ),
    ]
}
