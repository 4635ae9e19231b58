//! `bridge` and `ptp`: pairs with a host end.

use podwire_testkit::Feature;
use serde_json::{Value, json};

use super::inside::{both_families, common, moved_routes};
use super::{Mutation, Subject, host, inside, listen, listen_inside, nothing};

pub(super) fn subjects() -> Vec<Subject> {
    vec![
        Subject {
            plugin: "bridge",
            setting: "default gateway, both families, MTU, masquerading, spoof check",
            needs: &[],
            prepare: "",
            chain: || vec![gateway()],
            noticed: || {
                [
                    common(true, "expected a veth"),
                    vec![super::inside::removed()],
                    both_families(),
                    port(),
                    gateway_noticed(),
                    masquerade(),
                    spoof_check(),
                ]
                .concat()
            },
            tolerated: || {
                vec![
                    listen("br0"),
                    listen("$HOST"),
                    listen_inside(),
                    host(
                        "the bridge is set to promiscuous mode",
                        "ip link set br0 promisc on",
                        &[],
                    ),
                    moved_routes(),
                ]
            },
        },
        Subject {
            plugin: "bridge",
            setting: "layer 2, hairpin, isolation",
            needs: &[],
            prepare: "",
            chain: || {
                vec![json!({"type": "bridge", "bridge": "br0", "hairpinMode": true,
                    "portIsolation": true})]
            },
            noticed: || {
                vec![
                    host(
                        "the port's hairpin mode is switched",
                        "ip link set $HOST type bridge_slave hairpin off",
                        &["hairpin mode: expected on, found off"],
                    ),
                    host(
                        "the port's isolation is switched",
                        "ip link set $HOST type bridge_slave isolated off",
                        &["isolation: expected on, found off"],
                    ),
                ]
            },
            tolerated: nothing,
        },
        Subject {
            plugin: "bridge",
            setting: "layer 2, promiscuous",
            needs: &[],
            prepare: "",
            chain: || vec![json!({"type": "bridge", "bridge": "br0", "promiscMode": true})],
            noticed: || {
                vec![host(
                    "the bridge's promiscuous mode is switched off",
                    "ip link set br0 promisc off",
                    &["bridge br0, promiscuous mode: expected on, found off"],
                )]
            },
            tolerated: || vec![listen("br0")],
        },
        Subject {
            plugin: "bridge",
            setting: "VLAN 100 as gateway, trunk of 200",
            needs: &[Feature::BridgeVlanFiltering, Feature::Vlan],
            prepare: "",
            chain: || {
                vec![json!({"type": "bridge", "bridge": "br0", "isGateway": true, "vlan": 100,
                    "vlanTrunk": [{"id": 200}],
                    "ipam": {"type": "static", "addresses": [{"address": "10.1.0.2/24"}]}})]
            },
            noticed: vlans,
            tolerated: nothing,
        },
        Subject {
            plugin: "ptp",
            setting: "both families, MTU, masquerading",
            needs: &[],
            prepare: "",
            chain: || {
                vec![json!({"type": "ptp", "mtu": 1400, "ipMasq": true, "ipam": addresses(&[
                    "10.1.0.2/24", "fd00:1::2/64"])})]
            },
            noticed: || {
                [
                    common(true, "expected a veth"),
                    vec![super::inside::removed()],
                    both_families(),
                    point_to_point(),
                    masquerade(),
                ]
                .concat()
            },
            tolerated: || vec![listen("$HOST"), listen_inside(), moved_routes()],
        },
    ]
}

/// The setting that most rows are about.
pub(super) fn gateway() -> Value {
    json!({
        "type": "bridge", "bridge": "br0", "isDefaultGateway": true, "mtu": 1400,
        "ipMasq": true, "macspoofchk": true,
        "ipam": addresses(&["10.1.0.2/24", "fd00:1::2/64"]),
    })
}

/// `static` with these addresses and default routes.
pub(super) fn addresses(all: &[&str]) -> Value {
    let routes: Vec<_> = all
        .iter()
        .map(|address| json!({"dst": if address.contains(':') { "::/0" } else { "0.0.0.0/0" }}))
        .collect();
    let all: Vec<_> = all
        .iter()
        .map(|address| {
            let (host, _) = address.split_once('/').unwrap();
            json!({"address": address, "gateway": format!("{}1", &host[..host.len() - 1])})
        })
        .collect();
    json!({"type": "static", "addresses": all, "routes": routes})
}

