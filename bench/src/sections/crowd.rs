//! Many containers at once: bridge with masquerade and portmap for each.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::{portmap, tolerate};
use crate::Outcome;
use crate::bench::{Bench, Container, Pass, Place, State};
use crate::call::{Call, Run, with_previous};
use crate::subject::Subject;

/// Containers at once.
const COUNTS: [u32; 2] = [50, 200];

pub(super) fn run(bench: &mut Bench<'_>) -> Outcome {
    for count in COUNTS {
        for subject in bench.with_plugins() {
            if subject == Subject::GoOld && count > COUNTS[0] {
                bench
                    .report
                    .remark("Go 1.1.1 was not tried with the larger crowd: it takes minutes");
                continue;
            }
            // A Go release takes half a minute for 200.
            let times = if subject.is_go() { 1 } else { 3 };
            for _ in 0..times {
                let outcome = one(bench, subject, count);
                tolerate(bench, subject, outcome)?;
            }
        }
    }
    Ok(())
}

fn one(bench: &mut Bench<'_>, subject: Subject, count: u32) -> Outcome {
    let containers: Vec<_> = (0..count).map(|_| bench.container(subject)).collect();
    let bridge = bench.bridge(State::Tmpfs, subject, true)?;
    let results = Mutex::new(vec![String::new(); containers.len()]);
    let directory = bench.options.programs.plugins(subject).ok_or("no plugins")?;
    let portmap = |index: usize, result: &str| {
        let first = 10_000 + 2 * u32::try_from(index).unwrap_or_default();
        portmap::config(&portmap::two(first), result)
    };
    let add = |index: usize, container: &Container| {
        let call = Call::plugin(&directory, "ADD", container.target(), &bridge);
        let attached = call.run(Pass::Timed)?;
        let config = portmap(index, &attached.stdout)?;
        let mapped = Call::plugin(&directory, "ADD", container.target(), &config);
        let all = attached.then(mapped.run(Pass::Timed)?);
        let mut results = results.lock().map_err(|_| "another container failed")?;
        if let Some(place) = results.get_mut(index) {
            place.clone_from(&all.stdout);
        }
        Ok(all)
    };
    let added = at_once(&containers, &add);
    let results = results.lock().map_err(|_| "a container failed")?.clone();
    let del = |index: usize, container: &Container| {
        let Some(result) = results.get(index).filter(|result| !result.is_empty()) else {
            return Ok(Run::default());
        };
        let config = portmap(index, result)?;
        let unmapped = Call::plugin(&directory, "DEL", container.target(), &config);
        let unmapped = unmapped.run(Pass::Timed)?;
        let config = with_previous(&bridge, result)?;
        let detached = Call::plugin(&directory, "DEL", container.target(), &config);
        Ok(unmapped.then(detached.run(Pass::Timed)?))
    };
    let deleted = at_once(&containers, &del);
    for container in containers {
        bench.retire(container);
    }
    bench.settle();
    for (verb, (wall, processor, failures)) in [("ADD", added), ("DEL", deleted)] {
        let place = Place::new("crowd", format!("all {verb}")).at(count);
        if let Some(first) = failures.first() {
            let text = format!(
                "{} of {count} containers failed to {verb}, {}: {first}",
                failures.len(),
                subject.name()
            );
            if !subject.is_go() {
                return Err(text);
            }
            bench.report.remark(&text);
        }
        let run = Run { times: Some((wall, processor)), counts: None, stdout: String::new() };
        bench.note(&place, subject, Pass::Timed, &run);
    }
    Ok(())
}

/// One thread a container; wall time of all, processor time together, failures.
fn at_once(
    containers: &[Container],
    work: &(dyn Fn(usize, &Container) -> Outcome<Run> + Sync),
) -> (Duration, Duration, Vec<String>) {
    let started = Instant::now();
    let runs: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = containers
            .iter()
            .enumerate()
            .map(|(index, container)| scope.spawn(move || work(index, container)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".to_owned())))
            .collect()
    });
    let wall = started.elapsed();
    let mut processor = Duration::ZERO;
    let mut failures = Vec::new();
    for run in runs {
        match run {
            Ok(run) => processor += run.times.map_or(Duration::ZERO, |(_, processor)| processor),
            Err(error) => failures.push(error),
        }
    }
    (wall, processor, failures)
}
