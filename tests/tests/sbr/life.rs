//! Rules and tables over an attachment's life.

use podwire_testkit::Refusal;
use serde_json::{Value, json};

use crate::lab::Lab;

#[test]
fn b113_each_address_has_a_rule_and_a_table_of_its_own() {
    let lab = Lab::new();
    // Table 100 is somebody's, without a rule (4).
    lab.container.exec(&["ip", "route", "add", "10.99.0.0/24", "dev", "net2", "table", "100"]);
    let main = lab.routes("main");
    let output = lab.add(1, &json!({}));
    assert_eq!(output.json(), lab.prev_result(1));
    // /128, not the subnet (3).
    assert_eq!(lab.rules(), ["10.1.0.2 lookup 101", "fd00:1::2 lookup 102"]);
    assert_eq!(lab.routes("101"), ["10.1.0.0/24 dev net1", "default via 10.1.0.1 dev net1"]);
    assert_eq!(lab.routes("102"), ["default via fd00:1::1 dev net1", "fd00:1::/64 dev net1"]);
    let others: Vec<_> = main.iter().filter(|route| !route.ends_with("net1")).cloned().collect();
    assert_eq!(lab.routes("main"), others);
    let state = lab.container.snapshot();
    lab.add(1, &json!({}));
    lab.container.snapshot().since(&state).assert_empty();
    // A second attachment of the namespace (6).
    lab.add(2, &json!({}));
    assert_eq!(lab.rules().len(), 4);
    assert_eq!(lab.routes("103"), ["10.2.0.0/24 dev net2", "default via 10.2.0.1 dev net2"]);
    for number in [1, 2] {
        lab.sbr("CHECK", number, &json!({})).run().success();
    }
    // Rules and tables go (5), the other's stay.
    lab.sbr("DEL", 1, &json!({})).run().success();
    lab.sbr("DEL", 1, &json!({})).run().success();
    assert_eq!(lab.rules(), ["10.2.0.2 lookup 103", "fd00:2::2 lookup 104"]);
    assert!(lab.routes("101").is_empty() && lab.routes("102").is_empty());
    assert_eq!(lab.routes("100"), ["10.99.0.0/24 dev net2"]);
    lab.sbr("CHECK", 2, &json!({})).run().success();
}

#[test]
fn b113_two_addresses_of_a_family_have_a_table_each_and_no_gateway_is_no_default() {
    let lab = Lab::new();
    lab.container.exec(&["ip", "addr", "add", "10.3.0.2/24", "dev", "net1"]);
    let mut previous = lab.prev_result(1);
    previous["ips"] = json!([
        {"address": "10.1.0.2/24", "gateway": "10.1.0.1", "interface": 0},
        {"address": "10.3.0.2/24"}
    ]);
    lab.add(1, &json!({"prevResult": previous}));
    assert_eq!(lab.rules(), ["10.1.0.2 lookup 100", "10.3.0.2 lookup 101"]);
    assert_eq!(lab.routes("100"), ["10.1.0.0/24 dev net1", "default via 10.1.0.1 dev net1"]);
    assert_eq!(lab.routes("101"), ["10.3.0.0/24 dev net1"]);
    lab.sbr("CHECK", 1, &json!({"prevResult": previous})).run().success();
    // A configured gateway stands in (1).
    lab.sbr("DEL", 1, &json!({"prevResult": previous})).run().success();
    assert!(lab.rules().is_empty());
    let keys = json!({"prevResult": previous, "gateways": ["10.1.0.254"]});
    let lab = Lab::new();
    lab.container.exec(&["ip", "addr", "add", "10.3.0.2/24", "dev", "net1"]);
    lab.add(1, &keys);
    assert!(lab.routes("100").contains(&"default via 10.1.0.254 dev net1".to_owned()));
    lab.sbr("CHECK", 1, &keys).run().success();
    let other = json!({"prevResult": previous, "gateways": ["10.1.0.253"]});
    let error = lab.sbr("CHECK", 1, &other).run().error(100).to_string();
    assert!(error.contains("10.1.0.253"), "{error}");
}

