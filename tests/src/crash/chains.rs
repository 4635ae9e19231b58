//! The chains that are killed.

use serde_json::{Value, json};

use super::plugin_chain::PluginChain;

/// `bridge` as a gateway for both families, with `host-local`.
pub fn bridge() -> PluginChain {
    PluginChain {
        name: "bridge+host-local",
        network: "crash-bridge",
        ifname: "eth0",
        bridges: &["crash0"],
        plugins: vec![bridge_config("crash0", &json!({}))],
    }
}

/// The same with masquerading and the spoof check.
pub fn masquerade() -> PluginChain {
    PluginChain {
        name: "bridge+ipMasq+macspoofchk",
        network: "crash-masq",
        ifname: "eth0",
        bridges: &["crash1"],
        plugins: vec![bridge_config("crash1", &json!({"ipMasq": true, "macspoofchk": true}))],
    }
}

/// The same and `portmap` behind it.
pub fn portmap() -> PluginChain {
    let first = bridge_config("crash2", &json!({"ipMasq": true, "hairpinMode": true}));
    PluginChain {
        name: "bridge+ipMasq+portmap",
        network: "crash-portmap",
        ifname: "eth0",
        bridges: &["crash2"],
        plugins: vec![first, json!({"type": "portmap", "snat": true})],
    }
}

/// `bridge` with `bandwidth` and `tuning` behind it.
pub fn shaping() -> PluginChain {
    PluginChain {
        name: "bridge+bandwidth+tuning",
        network: "crash-shaping",
        ifname: "eth0",
        bridges: &["crash3"],
        plugins: vec![
            bridge_config("crash3", &json!({})),
            json!({
                "type": "bandwidth", "unshapedSubnets": ["10.0.0.0/8", "fd00::/8"],
                "ingressRate": 8_000_000, "ingressBurst": 800_000,
                "egressRate": 8_000_000, "egressBurst": 800_000,
            }),
            json!({
                "type": "tuning", "mtu": 1300, "promisc": true,
                "sysctl": {"net.ipv4.conf.IFNAME.log_martians": "1"},
                // Where left-over files are looked for.
                "dataDir": "/var/lib/cni/tuning",
            }),
        ],
    }
}

/// `ptp` with masquerading for both families.
pub fn ptp() -> PluginChain {
    let mut config = bridge_config("unused", &json!({"type": "ptp", "ipMasq": true}));
    for key in ["bridge", "isGateway"] {
        config.as_object_mut().unwrap().remove(key);
    }
    PluginChain {
        name: "ptp+ipMasq",
        network: "crash-ptp",
        ifname: "eth0",
        bridges: &[],
        plugins: vec![config],
    }
}

/// `loopback`.
pub fn loopback() -> PluginChain {
    PluginChain {
        name: "loopback",
        network: "crash-loopback",
        ifname: "lo",
        bridges: &[],
        plugins: vec![json!({"type": "loopback"})],
    }
}

/// A macvlan of a link of the host.
pub fn macvlan() -> PluginChain {
    // Only IPv4: an address of the other is tried in the parent's network for a second
    // or two before it is used.
    let mut ipam = ipam();
    ipam["ranges"] = json!([[{"subnet": "10.201.0.0/24"}]]);
    PluginChain {
        name: "macvlan+host-local",
        network: "crash-macvlan",
        ifname: "eth0",
        bridges: &[],
        plugins: vec![json!({"type": "macvlan", "master": "crash4", "ipam": ipam})],
    }
}

/// Every chain.
pub fn all() -> Vec<PluginChain> {
    vec![bridge(), masquerade(), portmap(), ptp(), macvlan(), shaping(), loopback()]
}

fn ipam() -> Value {
    json!({
        "type": "host-local",
        "ranges": [[{"subnet": "10.201.0.0/24"}], [{"subnet": "fd00:201::/120"}]],
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}],
    })
}

fn bridge_config(bridge: &str, more: &Value) -> Value {
    let mut config = json!({
        "type": "bridge", "bridge": bridge, "isGateway": true,
        "ipam": ipam(),
    });
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}
