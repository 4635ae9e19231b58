//! Sandboxes whose network namespace has gone by other hands than containerd's.

use podwire_tests::containerd::{Containerd, Pod, Release};

use crate::lab::{RANGES, list, remove, run, under_each_release};

under_each_release!(a_sandbox_without_its_namespace_is_removed_whole);

fn a_sandbox_without_its_namespace_is_removed_whole(release: Release) {
    let containerd = Containerd::start(release, &list(release, &RANGES));
    let before = containerd.node.world.snapshot();
    for dies in [false, true] {
        let id = run(&containerd, &Pod::new("orphan").with_port(8080, 80));
        let sandbox = containerd.cri.pod(&id).unwrap();
        podwire_sys::mount::detach(&sandbox.namespace).unwrap();
        std::fs::remove_file(&sandbox.namespace).unwrap();
        if dies {
            containerd.kill_process(sandbox.process);
        }
        remove(&containerd, &id);
        containerd.node.assert_nothing_left(&before);
    }
    // Its address is free again.
    let id = run(&containerd, &Pod::new("next"));
    assert_eq!(containerd.cri.pod(&id).unwrap().addresses.len(), 2);
    remove(&containerd, &id);
    containerd.node.assert_nothing_left(&before);
}
