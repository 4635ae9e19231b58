//! The disk full, read-only or broken at each call of a plugin and of the runtime: the
//! error names a file, an ADD is taken back or whole, and when the disk is well again
//! DEL and GC leave nothing.
//!
//! B088: no state is lost or half written.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use podwire_testkit::kill::storage::STATE;
use podwire_testkit::state::{Change, Difference};
use podwire_testkit::{DiskFault, HostState, Output, World};
use podwire_tests::crash::{
    Command, PluginChain, Subject, Target, Verb, bridge, host_device, left, whole,
};

const FAULTS: [DiskFault; 4] =
    [DiskFault::Full, DiskFault::Broken, DiskFault::ReadOnly, DiskFault::FullOnce];

/// What is left, but for locks that nobody holds: they cost an empty file until the
/// next call or boot.
fn beyond_locks(before: &HostState, after: &HostState, bridges: &[&str]) -> Difference {
    left(before, after, bridges).without(|change| {
        let name = change.name();
        matches!(change, Change::Added(_, content) if content == "\"\"")
            && name.starts_with("file /run/podwire/")
    })
}

/// Whether a message says on which file something failed.
fn names_a_file(output: &Output) -> bool {
    let text = format!("{}{}", output.stdout, output.stderr);
    STATE.iter().any(|root| text.contains(root))
}

/// Each call of a verb of one plugin, with every second of the faults; how often one was
/// met, and how often the plugin failed by it.
fn spoil_all(chain: &PluginChain, verb: Verb, program: usize) -> (usize, usize) {
    let world = World::new();
    chain.prepare(&world);
    let plugins = chain.installed(world.plugin_directory());
    let netns = world.netns("victim");
    chain.furnish(&netns, "victim");
    let (before, untouched) = (world.snapshot(), netns.snapshot());
    let (mut met, mut failed) = (0, 0);
    for start in 0..2 {
        for (number, fault) in (1..).zip(FAULTS.into_iter().cycle().skip(start).step_by(2)) {
            let mut target = Target::new("victim", netns.path());
            if verb == Verb::Del {
                plugins.add(&mut target).unwrap();
            }
            let spoiled = plugins.spoil(verb, &mut target, program, number, fault);
            let output = &spoiled.output;
            let at = spoiled.at.clone().unwrap_or_default();
            let place = format!("{} {fault:?} from {number}, {at}", verb.as_str());
            if output.code != 0 {
                failed += 1;
                let error = output.json();
                assert!(error["code"].is_u64() && error["msg"].is_string(), "{place}: {output:#?}");
                assert!(names_a_file(output), "{place}: no file is named: {output:#?}");
            } else if verb == Verb::Add {
                plugins.add_rest(&mut target, program).unwrap();
                plugins.check(&target).unwrap_or_else(|error| panic!("{place}: {error:#?}"));
            }
            // The disk is well again.
            plugins.del(&target).unwrap_or_else(|error| panic!("{place}, DEL: {error:#?}"));
            let left = beyond_locks(&before, &world.snapshot(), chain.bridges);
            assert!(left.changes.is_empty(), "{place}, then DEL left:\n{left}\n{output:#?}");
            let left = netns.snapshot().since(&untouched);
            assert!(left.changes.is_empty(), "{place} left inside:\n{left}\n{output:#?}");
            if spoiled.at.is_none() {
                break;
            }
            met += 1;
        }
    }
    plugins.gc(&[]).unwrap();
    left(&before, &world.snapshot(), chain.bridges).assert_empty();
    (met, failed)
}

#[test]
fn b088_a_bad_disk_leaves_nothing_of_a_bridge_add() {
    let (met, failed) = spoil_all(&bridge(), Verb::Add, 0);
    assert!(met >= 20 && failed >= 8, "{met}, {failed}");
}

#[test]
fn b088_a_bridge_del_on_a_bad_disk_can_be_repeated() {
    let (met, failed) = spoil_all(&bridge(), Verb::Del, 0);
    assert!(met >= 12 && failed >= 2, "{met}, {failed}");
}

#[test]
fn b088_a_bad_disk_leaves_nothing_of_chained_adds() {
    let chain = whole();
    let met: usize = (1..4).map(|program| spoil_all(&chain, Verb::Add, program).0).sum();
    assert!(met >= 12, "{met}");
}

#[test]
fn b088_chained_dels_on_a_bad_disk_can_be_repeated() {
    let chain = whole();
    let met: usize = (1..4).map(|program| spoil_all(&chain, Verb::Del, program).0).sum();
    assert!(met >= 8, "{met}");
}

#[test]
fn b088_a_bad_disk_loses_no_device() {
    let chain = host_device();
    let (added, _) = spoil_all(&chain, Verb::Add, 0);
    let (deleted, _) = spoil_all(&chain, Verb::Del, 0);
    assert!(added >= 4 && deleted >= 2, "{added}, {deleted}");
}

/// The runtime's own calls: intents, records and locks.
fn spoil_command(verb: Verb) -> (usize, usize) {
    let world = World::new();
    let command = Command::over(bridge());
    command.prepare(&world);
    let podwire = command.installed(world.plugin_directory());
    let netns = world.netns("victim");
    let (before, untouched) = (world.snapshot(), netns.snapshot());
    let (mut met, mut failed) = (0, 0);
    for start in 0..2 {
        for (number, fault) in (1..).zip(FAULTS.into_iter().cycle().skip(start).step_by(2)) {
            let mut target = Target::new("victim", netns.path());
            if verb == Verb::Del {
                podwire.add(&mut target).unwrap();
            }
            let spoiled = podwire.spoil(verb, &mut target, number, fault);
            let output = &spoiled.output;
            let at = spoiled.at.clone().unwrap_or_default();
            let place = format!("{} {fault:?} from {number}, {at}", verb.as_str());
            if output.code != 0 {
                failed += 1;
                assert!(names_a_file(output), "{place}: no file is named: {output:#?}");
            } else if verb == Verb::Add {
                podwire.check(&target).unwrap_or_else(|error| panic!("{place}: {error:#?}"));
            }
            podwire.del(&target).unwrap_or_else(|error| panic!("{place}, DEL: {error:#?}"));
            podwire.gc(&[]).unwrap_or_else(|error| panic!("{place}, GC: {error:#?}"));
            let left = left(&before, &world.snapshot(), command.bridges()).without(is_set_aside);
            assert!(left.changes.is_empty(), "{place}, then DEL left:\n{left}\n{output:#?}");
            let left = netns.snapshot().since(&untouched);
            assert!(left.changes.is_empty(), "{place} left inside:\n{left}\n{output:#?}");
            if spoiled.at.is_none() {
                break;
            }
            met += 1;
        }
    }
    (met, failed)
}

/// What could not be read is kept for somebody to look at.
fn is_set_aside(change: &Change) -> bool {
    change.name().contains("/quarantine/")
}

#[test]
fn b088_podwire_add_on_a_bad_disk_leaves_nothing() {
    let (met, failed) = spoil_command(Verb::Add);
    assert!(met >= 20 && failed >= 10, "{met}, {failed}");
}

#[test]
fn b088_podwire_del_on_a_bad_disk_can_be_repeated() {
    let (met, _) = spoil_command(Verb::Del);
    assert!(met >= 12, "{met}");
}
