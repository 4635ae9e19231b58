//! A bridge that has many attachments already.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{interfaces, tolerate};
use crate::Outcome;
use crate::bench::{Bench, Container, Pass, Place, State};
use crate::call::with_previous;
use crate::subject::Subject;
use crate::turns::Turns;

/// Attachments that are there.
const COUNTS: [u32; 4] = [0, 10, 100, 1_000];
/// Those of a quick run, which counts what Podwire asks of the kernel beside others.
const QUICK: [u32; 2] = [0, 100];
/// How long a Go plugin is waited for until it has made those of one point: each
/// reads the rules of all others.
const PATIENCE: Duration = Duration::from_secs(75);
/// What the older Go release is asked for at most: more takes it minutes.
const MOST_OF_OLD: u32 = 100;

pub(super) fn run(bench: &mut Bench<'_>) -> Outcome {
    interfaces::floor_bridge(bench);
    // Interfaces of one container, so that a thousand of them are quickly gone.
    let (counts, subjects): (&[u32], _) = if bench.options.quick {
        (&QUICK, vec![Subject::Podwire])
    } else {
        (&COUNTS, bench.with_plugins())
    };
    let crowds: Vec<_> =
        subjects.into_iter().map(|subject| (subject, bench.container(subject))).collect();
    for (_, crowd) in &crowds {
        // They share a namespace, in which each IPv6 multicast of the bridge would be
        // looked up a thousand times among the routes of a thousand interfaces.
        let switch = || std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        crowd.netns.run(switch).map_err(|error| error.to_string())?;
    }
    let mut present: Vec<_> = crowds.iter().map(|(subject, _)| *subject).collect();
    let mut there = 0;
    for &count in counts {
        if count > MOST_OF_OLD && present.contains(&Subject::GoOld) {
            present.retain(|subject| *subject != Subject::GoOld);
            let name = Subject::GoOld.name();
            bench.report.remark(&format!("{name}: not tried with {count} attachments there"));
        }
        for (subject, crowd) in &crowds {
            if present.contains(subject) {
                let outcome = attach(bench, *subject, crowd, there..count);
                if !tolerate(bench, *subject, outcome)? {
                    present.retain(|other| other != subject);
                }
            }
        }
        there = count;
        let rounds = bench.options.rounds.min(10);
        let turns = Turns { rounds, counts_go: count == 0 };
        bench.take(turns, &present, |bench, subject, pass| life(bench, subject, count, pass))?;
    }
    for (_, crowd) in crowds {
        bench.retire(crowd);
    }
    bench.settle();
    Ok(())
}

/// Real attachments, as the subject makes them. Says whether all are there.
fn attach(
    bench: &mut Bench<'_>,
    subject: Subject,
    crowd: &Container,
    numbers: std::ops::Range<u32>,
) -> Outcome<bool> {
    let started = Instant::now();
    let wanted = numbers.end;
    let mut config = bench.bridge(State::Tmpfs, subject, true)?;
    if let Some(ipam) = config.get_mut("ipam").and_then(Value::as_object_mut) {
        // A second default route in one namespace would be refused.
        ipam.remove("routes");
    }
    for number in numbers {
        if subject.is_go() && started.elapsed() > PATIENCE {
            bench.report.remark(&format!(
                "{}: {number} attachments took {} s to make, and {wanted} were not waited for",
                subject.name(),
                PATIENCE.as_secs(),
            ));
            return Ok(false);
        }
        let ifname = format!("eth{number}");
        let call = bench.plugin(subject, "ADD", crowd.interface(&ifname), &config)?;
        call.run(Pass::Warm)?;
    }
    Ok(true)
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
    bench.retire(container);
    outcome
}