#[test]
fn a_table_of_the_configuration_gets_rules_only() {
    let lab = Lab::new();
    let main = lab.routes("main");
    let keys = json!({"table": 4242, "gateways": ["10.1.0.9"]});
    lab.add(1, &keys);
    lab.add(1, &keys);
    assert_eq!(lab.rules(), ["10.1.0.2 lookup 4242", "fd00:1::2 lookup 4242"]);
    assert_eq!(lab.routes("main"), main);
    assert!(lab.routes("4242").is_empty());
    lab.sbr("CHECK", 1, &keys).run().success();
    let error = lab.sbr("CHECK", 1, &json!({"table": 77})).run().error(100).to_string();
    assert!(error.contains("10.1.0.2/32 to table 77"), "{error}");
    lab.container.exec(&["ip", "rule", "add", "from", "10.1.0.2", "lookup", "500"]);
    lab.sbr("DEL", 1, &keys).run().success();
    assert_eq!(lab.rules(), ["10.1.0.2 lookup 500"], "another table's");
}

#[test]
fn b113_check_names_what_is_missing() {
    let breakages: [(&[&str], &str); 3] = [
        (&["ip", "rule", "del", "from", "10.1.0.2"], "routing rule for packets from 10.1.0.2/32"),
        (&["ip", "route", "del", "default", "table", "100"], "default route via 10.1.0.1"),
        (&["ip", "-6", "route", "del", "fd00:1::/64", "table", "101"], "route to fd00:1::/64"),
    ];
    for (command, expected) in breakages {
        std::thread::spawn(move || {
            let lab = Lab::new();
            lab.add(1, &json!({}));
            lab.sbr("CHECK", 1, &json!({})).run().success();
            lab.container.exec(command);
            let error = lab.sbr("CHECK", 1, &json!({})).run().error(100).to_string();
            assert!(error.contains(expected), "{error}");
        })
        .join()
        .unwrap();
    }
}

#[test]
fn del_without_a_namespace_succeeds_and_makes_no_file() {
    let lab = Lab::new();
    lab.add(1, &json!({}));
    lab.sbr("DEL", 1, &json!({})).env("CNI_NETNS", "").run().success();
    lab.sbr("DEL", 1, &json!({})).without_env("CNI_NETNS").run().success();
    assert_eq!(lab.rules().len(), 2);
    let path = "/run/netns/never";
    lab.sbr("DEL", 1, &json!({})).env("CNI_NETNS", path).run().success();
    assert!(!std::path::Path::new(path).exists());
    // What a broken plugin has left counts as gone.
    std::fs::write(path, "").unwrap();
    lab.sbr("DEL", 1, &json!({})).env("CNI_NETNS", path).run().success();
    // The interface is gone: prevResult still names the addresses.
    lab.container.exec(&["ip", "link", "del", "net1"]);
    lab.sbr("DEL", 1, &json!({})).run().success();
    assert!(lab.rules().is_empty());
    lab.sbr("DEL", 2, &json!({"prevResult": null, "table": "x"})).run().success();
}

/// Another container has the namespace's path, the interface's name and even
/// the address by now.
#[test]
fn a_strangers_rules_stay() {
    let lab = Lab::new();
    lab.add(1, &json!({}));
    let state = lab.container.snapshot();
    let mut previous = lab.prev_result(1);
    previous["interfaces"][0]["mac"] = json!("02:00:00:00:00:99");
    lab.sbr("DEL", 1, &json!({"prevResult": previous})).run().success();
    lab.sbr("DEL", 1, &json!({"prevResult": null})).run().success();
    lab.container.snapshot().since(&state).assert_empty();
    let mac = lab.container.ip_json(&["link", "show", "dev", "net1"])[0]["address"].clone();
    previous["interfaces"][0]["mac"] = mac;
    // Interfaces on one ipvlan master have the same MAC address.
    let mut alike = previous.clone();
    alike["ips"] = json!([{"address": "10.1.0.77/24", "gateway": "10.1.0.1", "interface": 0}]);
    lab.sbr("DEL", 1, &json!({"prevResult": alike})).run().success();
    lab.container.snapshot().since(&state).assert_empty();
    lab.sbr("DEL", 1, &json!({"prevResult": previous})).run().success();
    assert!(lab.rules().is_empty());
}

