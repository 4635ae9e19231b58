//! What Podwire's own plugins make.

use serde_json::{Value, json};

use super::{Maker, Namespace, Row};

const MARK: &str = "owner mark: hashes of the network, and of container and interface";

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            place: "`veth` and 8 digits of the mark",
            evidence: "the alias names network, container and interface; where a kill left \
                none, name and MAC address follow from the mark",
            words: &["link veth"],
            namespace: Namespace::Kept,
            ..ours("bridge", "host end of a pair", bridge)
        },
        Row {
            place: "`ip`, `ip6 podwire_masquerade`: map `sources`, set `owners`",
            evidence: MARK,
            words: &["nft element", "podwire_masquerade"],
            ..ours("bridge", "masquerading of an address", bridge)
        },
        Row {
            place: "`bridge podwire_spoof_check`: `guarded`, `allowed`, `owners`",
            evidence: MARK,
            words: &["nft element", "podwire_spoof_check"],
            ..ours("bridge", "check of a port's source address", bridge)
        },
        Row {
            place: "as `host-local` has it; the GC is passed on to the IPAM plugin",
            evidence: "container and interface stand in the file",
            words: &["file /var/lib/cni/networks/n/10."],
            ..ours("bridge", "reservation", bridge)
        },
        Row {
            place: "as of `bridge`",
            evidence: "as of `bridge`",
            words: &["link veth"],
            namespace: Namespace::Kept,
            ..ours("ptp", "host end of a pair, with the host's routes", point_to_point)
        },
        Row {
            place: "as of `bridge`",
            evidence: MARK,
            words: &["nft element", "podwire_masquerade"],
            ..ours("ptp", "masquerading of an address", point_to_point)
        },
        Row {
            place: "`<dataDir>/<network>/<address>`",
            evidence: "container and interface stand in the file",
            words: &["file /var/lib/cni/networks/n/10."],
            ..ours("host-local", "reservation", bridge)
        },
        Row {
            place: "the GC is passed on to the IPAM plugin",
            evidence: "container and interface stand in the file",
            words: &["file /var/lib/cni/networks/n/10."],
            prepare: UPLINK,
            ..ours("macvlan", "reservation", |_| vec![with_pool("macvlan")])
        },
        Row {
            place: "the GC is passed on to the IPAM plugin",
            evidence: "container and interface stand in the file",
            words: &["file /var/lib/cni/networks/n/10."],
            ..ours("tap", "reservation", |_| vec![with_pool("tap")])
        },
        Row {
            place: "`/run/podwire/devices/`; the device itself comes home",
            evidence: MARK,
            words: &["file /run/podwire/devices/"],
            prepare: "for one in alive dead; do
                    ip link add h$one type veth peer name far-$one
                done",
            namespace: Namespace::Kept,
            ..ours("host-device", "record of a moved device", |id| {
                let mut config = with_pool("host-device");
                config["device"] = json!(format!("h{id}"));
                vec![config]
            })
        },
        Row {
            place: "`ip`, `ip6 podwire_hostports`: `ports`, `hairpins`, `owners` and others",
            evidence: MARK,
            words: &["nft element", "podwire_hostports"],
            ..ours("portmap", "port mapping", |id| {
                let port = if id == "alive" { 8080 } else { 8081 };
                vec![
                    bridge(id).remove(0),
                    json!({"type": "portmap", "snat": true,
                    "runtimeConfig": {"portMappings":
                        [{"hostPort": port, "containerPort": 80, "protocol": "tcp"}]}}),
                ]
            })
        },
        Row {
            place: "`CNI-FORWARD` of the host's filter tables",
            evidence: "owner mark in the rule's comment",
            words: &["nft rule ip filter CNI-FORWARD", "10.1.0."],
            ..ours("firewall", "rules for an address", |id| {
                vec![bridge(id).remove(0), json!({"type": "firewall", "backend": "iptables"})]
            })
        },
        Row {
            place: "`ip podwire_firewall`: set `isolated`",
            evidence: MARK,
            words: &["nft element", "podwire_firewall"],
            ..ours("firewall", "share in a bridge's isolation", |id| {
                vec![
                    bridge(id).remove(0),
                    json!({"type": "firewall", "backend": "iptables",
                    "ingressPolicy": "same-bridge"}),
                ]
            })
        },
        Row {
            place: "`bwp` and 12 digits of the mark",
            evidence: "the alias names the owner; where a kill left none, the MAC address \
                follows from the mark",
            words: &["link bwp"],
            ..ours("bandwidth", "interface that limits what is sent (ifb)", |id| {
                vec![
                    bridge(id).remove(0),
                    json!({"type": "bandwidth",
                    "ingressRate": 8_000_000, "ingressBurst": 800_000,
                    "egressRate": 8_000_000, "egressBurst": 800_000}),
                ]
            })
        },
        Row {
            place: "`<dataDir>/<container>_<interface>.json`",
            evidence: "owner mark in the file",
            words: &["file /var/lib/cni/tuning/", "mtu"],
            ..ours("tuning", "original attributes of an interface", |id| {
                vec![
                    bridge(id).remove(0),
                    json!({"type": "tuning", "mtu": 1300,
                    "dataDir": "/var/lib/cni/tuning"}),
                ]
            })
        },
    ]
}

pub(super) const UPLINK: &str = "ip link add up0 type veth peer name far0
    ip link set up0 up; ip link set far0 up";

/// The common part of a row.
fn ours(plugin: &'static str, object: &'static str, chain: fn(&str) -> Vec<Value>) -> Row {
    Row::of(Maker::Podwire, plugin, object, chain)
}

fn bridge(_: &str) -> Vec<Value> {
    vec![json!({
        "type": "bridge", "bridge": "br0", "isGateway": true, "ipMasq": true,
        "macspoofchk": true, "ipam": pool(),
    })]
}

fn point_to_point(_: &str) -> Vec<Value> {
    vec![json!({"type": "ptp", "ipMasq": true, "ipam": pool()})]
}

fn with_pool(plugin: &str) -> Value {
    json!({"type": plugin, "master": "up0", "ipam": pool()})
}

pub(super) fn pool() -> Value {
    json!({"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24"}]]})
}
