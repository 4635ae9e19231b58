//! The kernel refusing one request of a plugin, each in turn: ADD completes or takes back
//! what it made, and DEL fails so that it can be repeated.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use podwire_testkit::{Refusal, World};
use podwire_tests::crash::{PluginChain, Target, Verb, left, masquerade, portmap, shaping};

/// What the field has seen: a full socket, a busy device, tables that changed, memory.
const REFUSALS: [Refusal; 5] = [
    Refusal::Unsent(105),      // ENOBUFS
    Refusal::Answered(16),     // EBUSY
    Refusal::Answered(85),     // ERESTART
    Refusal::Answered(12),     // ENOMEM
    Refusal::AnsweredLast(16), // EBUSY
];

/// Refuses every request of a verb of one plugin of a chain, with two errors each;
/// says how many were refused, and how many calls failed by that.
fn refuse_all(chain: &PluginChain, verb: Verb, program: usize) -> (usize, usize) {
    let world = World::new();
    let plugins = chain.installed(world.plugin_directory());
    let netns = world.netns("c1");
    let (before, untouched) = (world.snapshot(), netns.snapshot());
    let (mut refused, mut failed) = (0, 0);
    // Two kinds for each, in turn: all five took a minute and found nothing more.
    let kinds = REFUSALS.iter().cycle();
    let tries = (1..).flat_map(|number| [number, number]).zip(kinds.copied());
    for (number, refusal) in tries {
        let place = format!("{} request {number}, {refusal:?}", verb.as_str());
        let mut target = Target::new("c1", netns.path());
        if verb == Verb::Del {
            plugins.add(&mut target).unwrap();
        }
        let outcome = plugins.refuse(verb, &mut target, program, number, refusal);
        let output = &outcome.output;
        if output.code != 0 {
            failed += 1;
            // It says what failed, as an error object.
            let error = output.json();
            let is_sound = error["code"].is_u64() && error["msg"].is_string();
            assert!(is_sound, "{place}: {output:#?}");
        }
        match (verb, output.code) {
            (Verb::Add, 0) => {
                plugins.add_rest(&mut target, program).unwrap();
                plugins.check(&target).unwrap_or_else(|error| panic!("{place}: {error:#?}"));
            }
            // The plugins before it are whole, and this one is as if it had never run.
            (Verb::Add, _) => {
                plugins.del_before(&target, program).unwrap();
                let left = left(&before, &world.snapshot(), chain.bridges);
                assert!(left.changes.is_empty(), "{place} left:\n{left}\n{output:#?}");
                let left = netns.snapshot().since(&untouched);
                assert!(left.changes.is_empty(), "{place} left inside:\n{left}\n{output:#?}");
            }
            (Verb::Del | Verb::Gc, _) => {}
        }
        if verb == Verb::Del && output.code == 0 {
            plugins.del_before(&target, program).unwrap();
            let left = left(&before, &world.snapshot(), chain.bridges);
            assert!(left.changes.is_empty(), "{place} succeeded and left:\n{left}");
        }
        plugins.del(&target).unwrap_or_else(|error| panic!("{place}: {error:#?}"));
        let left = left(&before, &world.snapshot(), chain.bridges);
        assert!(left.changes.is_empty(), "{place}, then DEL left:\n{left}");
        if !outcome.was_refused {
            break;
        }
        refused += 1;
    }
    (refused, failed)
}

#[test]
fn a_refused_request_of_a_bridge_add_leaves_nothing() {
    let (refused, failed) = refuse_all(&masquerade(), Verb::Add, 0);
    assert!(refused >= 24 && failed >= refused / 2, "{refused}, {failed}");
}

#[test]
fn a_refused_request_of_a_bridge_del_can_be_repeated() {
    let (refused, failed) = refuse_all(&masquerade(), Verb::Del, 0);
    assert!(refused >= 16 && failed >= refused / 4, "{refused}, {failed}");
}

#[test]
fn a_refused_request_of_a_portmap_add_leaves_nothing() {
    let (refused, failed) = refuse_all(&portmap(), Verb::Add, 1);
    assert!(refused >= 16 && failed >= refused / 4, "{refused}, {failed}");
}

#[test]
fn a_refused_request_of_a_portmap_del_can_be_repeated() {
    let (refused, failed) = refuse_all(&portmap(), Verb::Del, 1);
    assert!(refused >= 16 && failed >= refused / 4, "{refused}, {failed}");
}

#[test]
fn a_refused_request_of_a_bandwidth_add_leaves_nothing() {
    let (refused, failed) = refuse_all(&shaping(), Verb::Add, 1);
    assert!(refused >= 12 && failed >= refused / 2, "{refused}, {failed}");
}

#[test]
fn a_refused_request_of_a_bandwidth_del_can_be_repeated() {
    let (refused, failed) = refuse_all(&shaping(), Verb::Del, 1);
    assert!(refused >= 8 && failed >= refused / 4, "{refused}, {failed}");
}

#[test]
fn a_refused_request_of_a_tuning_add_leaves_nothing() {
    let (refused, failed) = refuse_all(&shaping(), Verb::Add, 2);
    assert!(refused >= 2 && failed >= 1, "{refused}, {failed}");
}

#[test]
fn a_refused_request_of_a_tuning_del_can_be_repeated() {
    let (refused, failed) = refuse_all(&shaping(), Verb::Del, 2);
    assert!(refused >= 2 && failed >= 1, "{refused}, {failed}");
}
