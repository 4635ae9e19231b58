//! Answers leave by the interface that the question came in by.

use std::net::IpAddr;
use std::time::Duration;

use podwire_testkit::Netns;
use podwire_testkit::probe::ping;
use serde_json::json;

use crate::lab::Lab;

/// Whether a host behind a router reaches an address of the container.
fn reaches(from: &Netns, to: &str) -> bool {
    ping(from, to.parse::<IpAddr>().unwrap(), Duration::from_millis(600)).is_ok()
}

/// Gives each router an address that nobody else has a route to, as the source
/// of what it sends to the container.
fn distant_sources(lab: &Lab) {
    for (number, router) in [1, 2].into_iter().zip(&lab.routers) {
        for (address, subnet) in [
            (format!("192.0.2.{number}"), format!("10.{number}.0.0/24")),
            (format!("2001:db8::{number}"), format!("fd00:{number}::/64")),
        ] {
            let nodad: &[&str] = if address.contains(':') { &["nodad"] } else { &[] };
            let add = ["ip", "addr", "add", &address, "dev", "eth0"];
            router.exec(&[&add[..], nodad].concat());
            router.exec(&["ip", "route", "replace", &subnet, "dev", "eth0", "src", &address]);
        }
    }
}

#[test]
fn b113_answers_leave_by_the_right_interface() {
    let lab = Lab::new();
    distant_sources(&lab);
    let [first, second] = &lab.routers;
    assert!(reaches(second, "10.2.0.2") && reaches(second, "fd00:2::2"));
    assert!(!reaches(first, "10.1.0.2"), "the answer goes to the other router");
    lab.add(1, &json!({}));
    assert!(reaches(first, "10.1.0.2") && reaches(first, "fd00:1::2"));
    assert!(reaches(second, "10.2.0.2"), "independent of the other interface");
    lab.add(2, &json!({}));
    assert!(reaches(first, "10.1.0.2") && reaches(first, "fd00:1::2"));
    assert!(reaches(second, "10.2.0.2") && reaches(second, "fd00:2::2"));
    lab.sbr("DEL", 2, &json!({})).run().success();
    assert!(reaches(first, "10.1.0.2") && reaches(first, "fd00:1::2"));
}

#[test]
fn source_hints_let_packets_without_a_source_reach_the_link() {
    let neighbour: IpAddr = "10.1.0.1".parse().unwrap();
    let answer = Duration::from_secs(5);
    let lab = Lab::new();
    lab.add(1, &json!({}));
    assert!(!lab.routes("main").iter().any(|route| route.ends_with("net1")));
    lab.sbr("DEL", 1, &json!({})).run().success();

    let lab = Lab::new();
    lab.add(1, &json!({"addSourceHints": true}));
    ping(&lab.container, neighbour, answer).unwrap();
    ping(&lab.container, "fd00:1::1".parse::<IpAddr>().unwrap(), answer).unwrap();
    let main = lab.container.exec(&["ip", "-6", "route", "show", "table", "main"]).stdout;
    assert!(main.contains("fd00:1::/64 dev net1 src fd00:1::2"), "{main}");
    lab.sbr("CHECK", 1, &json!({"addSourceHints": true})).run().success();
}
