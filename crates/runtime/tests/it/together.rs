//! Two processes at work on one node (B019).

use std::fs;
use std::io::{BufRead as _, BufReader};

use podwire_runtime::{Deadlines, Existing, RuntimeError, Source};

use crate::node::{Node, attachment, wait_until};

/// A plugin whose ADD for c1 takes until the test says so.
const SLOW: &str = "cat > /dev/null\n\
    echo \"$CNI_COMMAND slow $CNI_CONTAINERID\" >> $LOG\n\
    if [ $CNI_COMMAND = ADD ]; then\n\
      if [ $CNI_CONTAINERID = c1 ]; then while [ ! -e $NODE/go ]; do sleep 0.05; done; fi\n\
      echo \"ADD slow $CNI_CONTAINERID done\" >> $LOG\n\
      echo '{}'\n\
    fi\n";

#[test]
fn b019_del_waits_for_the_add_of_another_process_and_others_do_not() {
    let node = Node::new();
    node.plugin("slow", SLOW);
    let network = node.network("net", &["slow"]);
    let mut other = node.minimal_runtime("net", "c1");
    wait_until("the slow ADD", || node.has_logged("ADD slow c1"));

    let hasty = Deadlines { lock: std::time::Duration::from_millis(100), ..Deadlines::default() };
    let error = node
        .builder(30.0)
        .deadlines(hasty)
        .build()
        .del(&network, &attachment("c1"), Source::Recorded)
        .unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, RuntimeError::Locked { .. }), "{text}");
    assert!(text.contains(&other.id().to_string()) && text.contains("minimal_runtim"), "{text}");

    let runtime = node.builder(30.0).build();
    let second_interface = {
        let mut attachment = attachment("c1");
        attachment.ifname = podwire_spec::id::IfName::parse("net1").unwrap();
        attachment
    };
    std::thread::scope(|scope| {
        let deleting = scope.spawn(|| runtime.del(&network, &attachment("c1"), Source::Recorded));
        let adding = scope.spawn(|| runtime.add(&network, &second_interface, Existing::Refuse));
        runtime.add(&network, &attachment("c2"), Existing::Refuse).unwrap();
        runtime.del(&network, &attachment("c2"), Source::Recorded).unwrap();
        assert!(node.has_logged("DEL slow c2"), "another container is not held up");
        assert!(!node.has_logged("ADD slow c1 done") && !node.has_logged("DEL slow c1"));
        assert!(!deleting.is_finished() && !adding.is_finished());
        fs::write(node.path("go"), "").unwrap();
        deleting.join().unwrap().unwrap();
        adding.join().unwrap().unwrap();
    });
    let log = node.log();
    let place = |line: &str| log.iter().position(|entry| entry == line).unwrap();
    assert!(place("ADD slow c1 done") < place("DEL slow c1"), "{log:#?}");

    drop(other.stdin.take());
    let stdout = BufReader::new(other.stdout.take().unwrap());
    assert_eq!(stdout.lines().count(), 0);
    assert!(other.wait().unwrap().success(), "its DEL finds nothing left, which is fine");
    runtime.del(&network, &second_interface, Source::Recorded).unwrap();
    assert!(node.state().is_empty(), "{:?}", node.state());
}

#[test]
fn b019_many_at_once_lose_nothing() {
    let node = Node::new();
    let network = node.network("net", &["record"]);
    let runtime = node.builder(60.0).build();
    let ids: Vec<_> = (0..24).map(|number| format!("c{number}")).collect();
    std::thread::scope(|scope| {
        for id in &ids {
            scope.spawn(|| runtime.add(&network, &attachment(id), Existing::Refuse).unwrap());
        }
    });
    assert_eq!(runtime.store().list().unwrap().attachments.len(), ids.len());
    std::thread::scope(|scope| {
        for id in &ids {
            scope.spawn(|| runtime.del(&network, &attachment(id), Source::Recorded).unwrap());
        }
    });
    assert_eq!(node.log().len(), 2 * ids.len());
    assert!(node.state().is_empty(), "{:?}", node.state());
}
