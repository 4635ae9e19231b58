//! The `podwire` command on a node whose pods are containerd's.

use podwire_testkit::state::Change;
use podwire_tests::containerd::{Containerd, Pod, Release};

use crate::lab::{RANGES, addresses, list, podwire, remove, run, under_each_release};

under_each_release!(podwire_sees_and_collects_what_containerd_made);

/// Attachments of the network `pods`, as `podwire list` tells them.
fn states(containerd: &Containerd) -> Vec<String> {
    let list = podwire(containerd, "list --output json").success().json();
    let attachments = list["attachments"].as_array().unwrap().iter();
    let pods = attachments.filter(|attachment| attachment["network"] == "pods");
    let mut states: Vec<_> =
        pods.map(|attachment| attachment["state"].as_str().unwrap().to_owned()).collect();
    states.sort();
    states
}

/// Checks a pod's attachment.
#[track_caller]
fn check(containerd: &Containerd, id: &str) {
    let namespace = containerd.cri.pod(id).unwrap().namespace;
    let line = format!("check pods {} --container-id {id}", namespace.display());
    podwire(containerd, &line).success();
}

fn podwire_sees_and_collects_what_containerd_made(release: Release) {
    let containerd = Containerd::start(release, &list(release, &RANGES));
    let before = containerd.node.world.snapshot();
    let stays = run(&containerd, &Pod::new("stays").with_port(8080, 80));
    let one = containerd.node.world.snapshot();
    let dies = run(&containerd, &Pod::new("dies").with_port(8081, 80));
    assert_eq!(states(&containerd), ["alive", "alive"]);
    check(&containerd, &stays);
    check(&containerd, &dies);

    // While both live, nothing is there to collect.
    let two = containerd.node.world.snapshot();
    podwire(&containerd, "gc pods --keep-live").success();
    containerd.node.assert_nothing_left(&two);

    // Those that are named by their namespaces are kept, too.
    let paths: Vec<_> = [&stays, &dies]
        .iter()
        .map(|id| format!("--keep {}", containerd.cri.pod(id).unwrap().namespace.display()))
        .collect();
    podwire(&containerd, &format!("gc pods {}", paths.join(" "))).success();
    containerd.node.assert_nothing_left(&two);

    // One ends by other hands than containerd's, which hears nothing of it.
    let sandbox = containerd.cri.pod(&dies).unwrap();
    containerd.kill_process(sandbox.process);
    podwire_sys::mount::detach(&sandbox.namespace).unwrap();
    std::fs::remove_file(&sandbox.namespace).unwrap();
    podwire(&containerd, "gc pods --keep-live").success();
    assert_eq!(states(&containerd), ["alive"]);
    // containerd's network of `lo` was not meant.
    let is_loopback = |change: &Change| change.name().contains("/results/cni-loopback-");
    containerd.node.left(&one).without(is_loopback).assert_empty();

    let sandbox = containerd.cri.pod(&stays).unwrap();
    assert_eq!(sandbox.addresses, addresses(&containerd, &sandbox.namespace));
    check(&containerd, &stays);
    // containerd's own DEL of what has been collected is fine.
    remove(&containerd, &dies);
    remove(&containerd, &stays);
    containerd.node.assert_nothing_left(&before);
}
