//! Killed and refused behind `bridge`: what is left is found by DEL without a
//! result, and by GC alone.

use podwire_testkit::{Refusal, World};
use podwire_tests::crash::{Density, Job, Target, Verb, assert_sound, firewall, left, run_all};

fn kill(verb: Verb, policy: &str, kills: usize) {
    let chain = firewall(policy);
    let job = Job { subject: &chain, verb, density: Density::Spread(kills) };
    assert_sound(&run_all(&[job], 1), kills - kills / 5);
}

#[test]
fn nothing_is_left_of_a_killed_add() {
    kill(Verb::Add, "isolated", 60);
}

/// Without a policy: a container that the Go plugin makes on the bridge meanwhile
/// keeps the bridge apart, as it should.
#[test]
fn nothing_is_left_of_a_killed_del() {
    kill(Verb::Del, "open", 48);
}

#[test]
fn nothing_is_left_of_a_killed_collection() {
    kill(Verb::Gc, "isolated", 24);
}

#[test]
fn b080_a_refused_request_leaves_nothing_or_can_be_repeated() {
    const FIREWALL: usize = 1;
    let chain = firewall("isolated");
    let world = World::new();
    let plugins = chain.installed(world.plugin_directory());
    let netns = world.netns("c1");
    let before = world.snapshot();
    for verb in [Verb::Add, Verb::Del] {
        let kinds = [Refusal::Answered(16), Refusal::Unsent(105), Refusal::Answered(85)];
        let mut refused = 0;
        for (number, refusal) in (1..).zip(kinds.into_iter().cycle()) {
            let mut target = Target::new("c1", netns.path());
            if verb == Verb::Del {
                plugins.add(&mut target).unwrap();
            }
            let outcome = plugins.refuse(verb, &mut target, FIREWALL, number, refusal);
            let output = &outcome.output;
            if verb == Verb::Add && output.code != 0 {
                plugins.del_before(&target, FIREWALL).unwrap();
                let left = left(&before, &world.snapshot(), chain.bridges);
                assert!(left.changes.is_empty(), "request {number}:\n{left}\n{output:#?}");
            }
            plugins.del(&target).unwrap_or_else(|error| panic!("request {number}: {error:#?}"));
            let left = left(&before, &world.snapshot(), chain.bridges);
            assert!(left.changes.is_empty(), "request {number}, then DEL:\n{left}\n{output:#?}");
            if !outcome.was_refused {
                break;
            }
            refused += 1;
        }
        assert!(refused > 10, "{refused}");
    }
}
