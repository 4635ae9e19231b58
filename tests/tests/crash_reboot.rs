//! A power cut with a full pool: no DEL ever comes for what was attached.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use podwire_testkit::World;
use podwire_tests::crash::{Boots, Command, Crowd, PluginChain, Subject, Target, bridge, left};
use serde_json::json;

/// Addresses of a /29 less network, broadcast and gateway.
const ADDRESSES: usize = 5;

fn small_pool() -> PluginChain {
    let mut chain = bridge();
    chain.plugins[0]["ipam"]["ranges"] = json!([[{"subnet": "10.204.0.0/29"}]]);
    chain.plugins[0]["ipam"]["routes"] = json!([{"dst": "0.0.0.0/0"}]);
    chain
}

/// B001: the first ADD frees what no longer lives; the same boot frees nothing by itself.
#[test]
fn b001_after_a_reboot_a_full_pool_serves_again() {
    let world = World::new();
    let boots = Boots::new(&world);
    let chain = small_pool();
    let plugins = chain.installed(world.plugin_directory());
    let before = world.snapshot();
    let mut old = Crowd::new(&world, "old", ADDRESSES);
    old.targets.iter_mut().for_each(|target| plugins.add(target).unwrap());
    old.assert_addresses("eth0");
    let netns = world.netns("more");
    let mut more = Target::new("more", netns.path());
    let full = plugins.add(&mut more).unwrap_err();
    assert!(full.stdout.contains("no IP addresses available"), "{full:#?}");

    boots.reboot();
    let mut new = Crowd::new(&world, "new", ADDRESSES);
    let failed = new.at_once(|target| plugins.add(target));
    assert!(failed.is_empty(), "{failed:#?}");
    new.assert_addresses("eth0");
    // DELs of the old ones come late, and take nothing from the new ones.
    old.targets.iter().for_each(|target| plugins.del(&target.clone().without_netns()).unwrap());
    new.targets.iter().for_each(|target| plugins.check(target).unwrap());
    new.targets.iter().for_each(|target| plugins.del(target).unwrap());
    left(&before, &world.snapshot(), chain.bridges).assert_empty();
}

/// The same by the command, whose records survive as well: what is recorded of the old
/// boot is found dead, and a container of the same name comes back.
#[test]
fn records_of_the_old_boot_are_collected() {
    let world = World::new();
    let boots = Boots::new(&world);
    let command = Command::over(small_pool());
    command.prepare(&world);
    let podwire = command.installed(world.plugin_directory());
    let before = world.snapshot();
    let mut old = Crowd::new(&world, "c", ADDRESSES);
    old.targets.iter_mut().for_each(|target| podwire.add(target).unwrap());

    boots.reboot();
    let mut new = Crowd::new(&world, "c", ADDRESSES);
    // Still recorded: the specification forbids a second ADD without a DEL.
    podwire.add(&mut new.targets[0]).unwrap_err();
    podwire.del(&old.targets[0]).unwrap();
    podwire.add(&mut new.targets[0]).unwrap();
    podwire.gc(&["c0"]).unwrap();
    new.targets[1..].iter_mut().for_each(|target| podwire.add(target).unwrap());
    new.assert_addresses("eth0");
    new.targets.iter().for_each(|target| podwire.check(target).unwrap());
    podwire.gc(&[]).unwrap();
    left(&before, &world.snapshot(), command.bridges()).assert_empty();
}

/// A record of an earlier boot is dead even where another container's namespace lies at
/// its path by now; and of the same boot, where another namespace does.
#[test]
fn b005_what_is_at_a_path_now_does_not_make_an_old_record_alive() {
    let world = World::new();
    let boots = Boots::new(&world);
    let command = Command::over(small_pool());
    command.prepare(&world);
    let podwire = command.installed(world.plugin_directory());
    let before = world.snapshot();
    let keep_live = || {
        let program = podwire.command_line(&["gc", command.chain().network, "--keep-live"]);
        let output = world.try_exec(&program.iter().map(String::as_str).collect::<Vec<_>>());
        output.success().stdout
    };
    for is_rebooted in [true, false] {
        let mut old = Crowd::new(&world, "c", 2);
        old.targets.iter_mut().for_each(|target| podwire.add(target).unwrap());
        if is_rebooted {
            boots.reboot();
        } else {
            old.remove();
        }
        let new = Crowd::new(&world, "c", 2);
        let collected = keep_live();
        for name in ["c0", "c1"] {
            let line = format!("crash-bridge/{name}/eth0 (attached): removed\n");
            assert!(collected.contains(&line), "{is_rebooted}: {collected}");
        }
        new.remove();
    }
    left(&before, &world.snapshot(), command.bridges()).assert_empty();
}
