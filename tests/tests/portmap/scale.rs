//! The cost of a call doesn't grow with the mappings of others, and many
//! calls at once do no harm.

use std::fmt::Write as _;

use podwire_testkit::Plugin;
use podwire_testkit::kill::Killed;
use serde_json::{Value, json};

use crate::lab::{HOST, Lab, tcp, tcp_seen};

/// How many system calls a call makes: each netlink message is two or three.
#[track_caller]
fn cost(plugin: Plugin) -> u64 {
    match plugin.kill_at(u64::MAX) {
        Killed::Finished { calls, output } => {
            output.success();
            calls
        }
        Killed::At { call, .. } => panic!("killed at {call}"),
    }
}

/// Mappings of others, straight into the maps.
fn crowd(lab: &Lab, count: u32) {
    let mut script = String::new();
    for number in 0..count {
        let (port, host) = (20_000 + number, number % 250 + 1);
        for (family, address) in
            [("ip", format!("10.9.0.{host}")), ("ip6", format!("fd00:9::{host}"))]
        {
            writeln!(
                script,
                "add element {family} podwire_hostports ports {{ udp . {port} comment \
                 \"0000000000000000-{number:016x} others/c{number}/eth0\" : {address} . 80 }}\n\
                 add element {family} podwire_hostports owners {{ 0:0:0:0:0:0:{:x}:{:x} . 0 comment \
                 \"1 others/c{number}/eth0 to={address} udp:{port}:80\" : goto hostports }}",
                number >> 16,
                number & 0xffff
            )
            .unwrap();
        }
    }
    let script = lab.world.write("crowd.nft", script);
    lab.world.exec(&["nft", "-f", script.to_str().unwrap()]);
}

#[test]
fn a_call_costs_the_same_beside_ten_thousand_mappings() {
    let lab = Lab::new();
    let (c1, c2) = (lab.container("c1", 11), lab.container("c2", 12));
    let mappings = json!([
        {"hostPort": 8080, "containerPort": 80, "protocol": "tcp"},
        {"hostPort": 8443, "containerPort": 443, "protocol": "tcp"}
    ]);
    let config: Value = json!({"runtimeConfig": {"portMappings": mappings}});
    // The first ADD makes the tables, too.
    lab.add(&c2, &tcp(9999, 80)).success();
    let all = || ["ADD", "CHECK", "DEL"].map(|verb| cost(lab.portmap(verb, &c1, &config)));
    let alone = all();
    crowd(&lab, 10_000);
    let crowded = all();
    for (verb, (alone, crowded)) in ["ADD", "CHECK", "DEL"].iter().zip(alone.iter().zip(crowded)) {
        // The kernel's own noise: where memory lies, whether a wait was needed.
        assert!(crowded <= alone + 10, "{verb}: {alone} system calls alone, {crowded} crowded");
    }
    lab.add(&c1, &mappings).success();
    lab.check(&c1, &mappings).success();
}

#[test]
fn fifty_mappings_and_more_are_one_call() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let _servers = c1.tcp(80);
    let mappings: Vec<_> = (1..=1000)
        .map(|number| json!({"hostPort": 10_000 + number, "containerPort": 80, "protocol": "tcp"}))
        .collect();
    let mappings = json!(mappings);
    lab.add(&c1, &mappings).success();
    for port in [10_001, 10_500, 11_000] {
        tcp_seen(&lab.outside, HOST[0], port);
        tcp_seen(&c1.netns, HOST[1], port);
    }
    lab.check(&c1, &mappings).success();
    lab.del(&c1).success();
    assert!(!lab.mentions("c1"), "something is left");
}

/// Tables made by all at once, ports taken and given back: nobody fails,
/// nothing is there twice, nothing is left.
#[test]
fn many_calls_at_once_neither_fail_nor_leave_anything() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let calls = |verb: &str| {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..40)
                .map(|number: u16| {
                    let config = json!({"runtimeConfig": {"portMappings": tcp(8000 + number, 80)}});
                    let id = format!("many{number}");
                    let plugin = lab.portmap(verb, &c1, &config).container(&id);
                    scope.spawn(move || plugin.run().success())
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
        });
    };
    calls("ADD");
    let ruleset = lab.ruleset();
    assert_eq!(ruleset.matches("fib daddr type local jump hostports").count(), 4, "{ruleset}");
    assert_eq!(ruleset.matches("10.1.0.0/24 masquerade").count(), 1, "{ruleset}");
    calls("CHECK");
    calls("DEL");
    let left = lab.ruleset();
    assert!(!left.contains("many"), "{left}");
}

/// Killed at any system call of an ADD or a DEL: one transaction is there or
/// it isn't, and a DEL or a collection leaves nothing.
#[test]
fn a_killed_call_leaves_nothing_that_del_or_gc_does_not_find() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let config = json!({"runtimeConfig": {"portMappings": tcp(8080, 80)}});
    let call = |verb: &str| lab.portmap(verb, &c1, &config);
    let mut places = 0;
    for verb in ["ADD", "DEL"] {
        for number in 1.. {
            if verb == "DEL" {
                call("ADD").run().success();
            }
            let killed = call(verb).kill_at(number).is_killed();
            if number % 2 == 0 {
                lab.del(&c1).success();
            } else {
                lab.gc(&[]).success();
            }
            let left = lab.ruleset();
            assert!(!left.contains("8080") && !left.contains("c1"), "{verb} {number}: {left}");
            if !killed {
                break;
            }
            places += 1;
        }
    }
    assert!(places > 100, "{places} places to be killed at");
}

/// Many want the same port at once: one gets it, the others are told who.
#[test]
fn of_many_that_want_one_port_one_gets_it() {
    let lab = Lab::new();
    let c1 = lab.container("c1", 11);
    let c2 = lab.container("c2", 12);
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..12)
            .map(|number: u16| {
                let container = if number.is_multiple_of(2) { &c1 } else { &c2 };
                let config = json!({"runtimeConfig": {"portMappings": tcp(8080, 80)}});
                let plugin = lab.portmap("ADD", container, &config);
                scope.spawn(move || plugin.run())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let won = outcomes.iter().filter(|outcome| outcome.code == 0).count();
    // All of one container's calls are the same attachment's.
    assert_eq!(won, 6, "{outcomes:#?}");
    for lost in outcomes.iter().filter(|outcome| outcome.code != 0) {
        lost.error(101);
    }
}
