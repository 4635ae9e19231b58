//! Where to kill.

use podwire_testkit::World;
use podwire_testkit::kill::{Blow, Killed};

use super::subject::{Subject, Target, Verb};

/// The n-th system call of one of the subject's programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Which program of the chain, by its position there.
    pub program: usize,
    /// The count of the call that is not made any more, from 1.
    pub call: u64,
}

/// How many of all places are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Density {
    /// So many, spread evenly.
    Spread(usize),
    /// Every one, each in one scene.
    Every,
    /// Every one, with every fate of the sandbox and either blow.
    Exhaustive,
}

impl Density {
    /// The places of all that are tried.
    pub(super) fn choose(self, all: &[Place]) -> Vec<Place> {
        match self {
            Self::Spread(wanted) if wanted < all.len() => {
                (0..wanted).map(|number| all[number * all.len() / wanted]).collect()
            }
            _ => all.to_vec(),
        }
    }
}

/// How often the calls of a program are counted.
const COUNTS: usize = 3;

/// How many calls one program makes in a verb.
fn count(subject: &dyn Subject, world: &World, verb: Verb, program: usize) -> u64 {
    subject.repair(world);
    let netns = world.netns("count");
    subject.furnish(&netns, "count");
    let mut target = Target::new("count", netns.path());
    if verb != Verb::Add {
        subject.add(world, &mut target).unwrap();
    }
    let nowhere = Place { program, call: u64::MAX };
    let calls = match subject.kill(world, verb, &target, &[], nowhere, Blow::Family) {
        Killed::Finished { calls, output } => {
            output.success();
            calls
        }
        Killed::At { call, .. } => panic!("made {call}"),
    };
    subject.del(world, &target).unwrap();
    netns.remove();
    calls
}

/// Every place of a verb in a world where nothing is attached yet, which is where
/// there is most to do, as `renew` makes it. Leaves nothing attached.
pub(super) fn all(
    subject: &dyn Subject,
    world: &World,
    verb: Verb,
    renew: &mut dyn FnMut(),
) -> Vec<Place> {
    let mut places = Vec::new();
    for program in 0..subject.programs() {
        // Who has to wait for something asks again and again: the shortest run counts.
        let counts = (0..COUNTS).map(|_| {
            renew();
            count(subject, world, verb, program)
        });
        let calls = counts.min().unwrap_or_default();
        places.extend((1..=calls).map(|call| Place { program, call }));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_spread_evenly() {
        let all: Vec<_> = (1..=100).map(|call| Place { program: 0, call }).collect();
        let chosen = Density::Spread(4).choose(&all);
        let calls: Vec<_> = chosen.iter().map(|place| place.call).collect();
        assert_eq!(calls, [1, 26, 51, 76]);
        assert_eq!(Density::Spread(200).choose(&all).len(), 100);
        assert_eq!(Density::Every.choose(&all).len(), 100);
    }
}
