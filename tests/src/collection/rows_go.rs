//! What the Go plugins make, on a node that was taken over.

use serde_json::{Value, json};

use super::rows_ours::pool;
use super::{Fate, Maker, Namespace, Row};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            place: "`<dataDir>/<network>/<address>`",
            evidence: "container and interface stand in the file; one that names only a \
                container stays while any interface of it is valid",
            words: &["file /var/lib/cni/networks/n/10."],
            ..Row::of(Maker::Debian, "host-local", "reservation", bridge)
        },
        Row {
            place: "`nat POSTROUTING`, chain `CNI-<24 digits>`; legacy xtables alike",
            evidence: "the rule's comment names network and container, and the chain's name \
                follows from them",
            words: &["nft", "ip nat", "CNI-"],
            ..Row::of(Maker::Debian, "bridge", "masquerading (iptables)", bridge)
        },
        Row {
            place: "`inet cni_plugins_masquerade`, chain `masq_checks`",
            evidence: "the rule's comment is the owner mark, which Podwire makes alike",
            words: &["nft rule inet cni_plugins_masquerade masq_checks"],
            ..Row::of(Maker::Sid, "bridge", "masquerading (nftables)", |_| {
                let mut config = bridge("").remove(0);
                config["ipMasqBackend"] = json!("nftables");
                vec![config]
            })
        },
        Row {
            place: "`bridge nat`, chains `cni-br-iface-<container>-<interface>` and `-mac`",
            evidence: "the chain is no valid attachment's, its rule names host interfaces, and \
                none of them exists",
            words: &["nft", "bridge nat", "cni-br-iface-"],
            ..Row::of(Maker::Sid, "bridge", "check of a port's source address", |_| {
                let mut config = bridge("").remove(0);
                config["macspoofchk"] = json!(true);
                config["ipMasq"] = json!(false);
                vec![config]
            })
        },
        Row {
            place: "`veth` and 8 random digits",
            evidence: "none: nothing on it tells whose it is. It goes with its namespace, or \
                by a DEL with prevResult",
            fate: Fate::Reported(&["br0", "no owner"]),
            words: &["link veth"],
            namespace: Namespace::Kept,
            ..Row::of(Maker::Sid, "bridge", "host end of a pair", |_| {
                let mut config = bridge("").remove(0);
                config["ipMasq"] = json!(false);
                vec![config]
            })
        },
        Row {
            place: "`nat CNI-HOSTPORT-DNAT`, chain `CNI-DN-<21 digits>`; legacy xtables alike",
            evidence: "the entry rule's comment names network and container, and the chain's \
                name follows from them",
            words: &["nft", "ip nat", "CNI-DN-"],
            ..Row::of(Maker::Debian, "portmap", "port mapping (iptables)", mapped)
        },
        Row {
            place: "`ip`, `ip6 cni_hostport`",
            evidence: "none: the comment names the container alone, which may live on another \
                network. They go by its DEL",
            fate: Fate::Reported(&["cni_hostport", "container dead"]),
            words: &["nft rule ip cni_hostport hostports"],
            ..Row::of(Maker::Sid, "portmap", "port mapping (nftables)", |id| {
                let mut chain = mapped(id);
                chain[1]["backend"] = json!("nftables");
                chain
            })
        },
        Row {
            place: "`CNI-FORWARD` of the host's filter tables",
            evidence: "none: the rules name addresses alone. They go by a DEL with prevResult, \
                or when the address is another container's",
            fate: Fate::Reported(&["CNI-FORWARD", "no owner"]),
            words: &["nft rule ip filter CNI-FORWARD", "10.1.0."],
            ..Row::of(Maker::Debian, "firewall", "rules for an address", |_| {
                vec![bridge("").remove(0), json!({"type": "firewall", "backend": "iptables"})]
            })
        },
        Row {
            place: "`bwp` and 12 digits that follow from network and container",
            evidence: "it is no valid container's of this network, it shapes, and no interface \
                of the host sends anything to it",
            words: &["link bwp"],
            ..Row::of(Maker::Sid, "bandwidth", "interface that limits what is sent (ifb)", |_| {
                vec![
                    bridge("").remove(0),
                    json!({"type": "bandwidth",
                    "ingressRate": 8_000_000, "ingressBurst": 800_000,
                    "egressRate": 8_000_000, "egressBurst": 800_000}),
                ]
            })
        },
        Row {
            place: "`<dataDir>/<container>_<interface>.json`",
            evidence: "none: the file names container and interface, but no network. It goes \
                by the DEL, or with the next boot",
            fate: Fate::Reported(&["/var/lib/cni/tuning", "no network"]),
            words: &["file /var/lib/cni/tuning/", "mtu"],
            prepare: "mkdir -p /var/lib/cni/tuning",
            ..Row::of(Maker::Sid, "tuning", "original attributes of an interface", |_| {
                vec![
                    bridge("").remove(0),
                    json!({"type": "tuning", "mtu": 1300,
                    "dataDir": "/var/lib/cni/tuning"}),
                ]
            })
        },
    ]
}

fn bridge(_: &str) -> Vec<Value> {
    vec![json!({
        "type": "bridge", "bridge": "br0", "isGateway": true, "ipMasq": true, "ipam": pool(),
    })]
}

fn mapped(id: &str) -> Vec<Value> {
    let port = if id == "alive" { 8080 } else { 8081 };
    vec![
        bridge(id).remove(0),
        json!({"type": "portmap", "runtimeConfig": {"portMappings":
            [{"hostPort": port, "containerPort": 80, "protocol": "tcp"}]}}),
    ]
}