#[test]
fn a_failed_add_leaves_everything_as_it_was() {
    let lab = Lab::new();
    let before = lab.container.snapshot();
    let mut refused = 0;
    for number in 1.. {
        let call = lab.sbr("ADD", 1, &json!({})).refuse_at(number, Refusal::Answered(12));
        if !call.was_refused {
            assert_eq!(call.output.code, 0, "{:#?}", call.output);
            break;
        }
        refused += 1;
        if call.output.code != 0 {
            lab.container.snapshot().since(&before).assert_empty();
        }
        lab.sbr("DEL", 1, &json!({})).run().success();
        lab.restore_main();
        lab.container.snapshot().since(&before).assert_empty();
    }
    assert!(refused > 10, "{refused}");
    lab.sbr("DEL", 1, &json!({})).run().success();
    lab.restore_main();
    let wrong: [(Value, &str); 4] = [
        (json!({"prevResult": null}), "prevResult"),
        (json!({"prevResult": {"cniVersion": "1.0.0", "ips": []}}), "address"),
        (json!({"gateways": ["10.1.0.1", "10.1.0.3"]}), "multiple IPv4"),
        (json!({"gateways": ["nowhere"]}), "nowhere"),
    ];
    for (keys, expected) in wrong {
        let error = lab.sbr("ADD", 1, &keys).run().error(7).to_string();
        assert!(error.contains(expected), "{error}");
    }
    lab.container.snapshot().since(&before).assert_empty();
}

#[test]
fn every_version_and_operation_is_served() {
    for version in ["0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        std::thread::spawn(move || {
            let lab = Lab::new();
            let mut previous = lab.prev_result(1);
            previous["cniVersion"] = json!(version);
            if version < "1.0.0" {
                for (ip, family) in
                    previous["ips"].as_array_mut().unwrap().iter_mut().zip(["4", "6"])
                {
                    ip["version"] = json!(family);
                }
            }
            let keys = json!({"cniVersion": version, "prevResult": previous});
            lab.add(1, &keys);
            if version != "0.3.1" {
                lab.sbr("CHECK", 1, &keys).run().success();
            }
            if version == "1.1.0" {
                let mut keys = keys.clone();
                keys["cni.dev/valid-attachments"] = json!([]);
                lab.sbr("STATUS", 1, &keys).run().success();
                lab.sbr("GC", 1, &keys).run().success();
                assert_eq!(lab.rules().len(), 2, "all goes with the namespace");
            }
            lab.sbr("DEL", 1, &keys).run().success();
            assert!(lab.rules().is_empty());
        })
        .join()
        .unwrap();
    }
}

/// GC has removed the interface, the result is lost: what is left leads nowhere and goes;
/// of rules that somebody may still mean nothing does.
#[test]
fn b113_rules_that_lead_nowhere_go_without_result_and_interface() {
    let lab = Lab::new();
    lab.add(1, &json!({}));
    lab.add(2, &json!({}));
    let add = |rule: &str| lab.container.exec(&rule.split(' ').collect::<Vec<_>>());
    add("ip rule add from 10.7.0.2 lookup 170");
    add("ip route add 10.7.0.0/24 dev net2 table 170");
    add("ip rule add from 10.8.0.0/24 lookup 180");
    add("ip link del net1");
    lab.sbr("DEL", 1, &json!({"prevResult": null})).run().success();
    assert_eq!(
        lab.rules(),
        [
            "10.2.0.2 lookup 102",
            "10.7.0.2 lookup 170",
            "10.8.0.0/24 lookup 180",
            "fd00:2::2 lookup 103"
        ]
    );
    lab.sbr("CHECK", 2, &json!({})).run().success();
}
