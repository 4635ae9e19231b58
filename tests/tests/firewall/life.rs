//! ADD, CHECK, DEL and GC in the host's own chains.

use podwire_testkit::GoPlugins;
use podwire_testkit::state::Change;
use serde_json::json;

use crate::lab::{Lab, call, outside, reaches};

#[test]
fn a_container_passes_a_host_that_drops() {
    let lab = Lab::dropping();
    lab.bridge(1);
    let (one, other) = (lab.container("c1", 1, 11), lab.container("c2", 1, 12));
    let with_containers = lab.world.snapshot();
    assert!(!reaches(&one.netns, outside()), "dropped");
    let output = lab.add(&one, &json!({}));
    assert_eq!(output.json(), one.prev_result);
    assert!(reaches(&one.netns, outside()), "answers come back");
    assert!(!reaches(&lab.outside, one.addresses), "nobody may come in");
    assert!(!reaches(&other.netns, outside()), "only who was added");
    let rules = lab.rules();
    lab.add(&one, &json!({}));
    assert_eq!(lab.rules(), rules, "the same again");
    lab.firewall("CHECK", &one, &json!({})).run().success();
    lab.add(&other, &json!({}));
    lab.del_blind(&one, &json!({}));
    assert!(!reaches(&one.netns, outside()));
    assert!(reaches(&other.netns, outside()));
    lab.del_blind(&one, &json!({}));
    lab.firewall("DEL", &other, &json!({})).run().success();
    lab.firewall("DEL", &other, &json!({})).run().success();
    lab.assert_clean();
    // The administrator's chain, once there, is theirs, empty or not.
    let is_theirs = |change: &Change| change.name().ends_with(" filter CNI-ADMIN");
    let left = lab.world.snapshot().since(&with_containers).beyond_residue(&["br1"]);
    left.without(is_theirs).assert_empty();
}

/// Rules as the Go plugin makes them, to the letter but for the owner.
#[test]
fn rules_are_those_of_the_go_plugin() {
    let listed = |go: bool| {
        let lab = Lab::dropping();
        lab.bridge(1);
        let one = lab.container("c1", 1, 11);
        let keys = json!({"ingressPolicy": "isolated", "iptablesAdminChainName": "MINE"});
        let plugin =
            if go { GoPlugins::sid().plugin("firewall") } else { lab.world.plugin("firewall") };
        call(plugin, "ADD", &one, &keys).run().success();
        lab.rules()
    };
    let gos = std::thread::spawn(move || listed(true)).join().unwrap();
    let ours = std::thread::spawn(move || listed(false)).join().unwrap();
    for (gos, ours) in gos.iter().zip(ours) {
        let mut lines = Vec::new();
        for line in ours.lines() {
            let is_own = line.contains("pods/c1/eth0");
            match line.split_once(" -m comment --comment ").filter(|_| is_own) {
                Some((start, rest)) => {
                    let end = rest.split_once("\" ").unwrap().1;
                    lines.push(format!("{start} {end}"));
                }
                None => lines.push(line.to_owned()),
            }
        }
        let gos: Vec<_> = gos.lines().collect();
        assert_eq!(lines, gos);
    }
}

#[test]
fn iptables_deletes_what_it_lists_of_us() {
    let lab = Lab::dropping();
    lab.bridge(1);
    let one = lab.container("c1", 1, 11);
    lab.add(&one, &json!({"ingressPolicy": "same-bridge"}));
    for (tool, rules) in ["iptables-nft", "ip6tables-nft"].iter().zip(lab.rules()) {
        let mut deleted = 0;
        for line in rules.lines().filter(|line| line.starts_with("-A ")) {
            let script = format!("{tool} {}", line.replacen("-A", "-D", 1));
            lab.world.exec(&["sh", "-c", &script]);
            deleted += 1;
        }
        assert_eq!(deleted, 9, "{rules}");
    }
    for rules in lab.rules() {
        assert!(!rules.lines().any(|line| line.starts_with("-A")), "{rules}");
    }
    // Everything is as it was, said by name.
    let keys = json!({"ingressPolicy": "same-bridge"});
    let error = lab.firewall("CHECK", &one, &keys).run().error(100).to_string();
    assert!(error.contains("CNI-ISOLATION-STAGE-1"), "{error}");
    lab.del_blind(&one, &keys);
    lab.assert_clean();
}

