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
    inside("macvlan+host-local", "crash-macvlan", json!({"type": "macvlan", "master": "crash4"}))
}

/// The usual chain of a container engine that publishes ports and has limits.
pub fn whole() -> PluginChain {
    let mut chain = shaping();
    chain.name = "bridge+ipMasq+portmap+bandwidth+tuning";
    chain.network = "crash-whole";
    chain.bridges = &["crash5"];
    chain.plugins[0] = bridge_config("crash5", &json!({"ipMasq": true, "hairpinMode": true}));
    chain.plugins.insert(1, json!({"type": "portmap", "snat": true}));
    chain
}

/// `bridge` with `firewall` and its policy (`open`, `isolated`) behind it.
pub fn firewall(policy: &str) -> PluginChain {
    PluginChain {
        name: if policy == "isolated" { "bridge+firewall isolated" } else { "bridge+firewall" },
        network: "crash-firewall",
        ifname: "eth0",
        bridges: &["crash9"],
        plugins: vec![
            bridge_config("crash9", &json!({})),
            json!({"type": "firewall", "backend": "iptables", "ingressPolicy": policy}),
        ],
    }
}

/// `bridge` with `sbr` behind it.
pub fn sbr() -> PluginChain {
    PluginChain {
        name: "bridge+sbr",
        network: "crash-sbr",
        ifname: "eth0",
        bridges: &["crash6"],
        plugins: vec![bridge_config("crash6", &json!({})), json!({"type": "sbr"})],
    }
}

/// A device of the host, with addresses from the configuration.
pub fn host_device() -> PluginChain {
    PluginChain {
        name: "host-device+static",
        network: "crash-device",
        ifname: "eth0",
        bridges: &[],
        plugins: vec![json!({
            "type": "host-device",
            "ipam": {
                "type": "static", "addresses": [{"address": "10.201.0.2/24"}],
                "routes": [{"dst": "0.0.0.0/0", "gw": "10.201.0.1"}],
            },
        })],
    }
}

/// A TAP device.
pub fn tap() -> PluginChain {
    inside("tap+host-local", "crash-tap", json!({"type": "tap"}))
}

/// `tuning` of an interface that is there already.
pub fn tuning() -> PluginChain {
    PluginChain {
        name: "tuning",
        network: "crash-tuning",
        ifname: "eth0",
        bridges: &[],
        plugins: vec![json!({
            "type": "tuning", "mtu": 1300, "promisc": true,
            "allmulti": true, "txQLen": 77, "dataDir": "/var/lib/cni/tuning",
        })],
    }
}

/// Every chain that an ordinary kernel can have.
pub fn all() -> Vec<PluginChain> {
    vec![
        bridge(),
        masquerade(),
        portmap(),
        whole(),
        shaping(),
        firewall("open"),
        firewall("isolated"),
        sbr(),
        ptp(),
        macvlan(),
        host_device(),
        tap(),
        tuning(),
        loopback(),
    ]
}

/// Those that `podwire` is killed over: to it plugins are alike.
pub fn of_the_command() -> Vec<PluginChain> {
    vec![bridge(), whole(), firewall("open"), macvlan(), loopback()]
}

/// Those of plugins whose kinds of link many kernels are built without.
pub fn of_rarer_kernels() -> Vec<PluginChain> {
    let mut vrf = sbr();
    vrf.name = "bridge+vrf";
    vrf.network = "crash-vrf";
    vrf.plugins[1] = json!({"type": "vrf", "vrfname": "blue"});
    vec![
        inside("ipvlan+host-local", "crash-ipvlan", json!({"type": "ipvlan", "master": "crash7"})),
        inside("vlan+host-local", "crash-vlan", json!({"type": "vlan", "master": "crash8"})),
        inside("dummy+host-local", "crash-dummy", json!({"type": "dummy"})),
        vrf,
    ]
}

/// One plugin that makes an interface in the container alone.
fn inside(name: &'static str, network: &'static str, mut keys: Value) -> PluginChain {
    keys["ipam"] = ipam();
    // IPv4 alone: an address of the other is tried in the parent's network for a second
    // or two before it is used.
    keys["ipam"]["ranges"] = json!([[{"subnet": "10.201.0.0/24"}]]);
    PluginChain { name, network, ifname: "eth0", bridges: &[], plugins: vec![keys] }
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
