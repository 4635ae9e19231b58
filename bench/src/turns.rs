//! Rounds, in which the subjects take turns.
//!
//! A Go plugin that reads sixty thousand files for each call, or lists ten thousand
//! rules, would make a run last for hours. So each of them has a limit of time for
//! each point of a curve, and is counted, which means traced, only at the first.

use std::time::{Duration, Instant};

use crate::Outcome;
use crate::bench::{Bench, Pass};
use crate::sections::tolerate;
use crate::subject::Subject;

/// A Go plugin gets no further round of a point once it has taken so long.
const PATIENCE: Duration = Duration::from_secs(3);

/// Timed rounds that it gets in any case.
const LEAST: u32 = 2;

/// How often each subject has its turn.
#[derive(Debug, Clone, Copy)]
pub struct Turns {
    /// Timed rounds.
    pub rounds: u32,
    /// Whether the Go plugins are counted.
    pub counts_go: bool,
}

/// What a subject had of a point.
#[derive(Debug, Clone, Copy)]
struct Share {
    subject: Subject,
    rounds: u32,
    took: Duration,
}

impl Turns {
    fn has(self, share: Share, pass: Pass) -> bool {
        if !share.subject.is_go() {
            return true;
        }
        match pass {
            Pass::Warm => true,
            Pass::Timed => share.rounds < LEAST || share.took < PATIENCE,
            Pass::Counted => self.counts_go,
        }
    }
}

impl Bench<'_> {
    /// As many rounds as were asked for.
    pub fn turns(&self) -> Turns {
        Turns { rounds: self.options.rounds, counts_go: true }
    }

    /// A first round to warm up, the timed ones, and one that counts; in each, every
    /// subject in turn. Then what was used is cleared away.
    ///
    /// # Errors
    /// `work` failed for a subject that isn't a Go release.
    pub fn take(
        &mut self,
        turns: Turns,
        subjects: &[Subject],
        mut work: impl FnMut(&mut Self, Subject, Pass) -> Outcome,
    ) -> Outcome {
        let share =
            |subject: &Subject| Share { subject: *subject, rounds: 0, took: Duration::ZERO };
        let mut shares: Vec<_> = subjects.iter().map(share).collect();
        for pass in passes(turns.rounds) {
            for share in &mut shares {
                if !turns.has(*share, pass) {
                    continue;
                }
                let started = Instant::now();
                let outcome = work(self, share.subject, pass);
                tolerate(self, share.subject, outcome)?;
                if pass == Pass::Timed {
                    share.rounds += 1;
                    share.took += started.elapsed();
                }
            }
        }
        self.settle();
        Ok(())
    }
}

fn passes(timed: u32) -> impl Iterator<Item = Pass> {
    let timed = (0..timed).map(|_| Pass::Timed);
    std::iter::once(Pass::Warm).chain(timed).chain(std::iter::once(Pass::Counted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_go_plugin_has_few_rounds_and_ours_has_all() {
        let turns = Turns { rounds: 9, counts_go: false };
        let share = |subject, rounds| Share { subject, rounds, took: PATIENCE };
        assert!(turns.has(share(Subject::GoNew, 1), Pass::Timed));
        assert!(!turns.has(share(Subject::GoNew, 2), Pass::Timed));
        assert!(!turns.has(share(Subject::GoOld, 0), Pass::Counted));
        for pass in passes(1) {
            assert!(turns.has(share(Subject::Podwire, 8), pass));
        }
        let quick = Share { took: Duration::ZERO, ..share(Subject::GoNew, 8) };
        assert!(turns.has(quick, Pass::Timed));
    }
}