#[test]
fn b020_an_old_owner_leaves_the_new_ones_rules() {
    let lab = Lab::dropping();
    lab.bridge(1);
    let old = lab.container("old", 1, 11);
    lab.add(&old, &json!({}));
    lab.world.exec(&["ip", "link", "del", "v-old"]);
    let new = lab.container("new", 1, 11);
    lab.add(&new, &json!({}));
    lab.firewall("DEL", &old, &json!({})).run().success();
    assert!(reaches(&new.netns, outside()));
    lab.firewall("CHECK", &new, &json!({})).run().success();
    lab.firewall("DEL", &new, &json!({})).run().success();
    lab.assert_clean();
}

#[test]
fn b076_b082_del_copes_with_whatever_is_left() {
    let wreckers: [&[&[&str]]; 5] = [
        &[&["iptables-nft", "-F"], &["iptables-nft", "-X"]],
        &[&["nft", "flush", "ruleset"]],
        &[&["iptables-nft", "-D", "FORWARD", "2"]],
        &[&["nft", "flush", "chain", "ip", "filter", "CNI-FORWARD"]],
        &[&["nft", "delete", "table", "ip", "filter"]],
    ];
    for wreck in wreckers {
        std::thread::spawn(move || {
            let lab = Lab::dropping();
            lab.bridge(1);
            let one = lab.container("c1", 1, 11);
            let keys = json!({"ingressPolicy": "same-bridge"});
            lab.add(&one, &keys);
            lab.world.exec(&["iptables-nft", "-A", "FORWARD", "-s", "203.0.113.9", "-j", "DROP"]);
            for command in wreck {
                lab.world.exec(command);
            }
            let others = |rules: &str| rules.contains("203.0.113.9");
            let has_others = others(&lab.rules()[0]);
            let error = lab.firewall("CHECK", &one, &keys).run().error(100).to_string();
            assert!(error.contains("iptables rule"), "{error}");
            lab.del_blind(&one, &keys);
            lab.firewall("DEL", &one, &keys).run().success();
            assert_eq!(others(&lab.rules()[0]), has_others, "{wreck:?}");
            for rules in lab.rules() {
                assert!(!rules.contains("CNI-FORWARD") && !rules.contains("ISOL"), "{rules}");
            }
            // And it can be mended.
            lab.add(&one, &keys);
            lab.firewall("CHECK", &one, &keys).run().success();
        })
        .join()
        .unwrap();
    }
}

#[test]
fn gc_removes_the_dead_and_leaves_the_living() {
    let lab = Lab::dropping();
    lab.bridge(1);
    let (dead, alive) = (lab.container("dead", 1, 11), lab.container("alive", 1, 12));
    let keys = json!({"ingressPolicy": "same-bridge"});
    lab.add(&dead, &keys);
    lab.add(&alive, &keys);
    // Another network's, and an administrator's.
    let elsewhere = lab.container("elsewhere", 1, 13);
    lab.add(&elsewhere, &json!({"name": "other"}));
    lab.world.exec(&["iptables-nft", "-A", "CNI-FORWARD", "-s", "10.1.0.99", "-j", "ACCEPT"]);
    lab.gc(&keys, &[&alive]);
    let [v4, v6] = lab.rules();
    for (rules, one, others) in
        [(&v4, "10.1.0.11/", ["10.1.0.12/", "10.1.0.13/"]), (&v6, "::11/", ["::12/", "::13/"])]
    {
        assert!(!rules.contains(one), "{rules}");
        assert!(others.iter().all(|other| rules.contains(other)), "{rules}");
        assert!(rules.contains("-o br1"), "{rules}");
    }
    assert!(v4.contains("10.1.0.99"), "{v4}");
    lab.firewall("CHECK", &alive, &keys).run().success();
    for name in ["v-dead", "v-alive"] {
        lab.world.exec(&["ip", "link", "set", name, "nomaster"]);
    }
    lab.world.exec(&["ip", "link", "set", "v-elsewhere", "nomaster"]);
    lab.gc(&keys, &[]);
    lab.gc(&json!({"name": "other"}), &[]);
    let [v4, v6] = lab.rules();
    assert!(v4.contains("10.1.0.99") && !v4.contains("ISOLATION"), "{v4}");
    assert!(!v6.contains("CNI-FORWARD") && !v6.contains("ISOLATION"), "{v6}");
}

