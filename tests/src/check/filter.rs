//! `portmap` and `firewall`: rules of the packet filter.

use serde_json::{Value, json};

use super::bridge::gateway;
use super::{Mutation, Subject, host, listen, listen_inside};

pub(super) fn subjects() -> Vec<Subject> {
    vec![
        Subject {
            plugin: "portmap",
            setting: "TCP and UDP, both families, hairpin by masquerading",
            needs: &[],
            prepare: "",
            chain: || {
                vec![
                    gateway(),
                    json!({"type": "portmap", "snat": true, "runtimeConfig":
                    {"portMappings": [
                        {"hostPort": 8080, "containerPort": 80, "protocol": "tcp"},
                        {"hostPort": 5353, "containerPort": 53, "protocol": "udp"}]}}),
                ]
            },
            noticed: mappings,
            tolerated: tolerated_by_filters,
        },
        Subject {
            plugin: "firewall",
            setting: "iptables, both families, ingressPolicy same-bridge",
            needs: &[],
            prepare: "",
            chain: || {
                let behind = json!({"type": "firewall", "backend": "iptables",
                    "ingressPolicy": "same-bridge"});
                vec![gateway(), behind]
            },
            noticed: openings,
            tolerated: || {
                let mut all = tolerated_by_filters();
                all.push(host(
                    "the administrator has rules of their own",
                    "iptables-nft -A CNI-ADMIN -s 203.0.113.9 -j DROP
                     iptables-nft -I FORWARD -s 203.0.113.9 -j DROP",
                    &[],
                ));
                all
            },
        },
    ]
}

fn tolerated_by_filters() -> Vec<Mutation> {
    vec![
        listen("br0"),
        listen("$HOST"),
        listen_inside(),
        host(
            "somebody else's table is made",
            "nft add table ip mine
             nft 'add chain ip mine out { type nat hook postrouting priority 50; }'",
            &[],
        ),
    ]
}

fn mappings() -> Vec<Mutation> {
    vec![
        host(
            "the port mappings' table is removed",
            "nft delete table ip podwire_hostports",
            &["chain ip podwire_hostports hostports (nftables) is missing"],
        ),
        host(
            "the port mappings' table of IPv6 is removed",
            "nft delete table ip6 podwire_hostports",
            &["chain ip6 podwire_hostports hostports (nftables) is missing"],
        ),
        host(
            "a port's element is removed",
            "nft delete element ip podwire_hostports ports { tcp . 8080 }",
            &["8080", "missing"],
        ),
        host(
            "an UDP port's element is removed",
            "nft delete element ip podwire_hostports ports { udp . 5353 }",
            &["5353", "missing"],
        ),
        host(
            "a port's element leads elsewhere",
            "nft delete element ip podwire_hostports ports { tcp . 8080 }
             nft add element ip podwire_hostports ports { tcp . 8080 : 10.1.0.9 . 80 }",
            &["8080"],
        ),
        host(
            "a port's masquerading element is removed",
            "nft flush map ip podwire_hostports hairpins",
            &["8080"],
        ),
        host(
            "the owner's element is removed",
            "nft flush map ip podwire_hostports owners",
            &["owner"],
        ),
        host(
            "the hook for what comes in has no rules",
            "nft flush chain ip podwire_hostports prerouting",
            &["prerouting"],
        ),
        host(
            "the hook for what the host sends has no rules",
            "nft flush chain ip podwire_hostports output",
            &["output"],
        ),
        host(
            "the hook for masquerading has no rules",
            "nft flush chain ip podwire_hostports postrouting",
            &["postrouting"],
        ),
        host(
            "the look-up's rules are removed",
            "nft flush chain ip podwire_hostports hostports",
            &["hostports"],
        ),
        host(
            "the masquerading rules of the subnet are removed",
            "nft flush chain ip podwire_hostports from_10.1.0.0/24",
            &["10.1.0.0/24"],
        ),
        host(
            "the host's own packets can't be translated (sysctl)",
            "sysctl -qw net.ipv4.conf.br0.route_localnet=0",
            &["route_localnet", "br0"],
        ),
    ]
}

fn openings() -> Vec<Mutation> {
    vec![
        host("all rules are removed", "nft flush ruleset", &["iptables rule", "missing"]),
        host(
            "the rule for what goes out is removed",
            "iptables-nft -D CNI-FORWARD 3",
            &["iptables rule", "-s 10.1.0.2/32", "missing"],
        ),
        host(
            "the rule for the answers is removed",
            "iptables-nft -D CNI-FORWARD 2",
            &["iptables rule", "-d 10.1.0.2/32", "missing"],
        ),
        host(
            "an IPv6 rule is removed",
            "ip6tables-nft -D CNI-FORWARD 3",
            &["rule", "-s fd00:1::2/128", "missing"],
        ),
        host(
            "the rule of the forward hook is removed",
            "iptables-nft -D FORWARD -m comment --comment 'CNI firewall plugin rules' -j CNI-FORWARD",
            &["iptables rule", "FORWARD", "missing"],
        ),
        host(
            "the rule is another's",
            "iptables-nft -R CNI-FORWARD 3 -s 10.1.0.9 -j ACCEPT",
            &["iptables rule", "-s 10.1.0.2/32", "missing"],
        ),
        host(
            "the rule drops",
            "iptables-nft -R CNI-FORWARD 3 -s 10.1.0.2 -j DROP",
            &["iptables rule", "-s 10.1.0.2/32", "missing"],
        ),
        host(
            "the isolation's first rule is removed",
            "iptables-nft -D CNI-ISOLATION-STAGE-1 1",
            &["CNI-ISOLATION-STAGE-1", "br0", "missing"],
        ),
        host(
            "the isolation's second rule is removed",
            "iptables-nft -D CNI-ISOLATION-STAGE-2 1",
            &["CNI-ISOLATION-STAGE-2", "br0", "missing"],
        ),
        host(
            "the isolation's hook is removed",
            "iptables-nft -D FORWARD 1",
            &["CNI-ISOLATION-STAGE-1", "missing"],
        ),
    ]
}

/// Chains of the tests that combine plugins.
pub(super) fn with_filters() -> Vec<Value> {
    vec![
        json!({"type": "portmap", "snat": true, "runtimeConfig": {"portMappings":
            [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]}}),
        json!({"type": "firewall", "backend": "iptables"}),
    ]
}
