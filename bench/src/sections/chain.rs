//! bridge, portmap, bandwidth and tuning, executed one after the other.

use serde_json::{Value, json};

use super::{interfaces, portmap, tolerate};
use crate::Outcome;
use crate::bench::{Bench, Container, Pass, Place, State, bridge_name};
use crate::call::{Run, VERSION, with_previous};
use crate::subject::Subject;

pub(super) fn run(bench: &mut Bench<'_>) -> Outcome {
    interfaces::floor_bridge(bench);
    bench.floor(&["prepare"]).run(Pass::Warm)?;
    let subjects = bench.subjects(&Subject::ALL);
    bench.take(bench.turns(), &subjects, |bench, subject, pass| {
        let container = bench.container(subject);
        let outcome = match subject {
            Subject::Floor => floor(bench, &container, pass),
            _ => plugins(bench, subject, &container, pass),
        };
        bench.retire(container);
        outcome
    })
}

fn place(verb: &str) -> Place {
    Place::new("chain", format!("chain {verb}"))
}

/// The three plugins behind the bridge, with their own keys.
pub(super) fn chained() -> [Value; 3] {
    [
        json!({"type": "portmap", "capabilities": {"portMappings": true}}),
        json!({
            "type": "bandwidth", "ingressRate": 80_000_000, "ingressBurst": 800_000,
            "egressRate": 80_000_000, "egressBurst": 800_000
        }),
        json!({"type": "tuning", "sysctl": {"net.core.somaxconn": "500"}, "mtu": 1400}),
    ]
}

fn plugins(bench: &mut Bench<'_>, subject: Subject, container: &Container, pass: Pass) -> Outcome {
    let tuning_data = bench.directory(State::Tmpfs, subject, "tuning")?;
    let mut configs = vec![bench.bridge(State::Tmpfs, subject, false)?];
    let mappings = portmap::two(8_080 + 2 * u32::from(subject.number()));
    configs.extend(chained().map(|plugin| {
        let more = json!({"cniVersion": VERSION, "name": "bench"});
        let mut config = crate::call::with(&plugin, more);
        if plugin.get("type") == Some(&json!("portmap")) {
            config =
                crate::call::with(&config, json!({"runtimeConfig": {"portMappings": mappings}}));
        } else if plugin.get("type") == Some(&json!("tuning")) {
            config = crate::call::with(&config, json!({"dataDir": tuning_data}));
        }
        config
    }));
    // Counting Go's many programs takes long.
    let pass = if subject.is_go() && bench.options.quick && pass == Pass::Counted {
        Pass::Warm
    } else {
        pass
    };
    let mut all = Run::default();
    for config in &configs {
        let config = if all.stdout.is_empty() {
            config.clone()
        } else {
            with_previous(config, &all.stdout)?
        };
        all = all.then(bench.plugin(subject, "ADD", container.target(), &config)?.run(pass)?);
    }
    bench.note(&place("ADD"), subject, pass, &all);
    let result = all.stdout;
    for (verb, order) in [("CHECK", false), ("DEL", true)] {
        let mut calls: Vec<_> = configs.iter().collect();
        if order {
            calls.reverse();
        }
        let mut all = Run::default();
        let mut is_whole = true;
        for config in calls {
            let config = with_previous(config, &result)?;
            let run = bench.plugin(subject, verb, container.target(), &config)?.run(pass);
            let run = run.map_err(|error| format!("chain {verb}, {}: {error}", subject.name()));
            is_whole &= run.is_ok();
            all = all.then(tolerate(bench, subject, run)?);
        }
        if is_whole {
            bench.note(&place(verb), subject, pass, &all);
        }
    }
    Ok(())
}

fn floor(bench: &mut Bench<'_>, container: &Container, pass: Pass) -> Outcome {
    let bridge = bridge_name(Subject::Floor);
    let address = "10.103.0.2/16";
    let (netns, gateway) = (container.path.as_str(), "10.103.0.1");
    let extras = ["ports", "limits", "tuning"];
    let add = [&["bridge", netns, &bridge, "vfloor", address, gateway][..], &extras[..]].concat();
    bench.measure(&place("ADD"), Subject::Floor, pass, &bench.floor(&add))?;
    let del = [&["unbridge", "vfloor", address][..], &extras[..]].concat();
    bench.measure(&place("DEL"), Subject::Floor, pass, &bench.floor(&del)).map(drop)
}
