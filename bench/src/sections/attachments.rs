//! A bridge that has many attachments already.

use serde_json::Value;

use super::{interfaces, tolerate};
use crate::Outcome;
use crate::bench::{Bench, Container, Pass, Place, State};
use crate::call::with_previous;
use crate::subject::Subject;

/// Attachments that are there.
const COUNTS: [u32; 4] = [0, 10, 100, 1_000];

pub(super) fn run(bench: &mut Bench<'_>) -> Outcome {
    interfaces::floor_bridge(bench);
    // Interfaces of one container, so that a thousand of them are quickly gone.
    let crowds: Vec<_> = bench
        .with_plugins()
        .into_iter()
        .map(|subject| (subject, bench.container(subject)))
        .collect();
    let mut there = 0;
    for count in COUNTS {
        // Rules of a thousand attachments take the older release minutes.
        let crowds: Vec<_> = crowds
            .iter()
            .filter(|(subject, _)| *subject != Subject::GoOld || count <= 100)
            .collect();
        for (subject, crowd) in &crowds {
            let outcome = attach(bench, *subject, crowd, there..count);
            tolerate(bench, *subject, outcome)?;
        }
        there = count;
        for pass in bench.some_passes(bench.options.rounds.min(10)) {
            for (subject, _) in &crowds {
                let outcome = life(bench, *subject, count, pass);
                tolerate(bench, *subject, outcome)?;
            }
        }
    }
    for (_, crowd) in &crowds {
        crowd.netns.remove();
    }
    Ok(())
}

/// Real attachments, as the subject makes them.
fn attach(
    bench: &mut Bench<'_>,
    subject: Subject,
    crowd: &Container,
    numbers: std::ops::Range<u32>,
) -> Outcome {
    let mut config = bench.bridge(State::Tmpfs, subject, true)?;
    if let Some(ipam) = config.get_mut("ipam").and_then(Value::as_object_mut) {
        // A second default route in one namespace would be refused.
        ipam.remove("routes");
    }
    for number in numbers {
        let ifname = format!("eth{number}");
        let call = bench.plugin(subject, "ADD", crowd.interface(&ifname), &config)?;
        call.run(Pass::Warm)?;
    }
    Ok(())
}

fn life(bench: &mut Bench<'_>, subject: Subject, count: u32, pass: Pass) -> Outcome {
    let container = bench.container(subject);
    let config = bench.bridge(State::Tmpfs, subject, true)?;
    let mut measure = |verb: &str, config: &Value| {
        let call = bench.plugin(subject, verb, container.target(), config)?;
        let name = format!("bridge with masquerade {verb}");
        bench.measure(&Place::new("attachments", name).at(count), subject, pass, &call)
    };
    let mut all = || {
        let result = measure("ADD", &config)?;
        let config = with_previous(&config, &result)?;
        measure("CHECK", &config)?;
        measure("DEL", &config).map(drop)
    };
    let outcome = all();
    container.netns.remove();
    outcome
}
