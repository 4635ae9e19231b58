//! A pool without a free address, as the kubelet hears of it.

use podwire_tests::containerd::{Containerd, Failure, Pod, Release};

use crate::lab::{list, remove, run, under_each_release};

under_each_release!(a_pod_without_an_address_is_refused_with_our_words);

fn a_pod_without_an_address_is_refused_with_our_words(release: Release) {
    let containerd = Containerd::start(release, &list(release, &["10.1.0.0/30"]));
    let before = containerd.node.world.snapshot();
    let only = run(&containerd, &Pod::new("only"));
    let full = containerd.node.world.snapshot();

    let refused = containerd.cri.run_pod(&Pod::new("late"));
    let Err(Failure::Refused(_, message)) = &refused else { panic!("{refused:?}") };
    assert!(message.contains("no IP addresses available"), "{message}");
    containerd.node.assert_nothing_left(&full);
    for id in containerd.cri.pods().into_iter().filter(|id| *id != only) {
        remove(&containerd, &id);
    }
    containerd.node.assert_nothing_left(&full);

    remove(&containerd, &only);
    containerd.node.assert_nothing_left(&before);
}

/// Releases before 2 know no STATUS.
#[test]
fn a_full_pool_makes_the_node_not_ready() {
    let containerd = Containerd::start(Release::Newest, &list(Release::Newest, &["10.1.0.0/30"]));
    let only = run(&containerd, &Pod::new("only"));
    let condition = containerd.cri.network_ready();
    assert!(!condition.status, "{condition:?}");
    // In our words, with the pool that is full.
    for words in ["no IP addresses available in range set", "10.1.0."] {
        assert!(condition.message.contains(words), "{words}: {condition:?}");
    }
    remove(&containerd, &only);
    assert!(containerd.cri.network_ready().status);
}
