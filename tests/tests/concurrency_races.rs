//! Operations that meet on one attachment or one network.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use podwire_testkit::{GoPlugins, Output, Plugin, World, libcni_client};
use podwire_tests::crash::{Command, Crowd, Subject, Target, bridge, left, masquerade, portmap};
use serde_json::json;

/// Which half of a crowd a container is in.
fn is_even(target: &Target) -> bool {
    target.container.ends_with(['0', '2', '4', '6', '8'])
}

/// Two closures at the same time.
fn together<A: Send, B: Send>(
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B + Send,
) -> (A, B) {
    let start = Barrier::new(2);
    std::thread::scope(|scope| {
        let one = scope.spawn(|| {
            start.wait();
            one()
        });
        start.wait();
        let other = other();
        (one.join().unwrap(), other)
    })
}

/// ADD and DEL of one attachment by one plugin: whoever comes first, the attachment is
/// whole or gone, and never half.
#[test]
fn a_plugins_add_meets_its_del() {
    let world = World::new();
    let chain = masquerade();
    let plugins = chain.installed(world.plugin_directory());
    let netns = world.netns("c1");
    let before = world.snapshot();
    for round in 0..24 {
        let mut target = Target::new("c1", netns.path());
        let early = target.clone();
        let (added, deleted) = together(|| plugins.add(&mut target), || plugins.del(&early));
        added.unwrap_or_else(|error| panic!("round {round}: {error:#?}"));
        deleted.unwrap_or_else(|error| panic!("round {round}: {error:#?}"));
        let there = left(&before, &world.snapshot(), chain.bridges);
        if !there.changes.is_empty() {
            plugins.check(&target).unwrap_or_else(|error| panic!("{error:#?}\n{there}"));
        }
        plugins.del(&target).unwrap();
        left(&before, &world.snapshot(), chain.bridges).assert_empty();
    }
}

/// The same by the command with a chain, whose locks must keep the plugins of one
/// operation together.
#[test]
fn the_commands_add_meets_its_del() {
    let world = World::new();
    let command = Command::over(portmap());
    command.prepare(&world);
    let podwire = command.installed(world.plugin_directory());
    let netns = world.netns("c1");
    let before = world.snapshot();
    for round in 0..12 {
        let mut target = Target::new("c1", netns.path());
        let early = target.clone();
        let (added, deleted) = together(|| podwire.add(&mut target), || podwire.del(&early));
        added.unwrap_or_else(|error| panic!("round {round}: {error:#?}"));
        deleted.unwrap_or_else(|error| panic!("round {round}: {error:#?}"));
        let there = left(&before, &world.snapshot(), command.bridges());
        if !there.changes.is_empty() {
            podwire.check(&target).unwrap_or_else(|error| panic!("{error:#?}\n{there}"));
        }
        podwire.del(&target).unwrap();
        left(&before, &world.snapshot(), command.bridges()).assert_empty();
    }
}

/// ADDs and DELs while the network is collected again and again: what is valid stays,
/// also while it is being made.
#[test]
fn containers_come_and_go_while_garbage_is_collected() {
    let world = World::new();
    let command = Command::over(portmap());
    command.prepare(&world);
    let podwire = command.installed(world.plugin_directory());
    let before = world.snapshot();
    let mut crowd = Crowd::new(&world, "c", 8);
    let names: Vec<String> = crowd.targets.iter().map(|target| target.container.clone()).collect();
    let done = AtomicBool::new(false);
    let (failed, collections) = together(
        || {
            let failed = crowd.at_once(|target| {
                for _ in 0..4 {
                    podwire.add(target)?;
                    podwire.check(target)?;
                    podwire.del(target)?;
                }
                Ok(())
            });
            done.store(true, Ordering::Release);
            failed
        },
        || {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut count = 0;
            while !done.load(Ordering::Acquire) {
                match podwire.gc(&names) {
                    Ok(()) => count += 1,
                    // Its wait for those who come and go is bounded, and it says so.
                    Err(output) if output.stderr.contains("try again later (code 11)") => {}
                    Err(output) => panic!("{output:#?}"),
                }
            }
            count
        },
    );
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(collections > 0);
    podwire.gc(&[]).unwrap();
    left(&before, &world.snapshot(), command.bridges()).assert_empty();
}

