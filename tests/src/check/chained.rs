//! Chains of plugins that change what those before them made: CHECK of all must pass.

use podwire_testkit::Feature;
use serde_json::{Value, json};

use super::bridge::{addresses, gateway};
use super::filter::with_filters;
use super::{Subject, listen_inside, nothing};

/// Every chain; the first plugin is the one that must bear with the others.
pub(super) fn subjects() -> Vec<Subject> {
    vec![
        chained("bridge", "tuning, bandwidth, portmap and firewall behind it", &[], "", || {
            [vec![open_bridge(), tuning(), limit()], with_filters()].concat()
        }),
        chained("bridge", "sbr and tuning behind it", &[], "", || {
            vec![open_bridge(), json!({"type": "sbr"}), tuning()]
        }),
        chained("bridge", "vrf and tuning behind it", &[Feature::Vrf], "", || {
            vec![open_bridge(), json!({"type": "vrf", "vrfname": "blue"}), tuning()]
        }),
        chained("ptp", "tuning, bandwidth, portmap and firewall behind it", &[], "", || {
            [vec![point_to_point(), tuning(), limit()], with_filters()].concat()
        }),
        chained("ptp", "sbr and tuning behind it", &[], "", || {
            vec![point_to_point(), json!({"type": "sbr"}), tuning()]
        }),
        chained("macvlan", "sbr and tuning behind it", &[], UPLINK, || {
            vec![one("macvlan"), json!({"type": "sbr"}), tuning()]
        }),
        chained("ipvlan", "sbr and tuning behind it", &[Feature::Ipvlan], UPLINK, || {
            // Its MAC address is the parent's.
            vec![one("ipvlan"), json!({"type": "sbr"}), json!({"type": "tuning", "mtu": 1300})]
        }),
        chained("vlan", "vrf and tuning behind it", &[Feature::Vlan, Feature::Vrf], UPLINK, || {
            vec![one("vlan"), json!({"type": "vrf", "vrfname": "blue"}), tuning()]
        }),
        chained("dummy", "sbr and tuning behind it", &[Feature::Dummy], "", || {
            vec![one("dummy"), json!({"type": "sbr"}), tuning()]
        }),
        chained("tap", "sbr and tuning behind it", &[], "", || {
            vec![one("tap"), json!({"type": "sbr"}), tuning()]
        }),
        chained("host-device", "sbr and tuning behind it", &[], DEVICE, || {
            vec![one("host-device"), json!({"type": "sbr"}), tuning()]
        }),
    ]
}

const UPLINK: &str = "ip link add up0 type veth peer name far0
    ip link set up0 up; ip link set far0 up";
const DEVICE: &str = "ip link add hdev type veth peer name far0; ip link set far0 up";

fn chained(
    plugin: &'static str,
    setting: &'static str,
    needs: &'static [Feature],
    prepare: &'static str,
    chain: fn() -> Vec<Value>,
) -> Subject {
    let tolerated = || vec![listen_inside()];
    Subject { plugin, setting, needs, prepare, chain, noticed: nothing, tolerated }
}

/// Without the spoof check, which drops what has the MAC address that `tuning` gives: CHECK
/// says so.
fn open_bridge() -> Value {
    let mut bridge = gateway();
    bridge["macspoofchk"] = json!(false);
    bridge
}

fn tuning() -> Value {
    json!({"type": "tuning", "mac": "02:00:5e:10:00:99", "mtu": 1300, "promisc": true,
        "allmulti": true, "txQLen": 77})
}

fn limit() -> Value {
    json!({"type": "bandwidth", "ingressRate": 8_000_000, "ingressBurst": 800_000,
        "egressRate": 16_000_000, "egressBurst": 800_000})
}

fn point_to_point() -> Value {
    json!({"type": "ptp", "ipMasq": true, "ipam": addresses(&["10.1.0.2/24", "fd00:1::2/64"])})
}

fn one(plugin: &str) -> Value {
    json!({"type": plugin, "master": "up0", "vlanId": 100, "device": "hdev", "mtu": 1400,
        "ipam": addresses(&["10.1.0.2/24"])})
}
