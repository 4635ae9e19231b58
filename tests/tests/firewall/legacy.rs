//! A host with its firewall in legacy xtables.

use serde_json::json;

use crate::lab::{Lab, outside, reaches};

const TOOLS: [&str; 2] = ["iptables-legacy", "ip6tables-legacy"];

fn rules(lab: &Lab) -> [String; 2] {
    TOOLS.map(|tool| lab.world.exec(&[tool, "-S"]).stdout)
}

#[test]
fn b080_legacy_chains_are_opened_and_closed_by_their_own_tool() {
    let lab = Lab::new();
    lab.bridge(1);
    let (one, other) = (lab.container("c1", 1, 11), lab.container("c2", 1, 12));
    for tool in TOOLS {
        lab.world.exec(&[tool, "-P", "FORWARD", "DROP"]);
    }
    let before = rules(&lab);
    let keys = json!({"ingressPolicy": "same-bridge"});
    assert!(!reaches(&one.netns, outside()));
    lab.add(&one, &keys);
    assert!(reaches(&one.netns, outside()));
    let once = rules(&lab);
    lab.add(&one, &keys);
    assert_eq!(rules(&lab), once);
    assert!(once[0].contains("pods/c1/eth0") && once[0].contains("! -o br1"), "{}", once[0]);
    let nft = lab.world.exec(&["nft", "list", "ruleset"]).stdout;
    assert!(!nft.contains("table ip filter"), "the host has none there: {nft}");
    lab.firewall("CHECK", &one, &keys).run().success();
    lab.add(&other, &keys);
    lab.del_blind(&one, &keys);
    lab.world.exec(&["ip", "link", "del", "v-c1"]);
    assert!(reaches(&other.netns, outside()));
    lab.firewall("CHECK", &one, &keys).run().error(100);
    lab.firewall("DEL", &other, &keys).run().success();
    lab.firewall("DEL", &other, &keys).run().success();
    for (after, before) in rules(&lab).iter().zip(before) {
        let after: Vec<_> = after.lines().filter(|line| *line != "-N CNI-ADMIN").collect();
        assert_eq!(after, before.lines().collect::<Vec<_>>());
    }
}

/// Somebody once listed a legacy table; that makes no legacy host.
#[test]
fn empty_legacy_tables_do_not_count() {
    let lab = Lab::dropping();
    lab.bridge(1);
    let one = lab.container("c1", 1, 11);
    for tool in TOOLS {
        lab.world.exec(&[tool, "-S"]);
    }
    lab.add(&one, &json!({}));
    assert!(reaches(&one.netns, outside()));
    for rules in rules(&lab) {
        assert!(!rules.contains("CNI"), "{rules}");
    }
    lab.del_blind(&one, &json!({}));
    lab.assert_clean();
}
