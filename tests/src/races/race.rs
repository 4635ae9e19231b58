//! Rounds until so many operations are done.

use std::collections::BTreeMap;
use std::fmt;

use podwire_testkit::{HostState, World};

use super::rounds::{self, Round};
use super::witness::Witness;
use crate::crash::{Command, Subject, left, portmap};

/// A race.
#[derive(Debug, Clone, Copy)]
pub struct Race {
    /// How many operations are made at least.
    pub operations: usize,
    /// How many containers come at once.
    pub crowd: usize,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Operations by the kind of round.
    pub operations: BTreeMap<&'static str, usize>,
    /// How often all namespaces were looked at meanwhile.
    pub looks: u64,
    /// Everything that was not as it had to be.
    pub faults: Vec<String>,
}

impl Outcome {
    /// All operations.
    pub fn total(&self) -> usize {
        self.operations.values().sum()
    }
}

impl Race {
    /// Runs it, in a world of its own; `tell` hears how far it is.
    pub fn run(self, tell: &(dyn Fn(&str) + Sync)) -> Outcome {
        std::thread::scope(|scope| {
            scope.spawn(|| self.in_world(&World::new(), tell)).join().expect("the race panicked")
        })
    }

    fn in_world(self, world: &World, tell: &(dyn Fn(&str) + Sync)) -> Outcome {
        let command = Command::over(portmap());
        command.prepare(world);
        let before = world.snapshot();
        let witness = Witness::default();
        let mut outcome = Outcome::default();
        std::thread::scope(|scope| {
            scope.spawn(|| witness.watch());
            // Nothing of this may panic: the witness would never end.
            while outcome.total() < self.operations && witness.faults().is_empty() {
                for (kind, round) in rounds::ALL {
                    let state = Round { command: &command, witness: &witness };
                    *outcome.operations.entry(kind).or_default() +=
                        round(world, &state, self.crowd);
                    compare(kind, &before, world, &witness, &command);
                    tell(&format!("{} operations, last: {kind}", outcome.total()));
                }
            }
            witness.finish();
        });
        outcome.looks = witness.looks();
        outcome.faults = witness.faults();
        outcome
    }
}

fn compare(kind: &str, before: &HostState, world: &World, witness: &Witness, command: &Command) {
    let left = left(before, &world.snapshot(), command.bridges());
    if !left.changes.is_empty() {
        witness.fault(format!("{kind} left on the host:\n{left}"));
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, count) in &self.operations {
            writeln!(f, "{count:>7}  {kind}")?;
        }
        writeln!(f, "{:>7}  operations in all", self.total())?;
        writeln!(f, "{:>7}  looks at all namespaces", self.looks)?;
        writeln!(f, "{:>7}  faults", self.faults.len())?;
        self.faults.iter().try_for_each(|fault| writeln!(f, "\n{fault}"))
    }
}
