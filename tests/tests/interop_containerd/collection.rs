//! What nobody has deleted, and who collects it.
//!
//! containerd never calls GC: neither its releases up to 2.4 nor the library between
//! it and libcni have such a call (containerd/go-cni#131), and there is no setting.
//! What it has forgotten stays until `podwire gc --keep-live`.

use podwire_testkit::fake;
use podwire_testkit::state::Change;
use podwire_tests::containerd::{Containerd, Pod, Release};
use podwire_tests::lab::reservations;
use serde_json::json;

use crate::lab::{HAND_ON, PLUGINS, RANGES, list, podwire, remove, run, under_each_release};

under_each_release!(what_containerd_has_forgotten_is_collected_by_podwire);

/// A node that lost its runtime's memory: containerd is killed, its pods die with the
/// power, and it starts again on an empty store.
fn what_containerd_has_forgotten_is_collected_by_podwire(release: Release) {
    let mut config = list(release, &RANGES);
    config["plugins"].as_array_mut().unwrap().push(json!({"type": "witness"}));
    let witness = fake::record("witness").script(HAND_ON);
    let mut containerd = Containerd::start_with(release, &config, &[witness]);
    let before = containerd.node.world.snapshot();
    let pod = Pod::new("lost").with_port(8080, 80);
    let id = run(&containerd, &pod);
    let sandbox = containerd.cri.pod(&id).unwrap();

    containerd.kill();
    containerd.kill_process(sandbox.process);
    podwire_sys::mount::detach(&sandbox.namespace).unwrap();
    std::fs::remove_file(&sandbox.namespace).unwrap();
    containerd.forget();
    containerd.restart();
    assert!(containerd.cri.pods().is_empty());
    assert!(containerd.cri.network_ready().status);

    // It has asked for nothing, and the address and the port are still taken.
    let verbs = fake::calls(PLUGINS.as_ref()).into_iter().map(|call| call.command);
    let asked: Vec<_> = verbs.filter(|verb| verb != "ADD" && verb != "STATUS").collect();
    assert!(asked.is_empty(), "{asked:?}");
    assert_eq!(reservations("pods"), ["10.1.0.2", "fd01::2"]);
    let rules = containerd.node.world.exec(&["nft", "list", "ruleset"]).stdout;
    assert!(rules.contains("8080"), "{rules}");

    podwire(&containerd, "gc pods --keep-live").success();
    assert!(reservations("pods").is_empty());
    let is_loopback = |change: &Change| change.name().contains("/results/cni-loopback-");
    containerd.node.left(&before).without(is_loopback).assert_empty();

    // The port is free for the next pod, which another collection leaves alone.
    containerd.import();
    let again = run(&containerd, &pod);
    podwire(&containerd, "gc pods --keep-live").success();
    let sandbox = containerd.cri.pod(&again).unwrap();
    assert_eq!(sandbox.addresses, crate::lab::addresses(&containerd, &sandbox.namespace));
    remove(&containerd, &again);
    assert!(reservations("pods").is_empty());
}
