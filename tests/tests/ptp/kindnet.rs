//! The network of kind, end to end.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use podwire_testkit::probe::{TcpEcho, ping, tcp_connect};
use podwire_tests::{Node, Plugins};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(5);

#[test]
fn c02_kindnet_works_end_to_end() {
    let node = Node::new(Plugins::Ours);
    let before = node.world.snapshot();
    let outside = node.outside();
    let network = node.network(&json!({
        "cniVersion": "0.3.1", "name": "kindnet", "plugins": [
            {"type": "ptp", "ipMasq": false, "mtu": 1500, "ipam": {
                "type": "host-local", "dataDir": "/run/cni-ipam-state",
                "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}],
                "ranges": [[{"subnet": "10.244.0.0/24"}], [{"subnet": "fd00:10:244::/64"}]]}},
            {"type": "portmap", "capabilities": {"portMappings": true}}
        ]
    }));
    let web = node.container("c1").with_port(8080, 80);
    let client = node.container("c2");
    node.add(&network, &web);
    node.add(&network, &client);
    // The shape of 0.3.1.
    let record = std::fs::read("/var/lib/cni/results/kindnet-c1-eth0").unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let result = &record["result"];
    assert_eq!(result["cniVersion"], "0.3.1");
    let versions: Vec<_> =
        result["ips"].as_array().unwrap().iter().map(|ip| ip["version"].clone()).collect();
    assert_eq!(versions, [json!("4"), json!("6")]);
    let state = Path::new("/run/cni-ipam-state/kindnet");
    assert!(state.join("10.244.0.2").exists() && state.join("fd00:10:244::2").exists());

    let server = TcpEcho::start(&web.netns, ("10.244.0.2".parse::<IpAddr>().unwrap(), 80));
    for address in ["10.244.0.2", "fd00:10:244::2"] {
        ping(&client.netns, address.parse::<IpAddr>().unwrap(), PATIENCE).unwrap();
    }
    tcp_connect(&outside.netns, (outside.node, 8080), PATIENCE).unwrap();
    drop(server);
    node.del(&network, &web);
    node.del(&network, &client);
    assert!(!state.join("10.244.0.2").exists() && !state.join("fd00:10:244::2").exists());
    let left = node.world.snapshot().since(&before).without(|change| {
        // The neighbour of this test; the rules that portmap keeps for the next.
        ["uplink", "192.0.2.", "nft rule ip podwire_hostports", "nft rule ip6 podwire_hostports"]
            .iter()
            .any(|word| change.name().contains(word))
            || change.name().contains("/run/podwire/runtime/")
    });
    left.beyond_residue(&[]).assert_empty();
}
