//! Behind `bridge`, with `bandwidth` behind it.

use podwire_tests::{Node, Plugins};
use serde_json::json;

/// B065: CHECK accepts what later plugins of the chain changed.
#[test]
fn b065_bridge_accepts_what_tuning_changed() {
    for version in ["0.4.0", "1.0.0", "1.1.0"] {
        let node = Node::new(Plugins::Ours);
        let before = node.world.snapshot();
        let network = node.network(&json!({
            "cniVersion": version, "name": "pods", "plugins": [
                {
                    "type": "bridge", "bridge": "br0", "isGateway": true,
                    "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"},
                },
                {
                    "type": "tuning", "mac": "02:00:5E:10:00:99", "mtu": 1300, "promisc": true,
                    "sysctl": {"net.ipv4.conf.IFNAME.arp_notify": "1"},
                },
                {
                    "type": "bandwidth", "ingressRate": 8_000_000, "ingressBurst": 800_000,
                    "egressRate": 8_000_000, "egressBurst": 800_000,
                },
            ],
        }));
        let container = node.container("c1");
        node.add(&network, &container);
        let link = &container.netns.ip_json(&["link", "show", "dev", "eth0"])[0];
        assert_eq!((&link["mtu"], &link["address"]), (&json!(1300), &json!("02:00:5e:10:00:99")));
        for _ in 0..2 {
            node.check(&network, &container).unwrap_or_else(|error| panic!("{version}: {error}"));
        }
        container.netns.exec(&["ip", "link", "set", "eth0", "address", "02:00:00:00:00:44"]);
        let error = node.check(&network, &container).unwrap_err().to_string();
        assert!(error.contains("02:00:00:00:00:44"), "{version}: {error}");
        node.del(&network, &container);
        node.assert_nothing_left(&before);
        let kept = std::path::Path::new("/run/cni/tuning/c1_eth0.json");
        assert!(!kept.exists(), "{version}");
    }
}

/// A node on which Go's plugins attached a container is given ours.
#[test]
fn a_chain_of_go_is_taken_over() {
    for (go, version) in
        [(Plugins::Debian, "0.4.0"), (Plugins::Debian, "1.0.0"), (Plugins::Sid, "1.1.0")]
    {
        let node = Node::new(go);
        let before = node.world.snapshot();
        let network = node.network(&json!({
            "cniVersion": version, "name": "pods", "plugins": [
                {
                    "type": "bridge", "bridge": "br0", "isGateway": true,
                    "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"},
                },
                {
                    "type": "bandwidth", "ingressRate": 8_000_000, "ingressBurst": 800_000,
                    "egressRate": 8_000_000, "egressBurst": 800_000,
                },
                {"type": "tuning", "mac": "02:00:5e:10:00:99", "mtu": 1300, "allmulti": true},
            ],
        }));
        let container = node.container("c1");
        node.add(&network, &container);
        let kept = std::path::Path::new("/run/cni/tuning/c1_eth0.json");
        assert!(kept.exists(), "{version}");
        node.install(Plugins::Ours);
        node.check(&network, &container).unwrap_or_else(|error| panic!("{version}: {error}"));
        node.del(&network, &container);
        node.assert_nothing_left(&before);
        assert!(!kept.exists(), "{version}");
    }
}
