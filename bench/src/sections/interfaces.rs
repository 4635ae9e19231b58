//! Each plugin that makes an interface, alone with its IPAM.

use serde_json::{Value, json};

use crate::Outcome;
use crate::bench::{Bench, Container, Pass, Place, State, bridge_name};
use crate::call::{VERSION, with, with_previous};
use crate::subject::Subject;

/// The parent of the macvlans.
const PARENT: &str = "parent0";

/// One kind of interface: what the plugins are given, and the floor.
struct Kind {
    name: &'static str,
    /// Keys of the configuration beside name, type and IPAM.
    keys: fn(Subject) -> Value,
    has_ipam: bool,
    /// The floor's arguments for ADD and DEL: container, and our number.
    floor: fn(&str) -> [Vec<String>; 2],
}

const KINDS: &[Kind] = &[
    Kind {
        name: "bridge",
        keys: |subject| json!({"bridge": bridge_name(subject), "isGateway": true}),
        has_ipam: true,
        floor: |netns| {
            let bridge = bridge_name(Subject::Floor);
            [
                words(&["bridge", netns, &bridge, "vfloor", "10.103.0.2/16", "10.103.0.1"]),
                words(&["unbridge", "vfloor", "10.103.0.2/16"]),
            ]
        },
    },
    Kind {
        name: "ptp",
        keys: |_| json!({}),
        has_ipam: true,
        floor: |netns| {
            [
                words(&["ptp", netns, "vfloor", "10.113.0.2/16", "10.113.0.1"]),
                words(&["unlink", "vfloor"]),
            ]
        },
    },
    Kind {
        name: "macvlan",
        keys: |_| json!({"master": PARENT}),
        has_ipam: true,
        floor: |netns| {
            [words(&["macvlan", netns, PARENT, "10.113.0.2/16"]), words(&["inside-unlink", netns])]
        },
    },
    Kind {
        name: "host-device",
        keys: |subject| json!({"device": format!("hd-{}", subject.word())}),
        has_ipam: true,
        floor: |netns| {
            [
                words(&["move", netns, "hd-floor", "10.113.0.2/16"]),
                words(&["return", netns, "hd-floor"]),
            ]
        },
    },
    Kind {
        name: "tap",
        keys: |_| json!({}),
        has_ipam: true,
        floor: |netns| [words(&["tap", netns, "10.113.0.2/16"]), words(&["inside-unlink", netns])],
    },
    Kind {
        name: "loopback",
        keys: |_| json!({}),
        has_ipam: false,
        floor: |netns| [words(&["loopback", netns]), Vec::new()],
    },
];

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

pub(super) fn run(bench: &mut Bench<'_>) -> Outcome {
    floor_bridge(bench);
    bench.world.exec(&["ip", "link", "add", PARENT, "type", "veth", "peer", "name", "parent1"]);
    bench.world.exec(&["ip", "link", "set", PARENT, "up"]);
    for kind in KINDS {
        let mut subjects = bench.subjects(&Subject::ALL);
        // It came with 1.4.
        subjects.retain(|subject| kind.name != "tap" || *subject != Subject::GoOld);
        bench.take(bench.turns(), &subjects, |bench, subject, pass| {
            life(bench, kind, subject, pass)
        })?;
    }
    bench.world.exec(&["ip", "link", "del", PARENT]);
    Ok(())
}

/// The bridge that the floor's interfaces go into.
pub(super) fn floor_bridge(bench: &Bench<'_>) {
    let bridge = bridge_name(Subject::Floor);
    bench.world.try_exec(&["ip", "link", "add", &bridge, "type", "bridge"]);
    bench.world.exec(&["ip", "addr", "replace", "10.103.0.1/16", "dev", &bridge]);
    bench.world.exec(&["ip", "link", "set", &bridge, "up"]);
}