/// The host end, whatever it leads to.
fn host_end() -> Vec<Mutation> {
    vec![
        host(
            "the host end is down",
            "ip link set $HOST down",
            &["host end of eth0", "expected up, found down"],
        ),
        host(
            "the host end has another MTU",
            "ip link set $HOST mtu 1450",
            &["host end of eth0", "MTU: expected 1400, found 1450"],
        ),
        host(
            "the host end has another name",
            "ip link set $HOST down; ip link set $HOST name renamed; ip link set renamed up",
            &["host end of eth0", "found renamed"],
        ),
        host(
            "the host end has another MAC address",
            "ip link set $HOST address 02:00:00:00:00:09",
            &["host end of eth0", "MAC address", "found 02:00:00:00:00:09"],
        ),
        host(
            "the host end has another alias",
            "ip link set $HOST alias mine",
            &["host end of eth0", "alias", "found mine"],
        ),
        host(
            "the host end is removed",
            "ip link del $HOST",
            &["interface eth0 in the container is missing"],
        ),
    ]
}

/// The host end and the bridge.
fn port() -> Vec<Mutation> {
    let more = vec![
        host(
            "the host end leaves the bridge",
            "ip link set $HOST nomaster",
            &["port of eth0 on bridge br0 is missing"],
        ),
        host(
            "the host end is another bridge's port",
            "ip link add br1 type bridge; ip link set $HOST nomaster; ip link set $HOST master br1",
            &["port of eth0 on bridge br0"],
        ),
        host(
            "the port's hairpin mode is switched",
            "ip link set $HOST type bridge_slave hairpin on",
            &["hairpin mode: expected off, found on"],
        ),
        host(
            "the port's isolation is switched",
            "ip link set $HOST type bridge_slave isolated on",
            &["isolation: expected off, found on"],
        ),
        host("the bridge is removed", "ip link del br0", &["bridge br0 is missing"]),
        host(
            "the bridge is down",
            "ip link set br0 down",
            &["bridge br0: expected up, found down"],
        ),
    ];
    [host_end(), more].concat()
}

fn gateway_noticed() -> Vec<Mutation> {
    vec![
        host(
            "the bridge has another MAC address",
            "ip link set br0 address 02:00:00:00:00:09",
            &["bridge br0, MAC address", "found 02:00:00:00:00:09"],
        ),
        host(
            "a gateway address is removed",
            "ip addr del 10.1.0.1/24 dev br0",
            &["gateway address 10.1.0.1/24 on br0 is missing"],
        ),
        host(
            "a gateway address of IPv6 is removed",
            "ip addr del fd00:1::1/64 dev br0",
            &["gateway address fd00:1::1/64 on br0 is missing"],
        ),
        host(
            "a gateway address has another prefix",
            "ip addr del 10.1.0.1/24 dev br0; ip addr add 10.1.0.1/16 dev br0",
            &["gateway address 10.1.0.1/24 on br0"],
        ),
        forwarding_4(),
        forwarding_6(),
    ]
}

fn forwarding_4() -> Mutation {
    host(
        "IPv4 forwarding is off (sysctl)",
        "sysctl -qw net.ipv4.ip_forward=0",
        &["IPv4 forwarding: expected on, found off"],
    )
}

fn forwarding_6() -> Mutation {
    host(
        "IPv6 forwarding is off (sysctl)",
        "sysctl -qw net.ipv6.conf.all.forwarding=0",
        &["IPv6 forwarding: expected on, found off"],
    )
}

fn masquerade() -> Vec<Mutation> {
    vec![
        host(
            "the masquerading table is removed",
            "nft delete table ip podwire_masquerade",
            &["masquerade", "10.1.0.2", "missing"],
        ),
        host(
            "an address's masquerading element is removed",
            "nft delete element ip podwire_masquerade sources { 10.1.0.2 }",
            &["masquerade", "10.1.0.2", "missing"],
        ),
        host(
            "the masquerading element of IPv6 is removed",
            "nft delete element ip6 podwire_masquerade sources { fd00:1::2 }",
            &["masquerade", "fd00:1::2", "missing"],
        ),
        host(
            "an address's masquerading element leads elsewhere",
            "nft delete element ip podwire_masquerade sources { 10.1.0.2 }
             nft add chain ip podwire_masquerade elsewhere
             nft add element ip podwire_masquerade sources { 10.1.0.2 : goto elsewhere }",
            &["masquerade", "10.1.0.2"],
        ),
        host(
            "the masquerading rules of the subnet are removed",
            "nft flush chain ip podwire_masquerade leaving_10.1.0.0_24",
            &["masquerade"],
        ),
        host(
            "the masquerading hook's rules are removed",
            "nft flush chain ip podwire_masquerade postrouting",
            &["masquerade"],
        ),
    ]
}

