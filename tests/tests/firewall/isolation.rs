//! `ingressPolicy`, with packets.

use serde_json::{Value, json};

use crate::lab::{Container, Lab, outside, reaches};

fn policy(name: &str) -> Value {
    json!({ "ingressPolicy": name })
}

/// Two containers on each of two bridges with a policy, one on a bridge
/// without.
#[test]
fn b110_bridges_are_apart_and_everything_else_is_reached() {
    let lab = Lab::new();
    for number in 1..=3 {
        lab.bridge(number);
    }
    let same = policy("same-bridge");
    let on = |name: &str, bridge, host, keys: &Value| {
        let container = lab.container(name, bridge, host);
        lab.add(&container, keys);
        container
    };
    let first = on("a1", 1, 11, &same);
    let rules = lab.rules();
    let second = on("a2", 1, 12, &same);
    let shared = |rules: &str| rules.lines().filter(|line| line.contains("ISOL")).count();
    for (one, two) in rules.iter().zip(lab.rules()) {
        assert_eq!(shared(one), shared(&two), "made once for a bridge");
    }
    let (third, fourth) = (on("b1", 2, 11, &same), on("b2", 2, 12, &same));
    let free = on("f1", 3, 11, &json!({}));
    let matrix: [(&Container, &Container, bool); 10] = [
        (&first, &second, true),
        (&second, &first, true),
        (&third, &fourth, true),
        (&first, &third, false),
        (&third, &first, false),
        (&second, &fourth, false),
        (&fourth, &second, false),
        (&first, &free, true),
        (&free, &first, true),
        (&free, &fourth, true),
    ];
    for (from, to, expected) in matrix {
        let found = reaches(&from.netns, to.addresses);
        assert_eq!(found, expected, "{} to {}", from.id, to.id);
    }
    for container in [&first, &third, &free] {
        assert!(reaches(&container.netns, outside()), "{}", container.id);
    }
    lab.firewall("CHECK", &first, &same).run().success();
    // The rules stand while any container of the bridge is left.
    lab.firewall("DEL", &first, &same).run().success();
    assert!(!reaches(&second.netns, third.addresses));
    lab.del_blind(&second, &same);
    lab.world.exec(&["ip", "link", "del", "v-a1"]);
    assert!(lab.rules().iter().all(|rules| rules.contains("br2")), "the other bridge's stay");
    for container in [&third, &fourth] {
        lab.firewall("DEL", container, &same).run().success();
    }
    lab.firewall("DEL", &free, &json!({})).run().success();
    // A bridge with a port that nobody has declared gone keeps its rules
    // until there is none.
    for name in ["v-a2", "v-b1", "v-b2"] {
        lab.world.exec(&["ip", "link", "del", name]);
    }
    lab.gc(&same, &[]);
    lab.assert_clean();
}

#[test]
fn b110_isolated_containers_are_apart_on_their_bridge_too() {
    let lab = Lab::new();
    lab.bridge(1);
    lab.filter_bridged(true);
    let (one, other) = (lab.container("c1", 1, 11), lab.container("c2", 1, 12));
    assert!(reaches(&one.netns, other.addresses));
    for container in [&one, &other] {
        lab.add(container, &policy("isolated"));
    }
    assert!(!reaches(&one.netns, other.addresses));
    assert!(reaches(&one.netns, outside()));
    lab.firewall("CHECK", &one, &policy("isolated")).run().success();
    // The configuration changes, and with the next container it holds.
    let error = lab.firewall("CHECK", &one, &policy("same-bridge")).run();
    assert_eq!(error.code, 0, "more than asked for is no fault: {error:?}");
    lab.add(&one, &policy("same-bridge"));
    assert!(reaches(&one.netns, other.addresses));
    for rules in lab.rules() {
        assert!(!rules.contains("-i br1 -o br1"), "{rules}");
        assert!(rules.contains("! -o br1"), "{rules}");
    }
    lab.firewall("CHECK", &one, &policy("isolated")).run().error(100);
    lab.add(&one, &policy("open"));
    for rules in lab.rules() {
        assert!(!rules.contains("ISOLATION"), "{rules}");
    }
    lab.add(&one, &policy("isolated"));
    // Another network on the bridge can't loosen it.
    let mut loose = policy("open");
    loose["name"] = json!("other");
    lab.add(&other, &loose);
    assert!(!reaches(&one.netns, other.addresses));
    lab.firewall("DEL", &other, &loose).run().success();
    for container in [&other, &one] {
        lab.firewall("DEL", container, &policy("isolated")).run().success();
        lab.world.exec(&["ip", "link", "del", &format!("v-{}", container.id)]);
    }
    lab.gc(&policy("isolated"), &[]);
    lab.assert_clean();
}

#[test]
fn b110_an_unknown_policy_is_refused_and_changes_nothing() {
    let lab = Lab::new();
    lab.bridge(1);
    let one = lab.container("c1", 1, 11);
    let before = lab.world.snapshot();
    for verb in ["ADD", "CHECK"] {
        let error = lab.firewall(verb, &one, &policy("isolate")).run().error(7).to_string();
        assert!(error.contains("unknown ingress policy") && error.contains("isolate"), "{error}");
    }
    lab.firewall("DEL", &one, &policy("isolate")).run().success();
    lab.world.snapshot().since(&before).assert_empty();
}

/// Isolation comes before what is accepted, whichever plugin call was first.
#[test]
fn accepting_does_not_override_isolation() {
    let lab = Lab::dropping();
    lab.bridge(1);
    lab.bridge(2);
    let (one, two) = (lab.container("c1", 1, 11), lab.container("c2", 2, 11));
    for container in [&one, &two] {
        lab.add(container, &json!({}));
    }
    assert!(reaches(&one.netns, outside()));
    for container in [&one, &two] {
        lab.add(container, &policy("same-bridge"));
    }
    assert!(!reaches(&one.netns, two.addresses));
    assert!(reaches(&one.netns, outside()));
}