/// Our runtime and Go's on one network, with our plugins: they share addresses and
/// nothing else.
#[test]
fn two_runtimes_attach_to_one_network_at_once() {
    let world = World::new();
    let command = Command::over(portmap());
    command.prepare(&world);
    let directory = world.plugin_directory();
    let podwire = command.installed(directory);
    let before = world.snapshot();
    let mut crowd = Crowd::new(&world, "c", 24);
    let libcni = |verb: &str, target: &Target| {
        let netns = target.netns.as_ref().unwrap();
        let capabilities = command.chain().capabilities(&target.container).unwrap();
        let output = run(&[
            libcni_client().to_str().unwrap(),
            verb,
            "--plugin-dir",
            directory.to_str().unwrap(),
            "--network",
            command.chain().network,
            "--container-id",
            &target.container,
            "--netns",
            netns.to_str().unwrap(),
            "--capability-args",
            &capabilities.to_string(),
        ]);
        if output.code == 0 { Ok(output) } else { Err(Box::new(output)) }
    };
    let failed = crowd.at_once(|target| {
        if is_even(target) {
            return podwire.add(target);
        }
        target.result = Some(libcni("add", target)?.json());
        Ok(())
    });
    assert!(failed.is_empty(), "{failed:#?}");
    crowd.assert_addresses("eth0");
    let failed = crowd.at_once(|target| {
        if is_even(target) { podwire.del(target) } else { libcni("del", target).map(drop) }
    });
    assert!(failed.is_empty(), "{failed:#?}");
    left(&before, &world.snapshot(), command.bridges()).assert_empty();
}

/// Go's host-local and ours on one directory at once, again and again.
#[test]
fn go_and_ours_reserve_in_one_directory_at_once() {
    let world = World::new();
    let chain = bridge();
    let config = json!({
        "cniVersion": "1.0.0", "name": chain.network, "type": "bridge",
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.202.0.0/25"}]]},
    });
    let before = world.snapshot();
    for _ in 0..3 {
        let mut crowd = Crowd::new(&world, "c", 40);
        let ours = world.plugin("host-local");
        let go = GoPlugins::sid().plugin("host-local");
        let call = |verb: &str, target: &Target| {
            let plugin: Plugin = if is_even(target) { ours.clone() } else { go.clone() };
            let plugin = plugin.command(verb).container(&target.container).ifname("eth0");
            let output =
                plugin.env("CNI_NETNS", target.netns.as_ref().unwrap()).config(&config).run();
            if output.code == 0 { Ok(output) } else { Err(Box::new(output)) }
        };
        let failed = crowd.at_once(|target| {
            // Twice, so that freed addresses are reserved again by the other.
            call("ADD", target)?;
            call("DEL", target)?;
            target.result = Some(call("ADD", target)?.json());
            Ok(())
        });
        assert!(failed.is_empty(), "{failed:#?}");
        let addresses: std::collections::BTreeSet<_> = crowd
            .targets
            .iter()
            .map(|target| target.result.as_ref().unwrap()["ips"][0]["address"].to_string())
            .collect();
        assert_eq!(addresses.len(), 40, "an address was given twice");
        // Each is freed by the other implementation.
        let failed = crowd.at_once(|target| {
            let plugin: Plugin = if is_even(target) { go.clone() } else { ours.clone() };
            let plugin = plugin.command("DEL").container(&target.container).ifname("eth0");
            let output =
                plugin.env("CNI_NETNS", target.netns.as_ref().unwrap()).config(&config).run();
            if output.code == 0 { Ok(()) } else { Err(Box::new(output)) }
        });
        assert!(failed.is_empty(), "{failed:#?}");
        left(&before, &world.snapshot(), &[]).assert_empty();
        crowd.remove();
    }
}

/// A command line, from any thread of the world.
fn run(command: &[&str]) -> Output {
    let (program, arguments) = command.split_first().unwrap();
    let output = std::process::Command::new(program).args(arguments).output().unwrap();
    Output {
        command: command.join(" "),
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