/// The chain of the administrator comes first, and is never deleted.
#[test]
fn c13_the_administrators_chain_decides_and_stays() {
    let lab = Lab::dropping();
    lab.bridge(1);
    let one = lab.container("c1", 1, 11);
    let mut keys = json!({"cniVersion": "0.4.0", "iptablesAdminChainName": "NOMAD-ADMIN"});
    // As after loopback: its addresses are nobody's business.
    keys["prevResult"] = json!({
        "cniVersion": "0.4.0",
        "interfaces": [
            {"name": "lo", "sandbox": one.netns.path()}, {"name": "br1"}, {"name": "v-c1"},
            {"name": "eth0", "sandbox": one.netns.path()}
        ],
        "ips": [
            {"version": "4", "address": "127.0.0.1/8", "interface": 0},
            {"version": "6", "address": "::1/128", "interface": 0},
            {"version": "4", "address": "10.1.0.11/24", "interface": 3},
            {"version": "6", "address": "fd00:1::11/64", "interface": 3}
        ]
    });
    lab.add(&one, &keys);
    for rules in lab.rules() {
        assert!(!rules.contains("127.0.0.1") && !rules.contains("::1/128"), "{rules}");
    }
    assert!(reaches(&one.netns, outside()));
    for tool in ["iptables-nft", "ip6tables-nft"] {
        lab.world.exec(&[tool, "-A", "NOMAD-ADMIN", "-o", "up0", "-j", "DROP"]);
    }
    assert!(!reaches(&one.netns, outside()), "the administrator says no");
    lab.firewall("DEL", &one, &keys).run().success();
    for rules in lab.rules() {
        assert!(rules.contains("-A NOMAD-ADMIN -o up0 -j DROP"), "{rules}");
        assert!(rules.contains("-j NOMAD-ADMIN"), "still asked: {rules}");
        assert!(!rules.contains("10.1.0.11"), "{rules}");
    }
    for tool in ["iptables-nft", "ip6tables-nft"] {
        lab.world.exec(&[tool, "-F", "NOMAD-ADMIN"]);
    }
    lab.del_blind(&one, &keys);
    for rules in lab.rules() {
        assert!(rules.contains("-N NOMAD-ADMIN") && !rules.contains("-A "), "{rules}");
    }
}

#[test]
fn status_says_whether_rules_can_be_made_and_makes_none() {
    let lab = Lab::new();
    let before = lab.world.snapshot();
    let config = json!({"cniVersion": "1.1.0", "name": "pods", "type": "firewall"});
    lab.world.plugin("firewall").command("STATUS").config(&config).run().success();
    let mut with_firewalld = config.clone();
    with_firewalld["backend"] = json!("firewalld");
    let status = lab.world.plugin("firewall").command("STATUS").config(with_firewalld);
    let error = status.run().error(50).to_string();
    assert!(error.contains("firewalld isn't running"), "{error}");
    lab.world.snapshot().since(&before).assert_empty();
}

#[test]
fn versions_are_at_least_those_of_the_go_plugin() {
    let lab = Lab::new();
    lab.bridge(1);
    let one = lab.container("c1", 1, 11);
    for version in ["0.4.0", "1.0.0", "1.1.0"] {
        let mut previous = one.prev_result.clone();
        previous["cniVersion"] = json!(version);
        if version == "0.4.0" {
            for (ip, family) in previous["ips"].as_array_mut().unwrap().iter_mut().zip(["4", "6"]) {
                ip["version"] = json!(family);
            }
        }
        let keys = json!({"cniVersion": version, "prevResult": previous});
        let output = lab.add(&one, &keys);
        for key in ["cniVersion", "interfaces", "ips"] {
            assert_eq!(output.json()[key], previous[key]);
        }
        lab.firewall("CHECK", &one, &keys).run().success();
        lab.firewall("DEL", &one, &keys).run().success();
    }
    let keys = json!({"prevResult": null});
    lab.firewall("ADD", &one, &keys).run().error(7);
    lab.assert_clean();
}
