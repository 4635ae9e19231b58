//! Port mappings beside those of others.

use serde_json::{Value, json};

use super::neighbours::{self, Backend};
use super::{interfaces, tolerate};
use crate::Outcome;
use crate::bench::{Bench, Pass, Place, State};
use crate::call::{VERSION, with, with_previous};
use crate::subject::Subject;
use crate::turns::Turns;

/// Mappings of other containers.
const COUNTS: [u32; 4] = [0, 100, 1_000, 10_000];

pub(super) fn run(bench: &mut Bench<'_>) -> Outcome {
    let counts: &[u32] = if bench.options.quick { &[0, 1_000] } else { &COUNTS };
    for count in counts {
        for subject in bench.subjects(&Subject::ALL) {
            let outcome = one(bench, subject, Backend::Iptables, *count);
            neighbours::clear(bench, subject, Backend::Iptables);
            tolerate(bench, subject, outcome)?;
        }
        if !bench.options.quick {
            for subject in bench.subjects(&[Subject::GoNew]) {
                let outcome = one(bench, subject, Backend::Nftables, *count);
                neighbours::clear(bench, subject, Backend::Nftables);
                tolerate(bench, subject, outcome)?;
            }
        }
    }
    Ok(())
}

/// Two mappings.
pub(super) fn two(first: u32) -> Value {
    json!([
        {"hostPort": first, "containerPort": 80, "protocol": "tcp"},
        {"hostPort": first + 1, "containerPort": 81, "protocol": "tcp"}
    ])
}

/// The portmap plugin's configuration.
pub(super) fn config(mappings: &Value, result: &str) -> Outcome<Value> {
    let config = json!({
        "cniVersion": VERSION, "name": "bench", "type": "portmap",
        "capabilities": {"portMappings": true}, "runtimeConfig": {"portMappings": mappings}
    });
    with_previous(&config, result)
}

/// Subjects don't take turns here: each has to have the host's tables alone,
/// or the rules of one would slow down the other.
fn one(bench: &mut Bench<'_>, subject: Subject, backend: Backend, count: u32) -> Outcome {
    let turns = Turns { counts_go: count == COUNTS[0], ..bench.turns() };
    let suffix = if backend == Backend::Nftables { ", nftables backend" } else { "" };
    let place = |verb: &str| Place::new("portmap", format!("portmap {verb}{suffix}")).at(count);
    if subject == Subject::Floor {
        bench.floor(&["prepare"]).run(Pass::Warm)?;
        neighbours::lay(bench, subject, backend, count)?;
        return bench.take(turns, &[subject], |bench, subject, pass| {
            for (verb, word) in [("ADD", "ports"), ("DEL", "unports")] {
                let call = bench.floor(&[word, "10.103.0.2"]);
                bench.measure(&place(verb), subject, pass, &call)?;
            }
            Ok(())
        });
    }
    interfaces::floor_bridge(bench);
    let container = bench.container(subject);
    let bridge = bench.bridge(State::Tmpfs, subject, false)?;
    let call = bench.plugin(subject, "ADD", container.target(), &bridge)?;
    let result = call.run(Pass::Warm)?.stdout;
    let mut portmap = config(&two(8_080), &result)?;
    if subject == Subject::GoNew {
        portmap = with(&portmap, json!({"backend": backend.name()}));
    }
    // What makes the tables that neighbours are laid into; it stays.
    let lasting = bench.container(subject);
    let first = with(&portmap, json!({"runtimeConfig": {"portMappings": two(9_000)}}));
    bench.plugin(subject, "ADD", lasting.target(), &first)?.run(Pass::Warm)?;
    neighbours::lay(bench, subject, backend, count)?;
    bench.take(turns, &[subject], |bench, subject, pass| {
        for verb in ["ADD", "CHECK", "DEL"] {
            let call = bench.plugin(subject, verb, container.target(), &portmap)?;
            let outcome = bench.measure(&place(verb), subject, pass, &call);
            tolerate(bench, subject, outcome)?;
        }
        Ok(())
    })?;
    let bridge = with_previous(&bridge, &result)?;
    bench.plugin(subject, "DEL", container.target(), &bridge)?.run(Pass::Warm)?;
    bench.retire(container);
    bench.retire(lasting);
    bench.settle();
    Ok(())
}