fn life(bench: &mut Bench<'_>, kind: &Kind, subject: Subject, pass: Pass) -> Outcome {
    let container = bench.container(subject);
    let device = format!("hd-{}", subject.word());
    if kind.name == "host-device" {
        bench
            .world
            .exec(&["ip", "link", "add", &device, "type", "veth", "peer", "name", "hd-peer"]);
    }
    let outcome = match subject {
        Subject::Floor => floor_life(bench, kind, &container, pass),
        _ => plugin_life(bench, kind, subject, &container, pass),
    };
    if kind.name == "host-device" {
        bench.world.try_exec(&["ip", "link", "del", &device]);
    }
    bench.retire(container);
    outcome
}

fn floor_life(bench: &mut Bench<'_>, kind: &Kind, container: &Container, pass: Pass) -> Outcome {
    for (verb, arguments) in ["ADD", "DEL"].iter().zip((kind.floor)(&container.path)) {
        if !arguments.is_empty() {
            let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
            let place = Place::new("interfaces", format!("{} {verb}", kind.name));
            bench.measure(&place, Subject::Floor, pass, &bench.floor(&arguments))?;
        }
    }
    Ok(())
}

fn plugin_life(
    bench: &mut Bench<'_>,
    kind: &Kind,
    subject: Subject,
    container: &Container,
    pass: Pass,
) -> Outcome {
    let base = json!({"cniVersion": VERSION, "name": "bench", "type": kind.name});
    let mut config = with(&base, (kind.keys)(subject));
    if kind.has_ipam {
        let mut ipam = bench.ipam(State::Tmpfs, subject)?;
        if matches!(kind.name, "macvlan" | "host-device" | "tap")
            && let Some(ipam) = ipam.as_object_mut()
        {
            // No gateway lives behind these.
            ipam.remove("routes");
        }
        config = with(&config, json!({"ipam": ipam}));
    }
    let ifname = if kind.name == "loopback" { "lo" } else { "eth0" };
    let mut measure = |verb: &str, config: &Value| {
        let call = bench.plugin(subject, verb, container.interface(ifname), config)?;
        let place = Place::new("interfaces", format!("{} {verb}", kind.name));
        bench.measure(&place, subject, pass, &call)
    };
    let result = measure("ADD", &config)?;
    let config = with_previous(&config, &result)?;
    measure("CHECK", &config)?;
    measure("DEL", &config).map(drop)
}

/// The bridge with masquerade.
pub(super) fn masquerade(bench: &mut Bench<'_>) -> Outcome {
    floor_bridge(bench);
    bench.floor(&["prepare"]).run(Pass::Warm)?;
    let subjects = bench.subjects(&Subject::ALL);
    bench.take(bench.turns(), &subjects, |bench, subject, pass| {
        let container = bench.container(subject);
        let outcome = masquerade_life(bench, subject, &container, pass);
        bench.retire(container);
        outcome
    })
}

fn masquerade_life(
    bench: &mut Bench<'_>,
    subject: Subject,
    container: &Container,
    pass: Pass,
) -> Outcome {
    let place = |verb: &str| Place::new("masquerade", format!("bridge with masquerade {verb}"));
    if subject == Subject::Floor {
        let bridge = bridge_name(subject);
        let (address, gateway) = ("10.103.0.2/16", "10.103.0.1");
        let add = ["bridge", &container.path, &bridge, "vfloor", address, gateway, "masquerade"];
        bench.measure(&place("ADD"), subject, pass, &bench.floor(&add))?;
        let del = ["unbridge", "vfloor", address, "masquerade"];
        return bench.measure(&place("DEL"), subject, pass, &bench.floor(&del)).map(drop);
    }
    let config = bench.bridge(State::Tmpfs, subject, true)?;
    let call = bench.plugin(subject, "ADD", container.target(), &config)?;
    let result = bench.measure(&place("ADD"), subject, pass, &call)?;
    let config = with_previous(&config, &result)?;
    for verb in ["CHECK", "DEL"] {
        let call = bench.plugin(subject, verb, container.target(), &config)?;
        bench.measure(&place(verb), subject, pass, &call)?;
    }
    Ok(())
}
