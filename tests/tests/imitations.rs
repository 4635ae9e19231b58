//! What only looks as if it were ours, on the host and in the container: no verb of any
//! plugin touches it, and each does its work beside it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use podwire_plugin::OwnerMark;
use podwire_spec::id::NetworkName;
use podwire_tests::lab::{
    Lab, addresses, host_local, ip, is_bookkeeping, link, links, reservations, with, with_previous,
};
use serde_json::{Value, json};

/// Links of the host that claim to be a host end, by alias or by name, and aren't: of
/// another kind, of another network, or with words that no plugin of ours writes. `c1` is
/// the attachment that lives, `dead` one that doesn't.
const LOOK_ALIKES: &str = "
    ip link add fake0 type bridge
    ip link set fake0 alias podwire:n:dead:eth0
    ip link add fake1 type ifb
    ip link set fake1 alias podwire:n:c1:eth0
    ip link add fake2 type veth peer name fake3
    ip link set fake2 alias podwire:other:dead:eth0
    ip link set fake3 alias podwire:n:dead:eth0:more
    ip link add fake4 type veth peer name fake5
    ip link set fake4 alias podwire:n
    ip link set fake5 alias xpodwire:n:dead:eth0
    ip link add vethABCD1234 type veth peer name vethabcd1234
    ip link set vethabcd1234 alias podwire:0123456789abcdef";

fn plugins() -> Vec<(&'static str, Value)> {
    let ipam = host_local(&["10.1.0.0/24"]);
    vec![
        ("bridge", json!({"bridge": "br0", "isGateway": true, "ipam": ipam})),
        ("ptp", json!({"ipam": ipam, "ipMasq": true})),
        ("macvlan", json!({"master": "up0", "ipam": ipam})),
        ("tap", json!({"ipam": ipam})),
        ("host-device", json!({"device": "hdev", "ipam": ipam})),
    ]
}

/// A world with the look-alikes, an uplink and a device, and the plugin's configuration.
fn lab(plugin: &'static str, keys: &Value) -> (Lab, Value) {
    let lab = Lab::new(plugin);
    let devices = "
        ip link add up0 type veth peer name far0; ip link set up0 up; ip link set far0 up
        ip link add hdev type veth peer name far1; ip link set far1 up; ip link set hdev up";
    lab.world.exec(&["sh", "-ec", &format!("{LOOK_ALIKES}\n{devices}")]);
    (lab, with(&json!({"cniVersion": "1.1.0", "name": "n", "type": plugin}), keys))
}

/// Existing bad links of the host, through the whole life of an attachment.
#[test]
fn look_alikes_of_the_host_outlive_every_verb() {
    for (plugin, keys) in plugins() {
        let (lab, config) = lab(plugin, &keys);
        let before = lab.world.snapshot();
        // This device is virtual, and goes with a namespace that is removed.
        let ways = if plugin == "host-device" { &[true][..] } else { &[true, false] };
        for with_namespace in ways.iter().copied() {
            let netns = lab.container("c1");
            let result = lab.add(&netns, &config);
            assert_eq!(addresses(&netns, "eth0").len(), 1, "{plugin}");
            lab.check(&netns, &config, &result).success();
            lab.gc(&config, &[&netns]);
            lab.check(&netns, &config, &result).success();
            if with_namespace {
                lab.del(&netns, &config, &result);
                netns.remove();
            } else {
                netns.remove();
                lab.call("DEL", &netns, &config).run().success();
            }
            lab.gc(&config, &[]);
            assert!(reservations("n").is_empty(), "{plugin}");
            let left = lab.world.snapshot().since(&before).beyond_residue(&["br0"]);
            let left = left.without(is_bookkeeping);
            assert!(left.changes.is_empty(), "{plugin}, namespace {with_namespace}:\n{left}");
            for name in ["fake0", "fake1", "fake2", "fake3", "fake4", "fake5", "vethabcd1234"] {
                assert!(link(lab.world.host(), name).is_some(), "{plugin}: {name} is gone");
            }
        }
    }
}

/// The names that a host end would have are taken, by strangers with our alias of
/// another attachment, or with none.
#[test]
fn taken_names_of_host_ends_are_passed_over() {
    let network = NetworkName::parse("n").unwrap();
    let owner = OwnerMark::new(&network, "c1", "eth0");
    for (plugin, keys) in plugins().into_iter().take(2) {
        let (lab, config) = lab(plugin, &keys);
        let names: Vec<_> = (0..2).map(|candidate| owner.short_name("veth", candidate)).collect();
        lab.ip(&format!("link add {} type bridge", names[0]));
        lab.ip(&format!("link add {} type veth peer name far9", names[1]));
        lab.ip(&format!("link set {} alias podwire:n:another:eth0", names[1]));
        let before = lab.world.snapshot();
        let netns = lab.container("c1");
        let result = lab.add(&netns, &config);
        let text = result.to_string();
        assert!(names.iter().all(|name| !text.contains(name)), "{plugin}: {text}");
        lab.check(&netns, &config, &result).success();
        // Without prevResult it is found again all the same.
        lab.call("DEL", &netns, &config).run().success();
        assert!(links(&netns).is_empty(), "{plugin}");
        let left = lab.world.snapshot().since(&before).beyond_residue(&["br0"]);
        let left = left.without(is_bookkeeping);
        assert!(left.changes.is_empty(), "{plugin}:\n{left}");
    }
}

/// B101: in the container stands a link of another kind under the interface's name, with
/// the alias that ours would have: ADD names it, and neither its undoing nor DEL takes it
/// away.
#[test]
fn b101_an_imitation_in_the_container_is_refused_and_stays() {
    for (plugin, keys) in plugins() {
        let (lab, config) = lab(plugin, &keys);
        let netns = lab.container("c1");
        ip(&netns, "link add eth0 type bridge");
        ip(&netns, "link set eth0 alias podwire:n:c1:eth0");
        let before = (lab.world.snapshot(), netns.snapshot());
        let output = lab.call("ADD", &netns, &config).run();
        let told = output.json();
        assert_ne!(output.code, 0, "{plugin}");
        assert!(told["msg"].as_str().unwrap().contains("eth0"), "{plugin}: {told}");
        let claimed = json!({"cniVersion": "1.1.0", "interfaces": [
            {"name": "eth0", "mac": link(&netns, "eth0").unwrap()["address"],
                "sandbox": netns.path().to_str().unwrap()}]});
        for sent in [config.clone(), with_previous(&config, &claimed)] {
            lab.call("DEL", &netns, &sent).run().success();
        }
        lab.gc(&config, &[]);
        let left = lab.world.snapshot().since(&before.0).beyond_residue(&["br0"]);
        let left = left.without(is_bookkeeping);
        assert!(left.changes.is_empty(), "{plugin}:\n{left}");
        let left = netns.snapshot().since(&before.1);
        assert!(left.changes.is_empty(), "{plugin}, in the container:\n{left}");
        assert!(reservations("n").is_empty(), "{plugin}");
    }
}
