//! Many containers at once.
#![allow(clippy::panic, clippy::indexing_slicing)]

use podwire_testkit::World;
use podwire_tests::crash::{Command, Crowd, Subject, bridge, left, portmap};

/// How many at once, and how often.
const CONTAINERS: usize = 100;
const ROUNDS: usize = 10;

/// B019, B020, B034: no failure, no address twice, nothing left, ten times.
#[test]
fn a_hundred_containers_come_and_go_at_once() {
    let world = World::new();
    let chain = portmap();
    let plugins = chain.installed(world.plugin_directory());
    let before = world.snapshot();
    let mut crowd = Crowd::new(&world, "c", CONTAINERS);
    for round in 0..ROUNDS {
        let failed = crowd.at_once(|target| plugins.add(target));
        assert!(failed.is_empty(), "round {round}: {} failed: {:#?}", failed.len(), failed[0]);
        crowd.assert_addresses("eth0");
        if round < 2 {
            let failed = crowd.at_once(|target| plugins.check(target));
            assert!(failed.is_empty(), "round {round}: {} failed: {:#?}", failed.len(), failed[0]);
        }
        let failed = crowd.at_once(|target| plugins.del(target));
        assert!(failed.is_empty(), "round {round}: {} failed: {:#?}", failed.len(), failed[0]);
        let left = left(&before, &world.snapshot(), chain.bridges);
        assert!(left.changes.is_empty(), "round {round}:\n{left}");
    }
}

/// The same by the command, whose locks, records and intents are in it too.
#[test]
fn forty_attachments_are_made_and_removed_at_once_by_the_command() {
    let world = World::new();
    let command = Command::over(portmap());
    command.prepare(&world);
    let podwire = command.installed(world.plugin_directory());
    let before = world.snapshot();
    let mut crowd = Crowd::new(&world, "c", 40);
    for round in 0..2 {
        let failed = crowd.at_once(|target| podwire.add(target));
        assert!(failed.is_empty(), "round {round}: {} failed: {:#?}", failed.len(), failed[0]);
        crowd.assert_addresses("eth0");
        let failed = crowd.at_once(|target| podwire.del(target));
        assert!(failed.is_empty(), "round {round}: {} failed: {:#?}", failed.len(), failed[0]);
        let left = left(&before, &world.snapshot(), command.bridges());
        assert!(left.changes.is_empty(), "round {round}:\n{left}");
    }
}

/// The first ADDs on a host that has no bridge yet, some of which fail late and take
/// back what they made, but never the bridge from under the others.
#[test]
fn first_containers_share_a_bridge_that_failing_ones_leave_alone() {
    let world = World::new();
    let chain = bridge();
    let plugins = chain.installed(world.plugin_directory());
    let mut crowd = Crowd::new(&world, "c", 16);
    for round in 0..8 {
        // All want the same address: one gets it, the others fail after the bridge
        // was made.
        for (number, target) in crowd.targets.iter_mut().enumerate() {
            target.result = None;
            if number >= 8 {
                target.args = "IgnoreUnknown=1;IP=10.201.0.200".to_owned();
            }
        }
        let failed = crowd.at_once(|target| plugins.add(target));
        assert_eq!(failed.len(), 7, "round {round}: {failed:#?}");
        let attached: Vec<_> =
            crowd.targets.iter().filter(|target| target.result.is_some()).collect();
        assert_eq!(attached.len(), 9);
        for target in &attached {
            plugins.check(target).unwrap_or_else(|error| panic!("round {round}: {error:#?}"));
        }
        // Of the failed ones nothing is there; DEL is for all.
        let failed = crowd.at_once(|target| plugins.del(target));
        assert!(failed.is_empty(), "round {round}: {failed:#?}");
        world.exec(&["ip", "link", "del", "crash0"]);
    }
}
