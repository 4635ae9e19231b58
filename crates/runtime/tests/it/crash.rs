//! The runtime is killed in the middle of an ADD; another process then finds
//! all of it (B008).

use std::fs;

use podwire_runtime::{GcMode, RuntimeError, Source, ValidSet};
use podwire_spec::id::{ContainerId, IfName, NetworkName};

use crate::node::{Node, wait_until};

/// Kills the runtime that started it when it gets an ADD, before or after it
/// has done its work.
fn assassin(before: bool) -> String {
    let log = "echo \"$CNI_COMMAND assassin $CNI_CONTAINERID\" >> $LOG\n";
    let kill = "if [ $CNI_COMMAND = ADD ]; then kill -9 $PPID; fi\n";
    let (first, second) = if before { (kill, log) } else { (log, kill) };
    format!("cat > /dev/null\n{first}{second}echo '{{\"cniVersion\":\"1.1.0\"}}'\n")
}

fn killed(node: &Node, plugins: &[&str]) -> podwire_runtime::Network {
    let network = node.network("net", plugins);
    let mut child = node.minimal_runtime("net", "c1");
    assert!(!child.wait().unwrap().success());
    network
}

fn bare() -> podwire_runtime::Attachment {
    podwire_runtime::Attachment::new(
        ContainerId::parse("c1").unwrap(),
        IfName::parse("eth0").unwrap(),
    )
}

#[test]
fn b008_killed_before_between_and_after_the_plugins_del_reaches_all() {
    for (order, before) in [
        (["assassin", "record"], true),
        (["record", "assassin"], true),
        (["record", "assassin"], false),
    ] {
        let node = Node::new();
        node.plugin("assassin", &assassin(before));
        let network = killed(&node, &order);
        wait_until("the end of the last plugin", || node.has_logged("ADD assassin c1"));
        node.log();
        let runtime = node.builder(30.0).build();
        let listed = runtime.store().list().unwrap();
        assert_eq!(listed.attachments[0].record.state.as_str(), "adding");
        assert!(!node.state().iter().any(|name| name.starts_with("results/")));
        // The file of the network is not needed: the intent holds it.
        let name = NetworkName::parse("net").unwrap();
        let deleted = runtime.del(&name, &bare(), Source::Recorded).unwrap();
        assert!(deleted.was_recorded);
        let mut expected: Vec<_> = order.iter().map(|plugin| format!("DEL {plugin} c1")).collect();
        expected.reverse();
        assert_eq!(node.log(), expected);
        assert!(node.state().is_empty(), "{:?}", node.state());
        drop(network);
    }
}

#[test]
fn b008_gc_after_the_kill_does_the_same_and_waits_for_a_plugin_that_goes_on() {
    let node = Node::new();
    node.plugin(
        "assassin",
        "cat > /dev/null\n[ $CNI_COMMAND = ADD ] || { echo \"$CNI_COMMAND assassin\" >> $LOG; exit 0; }\n\
         kill -9 $PPID\necho 'ADD goes on' >> $LOG\nwhile [ ! -e $NODE/enough ]; do sleep 0.05; done\n\
         echo 'ADD ends' >> $LOG\n",
    );
    let network = killed(&node, &["record", "assassin"]);
    wait_until("the plugin", || node.has_logged("ADD goes on"));
    let deadlines = podwire_runtime::Deadlines {
        lock: std::time::Duration::from_millis(100),
        ..Default::default()
    };
    let hasty = node.builder(30.0).deadlines(deadlines).build();
    let error = hasty.gc(&network, &ValidSet::none(), GcMode::Collect).unwrap_err();
    assert!(matches!(error, RuntimeError::Locked { .. }), "{error}");
    assert!(error.to_string().contains("network \"net\""), "{error}");

    fs::write(node.path("enough"), "").unwrap();
    let runtime = node.builder(30.0).build();
    let report = runtime.gc(&network, &ValidSet::none(), GcMode::Collect).unwrap();
    assert!(report.is_clean(), "{:?}", report.failures);
    assert_eq!(
        node.log(),
        [
            "ADD record c1",
            "ADD goes on",
            "ADD ends",
            "DEL assassin",
            "DEL record c1",
            "GC record ",
            "GC assassin"
        ]
    );
    assert!(node.state().is_empty(), "{:?}", node.state());
}
