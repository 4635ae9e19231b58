//! The last mapping of the host takes along what all shared, and whoever comes
//! meanwhile has it all the same.

use std::sync::Barrier;

use serde_json::{Value, json};

use crate::lab::{Container, HOST, Lab, tcp, tcp_seen};

/// These calls at the same time; all succeed.
#[track_caller]
fn at_once(lab: &Lab, calls: &[(&str, &Container, String, u16)]) {
    let start = Barrier::new(calls.len());
    std::thread::scope(|scope| {
        for (verb, container, id, port) in calls {
            let config = json!({"runtimeConfig": {"portMappings": tcp(*port, 80)}});
            let plugin = lab.portmap(verb, container, &config).container(id);
            let start = &start;
            scope.spawn(move || {
                start.wait();
                plugin.run().success()
            });
        }
    });
}

/// With every way to masquerade, and conditions of a network.
fn ways() -> [Value; 5] {
    [
        json!({}),
        json!({"snat": false}),
        json!({"masqAll": true}),
        json!({"conditionsV4": ["-i", "up0"], "conditionsV6": ["-i", "up0"]}),
        json!({"conditionsV4": ["-i", "up0"], "snat": false}),
    ]
}

fn with(keys: &Value, port: u16) -> Value {
    let mut config = keys.clone();
    config["runtimeConfig"] = json!({"portMappings": tcp(port, 80)});
    config
}

#[test]
fn the_last_del_leaves_nothing() {
    let lab = Lab::new();
    let (c1, c2) = (lab.container("c1", 11), lab.container("c2", 12));
    let _servers = c1.tcp(80);
    for keys in ways() {
        for other in ways() {
            let (first, mut second) = (with(&keys, 8080), with(&other, 8081));
            second["name"] = json!("other");
            lab.portmap("ADD", &c1, &first).run().success();
            lab.portmap("ADD", &c2, &second).run().success();
            lab.portmap("DEL", &c2, &second).run().success();
            tcp_seen(&lab.outside, HOST[0], 8080);
            tcp_seen(&lab.outside, HOST[1], 8080);
            lab.portmap("CHECK", &c1, &first).run().success();
            lab.portmap("DEL", &c1, &first).run().success();
            assert_eq!(lab.ruleset(), "", "after {first} and {second}");
        }
    }
}

/// A network's conditions go with its last mapping, and a second ADD that needs
/// less leaves nothing of what the first one needed.
#[test]
fn what_one_way_needed_goes_with_it() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let c2 = lab.container("c2", 12);
    let _servers = c1.tcp(80);
    lab.portmap("ADD", &c2, &with(&json!({"name": "other", "masqAll": true}), 8081))
        .run()
        .success();
    let before = lab.ruleset();
    for keys in ways() {
        for next in ways() {
            for keys in [&keys, &next] {
                let config = with(keys, 8080);
                lab.portmap("ADD", &c1, &config).run().success();
                lab.portmap("CHECK", &c1, &config).run().success();
                tcp_seen(&lab.outside, HOST[0], 8080);
            }
            lab.del(&c1).success();
            assert_eq!(lab.ruleset(), before, "after {keys} and {next}");
        }
    }
    // The same by garbage collection.
    lab.portmap("ADD", &c1, &with(&ways()[3], 8080)).run().success();
    lab.gc(&[]).success();
    assert_eq!(lab.ruleset(), before);
}

#[test]
fn an_add_that_meets_the_last_del_has_its_rules() {
    let lab = Lab::new();
    let containers = [lab.container("c1", 11), lab.container("c2", 12)];
    let _servers = containers.each_ref().map(|container| container.tcp(80));
    at_once(&lab, &[("ADD", &containers[0], "c1".to_owned(), 8080)]);
    for round in 0..100 {
        let (leaving, coming) = (round % 2, (round + 1) % 2);
        let (old, new) = (&containers[leaving], &containers[coming]);
        let port = |index: usize| [8080, 8081][index];
        at_once(
            &lab,
            &[
                ("DEL", old, format!("c{}", leaving + 1), port(leaving)),
                ("ADD", new, format!("c{}", coming + 1), port(coming)),
            ],
        );
        tcp_seen(&lab.outside, HOST[round / 2 % 2], port(coming));
        lab.check(new, &tcp(port(coming), 80)).success();
    }
    lab.del(&containers[0]).success();
    assert_eq!(lab.ruleset(), "");
}

#[test]
fn an_add_among_fifty_that_leave_has_its_rules() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let _servers = c1.tcp(80);
    let crowd = |verb: &'static str| {
        (0..50).map(move |number| (verb, format!("many{number}"), 8000 + number))
    };
    for _ in 0..2 {
        let calls: Vec<_> = crowd("ADD").map(|(verb, id, port)| (verb, &c1, id, port)).collect();
        at_once(&lab, &calls);
        let mut calls: Vec<_> =
            crowd("DEL").map(|(verb, id, port)| (verb, &c1, id, port)).collect();
        calls.push(("ADD", &c1, "c1".to_owned(), 9090));
        at_once(&lab, &calls);
        tcp_seen(&lab.outside, HOST[0], 9090);
        tcp_seen(&lab.outside, HOST[1], 9090);
        lab.check(&c1, &tcp(9090, 80)).success();
        lab.del(&c1).success();
        assert_eq!(lab.ruleset(), "");
    }
}
