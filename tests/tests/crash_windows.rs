//! The instants of an ADD that a counted kill meets only by luck, made by hand.

#![allow(clippy::unwrap_used)]

use podwire_testkit::World;
use podwire_tests::crash::{Subject, Target, bridge, portmap};
use serde_json::json;

/// A host end as it is between its birth and its alias.
fn take_alias(world: &World, target: &Target) -> String {
    let result = target.result.as_ref().unwrap();
    let interfaces = result["interfaces"].as_array().unwrap();
    let host = interfaces.iter().find(|one| one["name"].as_str().unwrap().starts_with("veth"));
    let name = host.unwrap()["name"].as_str().unwrap().to_owned();
    world.exec(&["ip", "link", "set", "dev", &name, "alias", ""]);
    name
}

/// Garbage collection knows no container id that is dead.
#[test]
fn a_host_end_without_its_alias_is_collected_and_no_other() {
    let world = World::new();
    let chain = bridge();
    let [mut dead, mut live] = ["dead", "live"].map(|container| {
        let netns = world.netns(container);
        Target::new(container, netns.path())
    });
    chain.add(&world, &mut dead).unwrap();
    chain.add(&world, &mut live).unwrap();
    let names = [&dead, &live].map(|target| take_alias(&world, target));
    // What a Go plugin makes looks the same: veth and eight digits, no alias.
    world.exec(&["ip", "link", "add", "veth0a1b2c3d", "type", "veth", "peer", "name", "peer"]);
    chain.gc(&world, &["live"]).unwrap();
    let is_there = |name: &str| world.try_exec(&["ip", "link", "show", name]).code == 0;
    assert!(!is_there(&names[0]));
    assert!(is_there(&names[1]) && is_there("veth0a1b2c3d"));
    chain.check(&world, &live).unwrap();
    chain.del(&world, &live).unwrap();
    assert!(!is_there(&names[1]) && is_there("veth0a1b2c3d"));
}

/// Networks that give each container a subnet of its own, as cloud networks do, must not
/// leave a chain for each.
#[test]
fn the_chain_of_a_subnet_goes_with_its_last_mapping() {
    let world = World::new();
    let chain = portmap();
    let plugins = chain.installed(world.plugin_directory());
    let chains = || world.try_exec(&["nft", "list", "table", "ip", "podwire_hostports"]).stdout;
    let [mut first, mut second] = ["first", "second"].map(|container| {
        let netns = world.netns(container);
        Target::new(container, netns.path())
    });
    plugins.add(&mut first).unwrap();
    plugins.add(&mut second).unwrap();
    plugins.del(&first).unwrap();
    assert!(chains().contains("chain from_10.201.0.0/24"));
    plugins.check(&second).unwrap();
    plugins.del(&second).unwrap();
    assert!(!chains().contains("chain from_"), "{}", chains());
    plugins.add(&mut first).unwrap();
    plugins.check(&first).unwrap();
}

/// A late DEL, with or without its record, meets a stranger with the very same limits.
#[test]
fn the_limits_of_a_stranger_at_the_old_path_stay() {
    let world = World::new();
    let mut chain = bridge();
    chain.plugins.push(json!({
        "type": "bandwidth", "ingressRate": 8_000_000, "ingressBurst": 800_000,
        "egressRate": 8_000_000, "egressBurst": 800_000,
    }));
    let plugins = chain.installed(world.plugin_directory());
    for is_recorded in [true, false] {
        let netns = world.netns("old");
        let mut gone = Target::new("gone", netns.path());
        plugins.add(&mut gone).unwrap();
        netns.remove();
        let netns = world.netns("old");
        let mut stranger = Target::new("stranger", netns.path());
        plugins.add(&mut stranger).unwrap();
        if !is_recorded {
            gone.result = None;
        }
        plugins.del(&gone).unwrap();
        plugins.check(&stranger).unwrap();
        plugins.del(&stranger).unwrap();
        netns.remove();
    }
}
