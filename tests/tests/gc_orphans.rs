//! Orphans of a whole chain of plugins: found by their marks, and nobody else's with them.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use podwire_runtime::{GcMode, ValidSet};
use podwire_spec::id::{ContainerId, IfName};
use podwire_tests::{Container, Node, Plugins, wait_until};
use serde_json::{Value, json};

fn chain(name: &str, bridge: &str, subnet: &str) -> Value {
    json!({"cniVersion": "1.1.0", "name": name, "plugins": [
        {"type": "bridge", "bridge": bridge, "isGateway": true, "ipMasq": true,
            "macspoofchk": true, "ipam": {"type": "host-local", "subnet": subnet}},
        {"type": "portmap", "capabilities": {"portMappings": true}, "snat": true},
        {"type": "firewall", "backend": "iptables", "ingressPolicy": "same-bridge"},
        {"type": "bandwidth", "ingressRate": 8_000_000, "ingressBurst": 800_000,
            "egressRate": 8_000_000, "egressBurst": 800_000},
        {"type": "tuning", "mtu": 1300, "dataDir": "/var/lib/cni/tuning"},
    ]})
}

/// What looks like ours and isn't.
const LOOK_ALIKES: &str = "
    ip link add vethABC type veth peer name vethDEF
    ip link add veth0123abcd type veth peer name veth4567cdef
    ip link set veth0123abcd alias podwire:
    ip link add bwp-user type ifb
    ip link add bwp0123456789ab type ifb
    iptables-nft -t nat -N CNI-USER
    iptables-nft -t nat -A POSTROUTING -s 10.77.0.0/16 -j CNI-USER
    iptables-nft -N CNI-OTHER
    iptables-nft -A FORWARD -s 10.77.0.0/16 -j CNI-OTHER
    nft add table ip podwire_user
    nft 'add map ip podwire_user owners { type ipv6_addr : verdict; }'
    mkdir -p /var/lib/cni/networks/pods /var/lib/cni/tuning
    echo x > /var/lib/cni/networks/pods/README
    echo x > /var/lib/cni/tuning/README";

/// B119: twenty attachments lose their namespaces and are never deleted; another network
/// and what only looks alike stay.
#[test]
fn b119_exactly_what_is_ours_and_dead_goes() {
    let node = Node::new(Plugins::Ours);
    node.world.exec(&["sh", "-ec", LOOK_ALIKES]);
    let other = node.network(&chain("other", "br1", "10.2.0.0/24"));
    let neighbour = node.container("neighbour").with_port(7000, 80);
    node.add(&other, &neighbour);
    let network = node.network(&chain("pods", "br0", "10.1.0.0/24"));
    let alive = node.container("alive").with_port(7001, 80);
    node.add(&network, &alive);
    let before = node.world.snapshot();
    let dead: Vec<Container> = (0..20_u16)
        .map(|number| {
            let container = node.container(&format!("d{number}")).with_port(8000 + number, 80);
            node.add(&network, &container);
            container
        })
        .collect();
    for container in &dead {
        container.netns.remove();
        // The records are lost as well: only the plugins' marks are left.
        std::fs::remove_file(format!("/var/lib/cni/results/pods-{}-eth0", container.id)).unwrap();
    }
    wait_until("the end of the namespaces", || {
        let links = node.world.ip_json(&["link", "show", "type", "veth"]);
        // Two that live, and two look-alike pairs.
        links.as_array().unwrap().len() == 6
    });
    let with_orphans = node.world.snapshot();
    assert!(with_orphans.since(&before).changes.len() > 100, "they left something");

    let valid =
        ValidSet::of([(ContainerId::parse("alive").unwrap(), IfName::parse("eth0").unwrap())]);
    node.runtime().gc(&network, &valid, GcMode::DryRun).unwrap();
    node.world.snapshot().since(&with_orphans).assert_empty();

    let report = node.runtime().gc(&network, &valid, GcMode::Collect).unwrap();
    assert!(report.is_clean(), "{:?}", report.failures);
    node.left(&before).assert_empty();
    let gone = before.since(&node.world.snapshot());
    let may_change = ["last_reserved_ip", "/.podwire/", "file /run/podwire/runtime/"];
    gone.without(|change| may_change.iter().any(|part| change.name().contains(part)))
        .assert_empty();
    node.check(&network, &alive).unwrap();
    node.check(&other, &neighbour).unwrap();
}

/// B056: one object can't be removed, here a reservation that something is mounted on.
/// The error names it, the other plugins and the other objects of its own have their turn
/// all the same, and a later GC ends the work.
#[test]
fn b056_what_cannot_be_removed_is_told_and_all_the_rest_goes() {
    let node = Node::new(Plugins::Ours);
    let network = node.network(&chain("pods", "br0", "10.1.0.0/24"));
    let alive = node.container("alive").with_port(7001, 80);
    node.add(&network, &alive);
    let before = node.world.snapshot();
    for number in 0..3_u16 {
        let container = node.container(&format!("d{number}")).with_port(8000 + number, 80);
        node.add(&network, &container);
        container.netns.remove();
        std::fs::remove_file(format!("/var/lib/cni/results/pods-d{number}-eth0")).unwrap();
    }
    wait_until("the end of the namespaces", || {
        let links = node.world.ip_json(&["link", "show", "type", "veth"]);
        links.as_array().unwrap().len() == 1
    });
    let stuck = "/var/lib/cni/networks/pods/10.1.0.4";
    assert!(std::fs::read_to_string(stuck).unwrap().starts_with("d1"));
    node.world.exec(&["mount", "--bind", stuck, stuck]);

    let valid =
        ValidSet::of([(ContainerId::parse("alive").unwrap(), IfName::parse("eth0").unwrap())]);
    let collect = || node.runtime().gc(&network, &valid, GcMode::Collect).unwrap();
    for _ in 0..2 {
        let report = collect();
        assert!(!report.is_clean());
        assert!(format!("{:?}", report.failures).contains("10.1.0.4"), "{:?}", report.failures);
        let left = node.left(&before);
        assert!(left.changes.iter().any(|change| change.name().contains(stuck)), "{left:?}");
        left.without(|change| change.name().contains(stuck)).assert_empty();
        node.check(&network, &alive).unwrap();
    }
    node.world.exec(&["umount", stuck]);
    assert!(collect().is_clean());
    node.left(&before).assert_empty();
}
