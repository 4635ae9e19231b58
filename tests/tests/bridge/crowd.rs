//! Many at once.

use std::collections::BTreeSet;
use std::thread;

use podwire_testkit::{Netns, World};
use serde_json::{Value, json};

use crate::lab::{Lab, pods, with, with_prev};

/// Runs one call for each container, all at once, and returns what they said.
fn all_at_once(lab: &Lab, verb: &str, containers: &[(Netns, Value)]) -> Vec<Value> {
    let host = lab.world.host().open();
    let calls: Vec<_> =
        containers.iter().map(|(netns, config)| lab.call(verb, netns, config)).collect();
    // Threads of a world share its namespaces.
    thread::scope(|scope| {
        let threads: Vec<_> = calls
            .into_iter()
            .map(|call| scope.spawn(|| host.run(|| call.run().success()).unwrap()))
            .collect();
        let outputs = threads.into_iter().map(|thread| thread.join().unwrap());
        outputs.map(|output| serde_json::from_str(&output.stdout).unwrap_or_default()).collect()
    })
}

fn containers(world: &World, count: usize, config: &Value) -> Vec<(Netns, Value)> {
    (0..count).map(|index| (world.netns(&format!("c{index}")), config.clone())).collect()
}

/// Fifty first ADDs race for a bridge that isn't there.
#[test]
fn fifty_first_adds_make_one_bridge() {
    let lab = Lab::new();
    let all = containers(&lab.world, 50, &pods());
    let results = all_at_once(&lab, "ADD", &all);
    let bridges: BTreeSet<_> =
        results.iter().map(|result| result["interfaces"][0]["mac"].to_string()).collect();
    assert_eq!(bridges.len(), 1, "one bridge, whose MAC address all were told");
    assert_eq!(lab.addresses("br0"), ["10.1.0.1/24"]);
    for ((netns, config), result) in all.iter().zip(&results) {
        lab.check(netns, config, result).success();
    }
}

/// A hundred at once, added and removed, ten times.
#[test]
fn a_hundred_come_and_go_and_leave_nothing() {
    let lab = Lab::new();
    let before = lab.world.snapshot();
    let config = with(&pods(), &json!({"ipMasq": true, "hairpinMode": true}));
    let mut all = containers(&lab.world, 100, &config);
    for _ in 0..10 {
        let results = all_at_once(&lab, "ADD", &all);
        let addresses: BTreeSet<_> =
            results.iter().map(|result| result["ips"][0]["address"].to_string()).collect();
        assert_eq!(addresses.len(), 100, "no address twice");
        for ((_, config), result) in all.iter_mut().zip(&results) {
            *config = with_prev(config, result);
        }
        all_at_once(&lab, "DEL", &all);
        assert_eq!(lab.links(), ["br0"]);
        assert!(Lab::reservations("n").is_empty());
        lab.world.snapshot().since(&before).beyond_residue(&["br0"]).assert_empty();
        for (_, config) in &mut all {
            config.as_object_mut().unwrap().remove("prevResult");
        }
    }
}

/// Failing ADDs among good ones never take the bridge from under them.
#[test]
fn failures_in_the_crowd_hurt_nobody_else() {
    let lab = Lab::new();
    for round in 0..5 {
        let config = with(
            &pods(),
            &json!({"bridge": format!("br{round}"), "name": format!("n{round}"),
            "ipam": {"type": "host-local", "ranges": [[{"subnet": format!("10.{round}.0.0/24")}]]}}),
        );
        let good: Vec<_> = (0..8)
            .map(|index| (lab.world.netns(&format!("good{round}-{index}")), config.clone()))
            .collect();
        let bad: Vec<_> =
            (0..8).map(|index| lab.world.netns(&format!("bad{round}-{index}"))).collect();
        for netns in &bad {
            netns.exec(&["ip", "link", "add", "eth0", "type", "veth", "peer", "name", "user0"]);
        }
        let host = lab.world.host().open();
        let failing: Vec<_> = bad.iter().map(|netns| lab.call("ADD", netns, &config)).collect();
        let results = thread::scope(|scope| {
            for call in failing {
                scope.spawn(|| host.run(|| call.run().failure()).unwrap());
            }
            all_at_once(&lab, "ADD", &good)
        });
        for ((netns, config), result) in good.iter().zip(&results) {
            lab.check(netns, config, result).success();
        }
        assert_eq!(Lab::reservations(&format!("n{round}")).len(), 8);
    }
}
