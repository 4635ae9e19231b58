//! Conditions hold for their own network, in the words of either tool.

use serde_json::{Value, json};

use crate::lab::{HOST, Lab, OUTSIDE, tcp, tcp_refused, tcp_seen};

fn config(network: &str, conditions: &Value, mappings: &Value) -> Value {
    json!({
        "name": network, "backend": "iptables", "conditionsV4": conditions,
        "runtimeConfig": {"portMappings": mappings}
    })
}

#[test]
fn b122_conditions_let_in_whom_they_say_in_either_language() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let _servers = c1.tcp(80);
    for (conditions, outside) in [
        (json!(["-s", "192.0.2.0/24"]), true),
        (json!(["!", "-s", "192.0.2.0/24"]), false),
        (json!(["ip", "saddr", "!=", "192.0.2.0/24"]), false),
        (json!(["ip saddr { 198.51.100.1, 192.0.2.2 }"]), true),
        (json!(["-i", "up+"]), true),
        (json!(["!", "-i", "up0"]), false),
        (json!(["iifname", "up0", "ip", "daddr", "192.0.2.1"]), true),
        (json!(["-d", "10.1.0.1"]), false),
    ] {
        let config = config("pods", &conditions, &tcp(8080, 80));
        lab.portmap("ADD", &c1, &config).run().success();
        if outside {
            assert_eq!(tcp_seen(&lab.outside, HOST[0], 8080).to_string(), OUTSIDE[0]);
        } else {
            tcp_refused(&lab.outside, HOST[0], 8080);
        }
        // IPv6 has none.
        tcp_seen(&lab.outside, HOST[1], 8080);
        lab.portmap("CHECK", &c1, &config).run().success();
        lab.portmap("DEL", &c1, &config).run().success();
        tcp_refused(&lab.outside, HOST[1], 8080);
        assert!(!lab.mentions("c1"), "{}", lab.ruleset());
    }
}

/// In the Go plugin's tables the network that came last decides for all.
#[test]
fn one_networks_conditions_are_nothing_to_another() {
    let lab = Lab::new();
    let (c1, c2, c3) = (lab.container("c1", 11), lab.container("c2", 12), lab.container("c3", 13));
    let _servers = (c1.tcp(80), c2.tcp(80), c3.tcp(80));
    let open = config("open", &json!(["-s", "192.0.2.2"]), &tcp(8081, 80));
    let closed = config("closed", &json!(["!", "-s", "192.0.2.2"]), &tcp(8082, 80));
    lab.portmap("ADD", &c1, &open).run().success();
    lab.portmap("ADD", &c2, &closed).run().success();
    lab.add(&c3, &tcp(8083, 80)).success();
    for _ in 0..2 {
        tcp_seen(&lab.outside, HOST[0], 8081);
        tcp_refused(&lab.outside, HOST[0], 8082);
        tcp_seen(&lab.outside, HOST[0], 8083);
        tcp_seen(lab.world.host(), HOST[0], 8082);
        lab.portmap("ADD", &c1, &open).run().success();
    }
    let collect = json!({
        "cniVersion": "1.1.0", "name": "closed", "type": "portmap",
        "cni.dev/valid-attachments": []
    });
    lab.world.plugin("portmap").command("GC").config(collect).run().success();
    let ruleset = lab.ruleset();
    assert!(!ruleset.contains("8082") && !ruleset.contains("of closed"), "{ruleset}");
    assert!(ruleset.contains("of open"), "{ruleset}");
    tcp_seen(&lab.outside, HOST[0], 8081);
}

#[test]
fn changed_conditions_hold_from_the_next_add_and_check_sees_the_change() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let _servers = c1.tcp(80);
    let with = |conditions| config("pods", &conditions, &tcp(8080, 80));
    let (before, after) = (with(json!(["-s", "192.0.2.2"])), with(json!(["!", "-s", "192.0.2.2"])));
    lab.portmap("ADD", &c1, &before).run().success();
    tcp_seen(&lab.outside, HOST[0], 8080);
    let error = lab.portmap("CHECK", &c1, &after).run().error(100);
    assert!(error.to_string().contains("conditions"), "{error}");
    lab.portmap("ADD", &c1, &after).run().success();
    tcp_refused(&lab.outside, HOST[0], 8080);
    lab.portmap("CHECK", &c1, &after).run().success();
}

#[test]
fn b122_what_can_not_be_translated_is_named_and_changes_nothing() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let unknown = config("pods", &json!(["-m", "set", "--match-set", "x", "src"]), &tcp(8080, 80));
    let error = lab.portmap("ADD", &c1, &unknown).run().error(7);
    assert!(error.to_string().contains("conditionsV4"), "{error}");
    assert!(error.to_string().contains("-m set"), "{error}");
    assert_eq!(lab.ruleset(), "");
}
