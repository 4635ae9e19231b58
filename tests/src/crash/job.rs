//! Many kills of one verb, and many such jobs at once.

use std::collections::BTreeMap;
use std::sync::Mutex;

use podwire_testkit::World;
use podwire_testkit::kill::{Blow, syscall_name};

use super::place::{Density, all};
use super::point::{Kill, Stage};
use super::report::Tally;
use super::scene::Scene;
use super::subject::{Subject, Target, Verb};

/// Kills one verb of one subject.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// What is killed.
    pub subject: &'a dyn Subject,
    /// Which verb of it.
    pub verb: Verb,
    /// At how many places.
    pub density: Density,
}

impl Job<'_> {
    /// Makes the kills, in a world of its own. A panic is one more fault.
    pub fn run(&self) -> Tally {
        // A world belongs to the thread that is in it.
        std::thread::scope(|scope| {
            let done = scope.spawn(|| self.in_world(&World::new())).join();
            done.unwrap_or_else(|panic| {
                let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                let mut tally = Tally::new(self.subject.name(), self.verb);
                tally.faults.push(format!("the harness panicked: {text}"));
                tally
            })
        })
    }

    fn in_world(&self, world: &World) -> Tally {
        self.subject.prepare(world);
        let has_go = {
            let nowhere = Target::new("none", std::path::Path::new("/"));
            self.subject.go_neighbour(&nowhere).is_some()
        };
        // Before anything was made: what is there then counts as hardware.
        let mut stage = Stage::new(self.subject, world, self.verb);
        let all_places = all(self.subject, world, self.verb, &mut || stage.clear());
        let mut tally = Tally::new(self.subject.name(), self.verb);
        tally.places = all_places.len();
        let scenes = Scene::all(has_go);
        for (number, place) in self.density.choose(&all_places).into_iter().enumerate() {
            let tried = match self.density {
                Density::Exhaustive => Scene::of_place(number, has_go),
                Density::Every | Density::Spread(_) => vec![scenes[number % scenes.len()]],
            };
            let mut was_alone = None;
            for scene in tried {
                // What dies with it makes no difference where there is nothing.
                if scene.blow == Blow::Family && was_alone == Some(scene.fate) {
                    continue;
                }
                let Some(kill) = stage.attempt(place, scene) else { continue };
                let Kill { call, is_alone, faults } = kill;
                was_alone = is_alone.then_some(scene.fate);
                let name = syscall_name(call.number)
                    .map_or_else(|| format!("number {}", call.number), str::to_owned);
                tally.tried += 1;
                let program = self.subject.program(place.program).to_owned();
                let of_program = tally.programs.entry(program).or_default();
                of_program.kills += 1;
                of_program.leaks += usize::from(!faults.is_empty());
                *tally.histogram.entry(name).or_default() += 1;
                *tally.scenes.entry(scene.kind()).or_default() += 1;
                let killed = format!("killed program {} at {call}; {scene}", place.program);
                tally.faults.extend(faults.iter().map(|fault| format!("{killed}\n{fault}")));
            }
        }
        tally
    }
}

/// Runs jobs on so many threads; the tallies come in the order of the jobs.
pub fn run_all(jobs: &[Job<'_>], threads: usize) -> Vec<Tally> {
    run_all_watched(jobs, threads, &|_| {})
}

/// The same, with somebody told of each job that is done.
pub fn run_all_watched(
    jobs: &[Job<'_>],
    threads: usize,
    on_done: &(dyn Fn(&Tally) + Sync),
) -> Vec<Tally> {
    let waiting = Mutex::new(jobs.iter().enumerate());
    let tallies = Mutex::new(BTreeMap::new());
    let work = || {
        loop {
            let Some((number, job)) = waiting.lock().unwrap().next() else { return };
            let tally = job.run();
            on_done(&tally);
            tallies.lock().unwrap().insert(number, tally);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(work);
        }
    });
    tallies.into_inner().unwrap().into_values().collect()
}
