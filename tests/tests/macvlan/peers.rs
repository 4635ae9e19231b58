//! Beside the Go plugin: the same requests, and taking over what it attached.

use podwire_testkit::GoPlugins;
use podwire_testkit::probe::{ANSWER, ping};
use podwire_tests::differential::{Scenario, only_intended};
use podwire_tests::segment::{Segment, config, is_empty, prepared};
use serde_json::{Value, json};

fn scenario(name: &str, more: &Value) -> Scenario {
    let mut config = config("macvlan", &json!({"master": "up0"}));
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    let host =
        &["ip link add up0 type veth peer name far0", "ip link set up0 up", "ip link set far0 up"];
    Scenario { name: name.to_owned(), plugin: "macvlan", config, args: "", host, refused: None }
}

fn dual_stack() -> Value {
    json!({
        "type": "host-local",
        "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd01::/64"}]],
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}, {"dst": "10.9.0.0/16", "gw": "10.1.0.7"}],
    })
}

#[test]
fn results_and_state_are_those_of_go() {
    only_intended(&[
        scenario("macvlan private", &json!({"mode": "private"})),
        scenario("macvlan vepa", &json!({"ipam": dual_stack(), "mtu": 1400, "mode": "vepa"})),
        scenario("macvlan passthru", &json!({"mode": "passthru", "bcqueuelen": 2000})),
        scenario("macvlan layer 2", &json!({"ipam": {}})),
        scenario(
            "macvlan of IPAM's DNS",
            &json!({"ipam": {
                "type": "static", "addresses": [{"address": "10.1.0.9/24"}],
                "dns": {"nameservers": ["10.1.0.53"]},
            }}),
        ),
        scenario(
            "macvlan mac",
            &json!({
                "runtimeConfig": {"mac": "02:00:5e:10:00:01"},
                "dns": {"nameservers": ["10.1.0.53"]},
            }),
        ),
    ]);
}

/// What the Go plugins attached is checked and deleted by ours.
#[test]
fn attachments_of_go_are_taken_over() {
    let segment = Segment::new();
    for (plugins, versions) in [
        (GoPlugins::debian(), &["0.3.1", "0.4.0", "1.0.0"][..]),
        (GoPlugins::sid(), &["0.3.1", "0.4.0", "1.1.0"]),
    ] {
        for version in versions {
            let config = config("macvlan", &json!({"master": "up0", "cniVersion": version}));
            segment.is_taken_over(&plugins, &config, |container| {
                ping(container, [10, 1, 0, 254], ANSWER).unwrap();
            });
        }
    }
}

/// And the other way round.
#[test]
fn attachments_of_ours_are_deleted_by_go() {
    let segment = Segment::new();
    let go = GoPlugins::sid();
    let container = segment.container("c1");
    let config = config("macvlan", &json!({"master": "up0"}));
    let checked = segment.add(&config, &container);
    for verb in ["CHECK", "DEL"] {
        prepared(go.plugin("macvlan"), verb, &checked, &container).run().success();
    }
    assert!(is_empty(&container));
    assert_eq!(segment.reserved("pods"), [""; 0]);
}