fn spoof_check() -> Vec<Mutation> {
    vec![
        host(
            "the spoof check's table is removed",
            "nft delete table bridge podwire_spoof_check",
            &["spoof check", "missing"],
        ),
        host(
            "the spoof check of the port is removed",
            "nft delete element bridge podwire_spoof_check guarded { \"$HOST\" }",
            &["spoof check"],
        ),
        host(
            "the port's allowed address is removed",
            "nft flush set bridge podwire_spoof_check allowed",
            &["spoof check"],
        ),
        host(
            "the port's allowed address is another",
            "nft flush set bridge podwire_spoof_check allowed
             nft add element bridge podwire_spoof_check allowed \
             { \"$HOST\" . 02:00:00:00:00:09 }",
            &["spoof check"],
        ),
        host(
            "the spoof check's rules are removed",
            "nft flush chain bridge podwire_spoof_check check_source",
            &["rules of chain bridge podwire_spoof_check check_source", "found none"],
        ),
    ]
}

fn point_to_point() -> Vec<Mutation> {
    let more = vec![
        host(
            "a gateway address is removed",
            "ip addr del 10.1.0.1/32 dev $HOST",
            &["gateway address 10.1.0.1 on $HOST is missing"],
        ),
        host(
            "a gateway address of IPv6 is removed",
            "ip addr del fd00:1::1/128 dev $HOST",
            &["gateway address fd00:1::1 on $HOST is missing"],
        ),
        host(
            "the host's route to the container is removed",
            "ip route del 10.1.0.2 dev $HOST",
            &["route to 10.1.0.2 on $HOST is missing"],
        ),
        host(
            "the host's route to the container leads elsewhere",
            "ip route del 10.1.0.2 dev $HOST; ip route add 10.1.0.2 dev lo",
            &["route to 10.1.0.2 on $HOST is missing"],
        ),
        host(
            "the host's route to the container's IPv6 address is removed",
            "ip route del fd00:1::2 dev $HOST",
            &["route to fd00:1::2 on $HOST is missing"],
        ),
        inside(
            "the container's route to its gateway is removed",
            "ip route del 10.1.0.0/24 via 10.1.0.1; ip route del default; ip route del 10.1.0.1",
            &["10.1.0.1"],
        ),
        forwarding_4(),
        forwarding_6(),
    ];
    [host_end(), more].concat()
}

fn vlans() -> Vec<Mutation> {
    vec![
        host("a VLAN of the port is removed", "bridge vlan del dev $HOST vid 200", &["VLAN 200"]),
        host("the port's own VLAN is removed", "bridge vlan del dev $HOST vid 100", &["VLAN 100"]),
        host("the port's own VLAN is tagged", "bridge vlan add dev $HOST vid 100", &["VLAN 100"]),
        host("the port has a VLAN too many", "bridge vlan add dev $HOST vid 7", &["VLAN 7"]),
        host(
            "the bridge filters no VLANs",
            "ip link set br0 type bridge vlan_filtering 0",
            &["bridge br0", "VLAN filtering"],
        ),
        host("the VLAN's gateway is removed", "ip link del br0.100", &["br0.100"]),
        host("the VLAN's gateway is down", "ip link set br0.100 down", &["br0.100", "down"]),
        host(
            "the VLAN's gateway has another MAC address",
            "ip link set br0.100 address 02:00:00:00:00:09",
            &["br0.100", "MAC address"],
        ),
        host(
            "a gateway address is removed",
            "ip addr del 10.1.0.1/24 dev br0.100",
            &["gateway address 10.1.0.1/24 on br0.100 is missing"],
        ),
        host(
            "the gateway's port is not in the VLAN",
            "bridge vlan del vid 100 dev \
             $(ip -br link show type veth | grep -o '^vgw[0-9a-f]*')",
            &["VLAN 100 of port vgw", "expected untagged, found missing"],
        ),
    ]
}
