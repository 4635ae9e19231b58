//! Plugins as real processes: deadlines, groups, pipes, busy files.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::node::{Node, attachment, runs, wait_until};
use podwire_runtime::exec::ProcessExecutor;
use podwire_runtime::{Existing, GcMode, Rollback, RuntimeError, Source, ValidSet};
use podwire_spec::error::ErrorCode;

const QUICK_GRACE: ProcessExecutor = ProcessExecutor { grace: Duration::from_millis(200) };

#[test]
fn b041_a_background_child_that_holds_the_pipes_is_not_waited_for() {
    let node = Node::new();
    node.plugin("spawner", "cat > /dev/null\nsleep 600 &\necho $! > $NODE/child\necho '{}'\n");
    let network = node.network("net", &["spawner"]);
    let runtime = node.builder(30.0).build();
    let started = Instant::now();
    runtime.add(&network, &attachment("c1"), Existing::Refuse).unwrap();
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    let child = fs::read_to_string(node.path("child")).unwrap();
    let _ = std::process::Command::new("kill").args(["-9", child.trim()]).status();
}

#[test]
fn b041_at_the_deadline_the_whole_group_goes_and_del_follows() {
    let node = Node::new();
    node.plugin(
        "hang",
        "cat > /dev/null\necho \"$CNI_COMMAND hang\" >> $LOG\n[ $CNI_COMMAND = ADD ] || exit 0\n\
         echo waiting for a lease >&2\ntrap '' TERM\nsleep 600 &\necho $! > $NODE/child\nwait\n",
    );
    let network = node.network("net", &["record", "hang"]);
    let runtime = node.builder(1.0).executor(QUICK_GRACE).build();
    let error = runtime.add(&network, &attachment("c1"), Existing::Refuse).unwrap_err();
    let text = error.to_string();
    assert_eq!(error.code(), ErrorCode::TryAgainLater);
    assert!(
        text.contains("timeout") && text.contains("1.0 s") && text.contains("\"hang\""),
        "{text}"
    );
    assert!(text.contains("waiting for a lease"), "{text}");
    assert!(matches!(error, RuntimeError::AddFailed { rollback: Rollback::Done, .. }));
    assert_eq!(node.log(), ["ADD record c1", "ADD hang", "DEL hang", "DEL record c1"]);
    let child = fs::read_to_string(node.path("child")).unwrap();
    wait_until("the end of the grandchild", || !runs(&child));
    assert!(node.state().is_empty(), "{:?}", node.state());
}

#[test]
fn b007_a_del_that_times_out_too_stays_pending_and_gc_tries_again() {
    let node = Node::new();
    node.plugin(
        "hang",
        "cat > /dev/null\necho \"$CNI_COMMAND hang\" >> $LOG\n[ -e $NODE/healed ] || exec sleep 600\n",
    );
    let network = node.network("net", &["record", "hang"]);
    let runtime = node.builder(0.4).executor(QUICK_GRACE).build();
    let error = runtime.add(&network, &attachment("c1"), Existing::Refuse).unwrap_err();
    assert!(
        matches!(error, RuntimeError::AddFailed { rollback: Rollback::Failed(_), .. }),
        "{error}"
    );
    assert_eq!(node.log(), ["ADD record c1", "ADD hang", "DEL hang"]);
    let listed = runtime.store().list().unwrap();
    assert_eq!(listed.attachments[0].record.state.as_str(), "delete pending");
    fs::write(node.path("healed"), "").unwrap();
    let report = runtime.gc(&network, &ValidSet::none(), GcMode::Collect).unwrap();
    assert!(report.is_clean(), "{:?}", report.failures);
    assert_eq!(node.log(), ["DEL hang", "DEL record c1", "GC record ", "GC hang"]);
    assert!(node.state().is_empty(), "{:?}", node.state());
}

#[test]
fn a_cancelled_add_is_rolled_back() {
    let node = Node::new();
    node.plugin(
        "hang",
        "cat > /dev/null\necho \"$CNI_COMMAND hang\" >> $LOG\n[ $CNI_COMMAND = ADD ] && exec sleep 600\nexit 0\n",
    );
    let network = node.network("net", &["record", "hang"]);
    let flag = Arc::new(AtomicBool::new(false));
    let runtime = node.builder(60.0).executor(QUICK_GRACE).cancel(Arc::clone(&flag)).build();
    let error = std::thread::scope(|scope| {
        let adding = scope.spawn(|| runtime.add(&network, &attachment("c1"), Existing::Refuse));
        wait_until("the second plugin", || {
            fs::read_to_string(node.path("log")).is_ok_and(|log| log.contains("ADD hang"))
        });
        flag.store(true, Ordering::SeqCst);
        adding.join().unwrap().unwrap_err()
    });
    assert!(error.to_string().contains("cancelled"), "{error}");
    assert!(node.log().ends_with(&["DEL hang".into(), "DEL record c1".into()]));
    assert!(node.state().is_empty());
}

#[test]
fn b095_a_plugin_that_is_being_written_is_tried_again() {
    let node = Node::new();
    let network = node.network("net", &["copied"]);
    // A script is read by its shell and never busy; a binary is.
    let path = node.path("bin").join("copied");
    fs::copy("/bin/true", &path).unwrap();
    let mut writer = fs::OpenOptions::new().append(true).open(&path).unwrap();
    writer.write_all(b"").unwrap();
    let runtime = node.builder(30.0).build();
    std::thread::scope(|scope| {
        let deleting = scope.spawn(|| runtime.del(&network, &attachment("c1"), Source::Recorded));
        // Long enough for the first tries to fail.
        let started = Instant::now();
        wait_until("half a second", || started.elapsed() > Duration::from_millis(500));
        assert!(!deleting.is_finished(), "the file is busy");
        drop(writer);
        deleting.join().unwrap().unwrap();
    });
}

#[test]
fn b068_the_plugin_directory_may_move_between_add_and_del() {
    let node = Node::new();
    let network = node.network("net", &["record"]);
    fs::rename(node.path("bin"), node.path("v1")).unwrap();
    std::os::unix::fs::symlink("v1", node.path("bin")).unwrap();
    let runtime = node.builder(30.0).build();
    runtime.add(&network, &attachment("c1"), Existing::Refuse).unwrap();
    fs::rename(node.path("v1"), node.path("v2")).unwrap();
    fs::remove_file(node.path("bin")).unwrap();
    std::os::unix::fs::symlink("v2", node.path("bin")).unwrap();
    runtime.del(&network, &attachment("c1"), Source::Recorded).unwrap();
    assert_eq!(node.log(), ["ADD record c1", "DEL record c1"]);
}

#[test]
fn too_much_output_is_refused() {
    let node = Node::new();
    node.plugin(
        "chatty",
        "cat > /dev/null\n[ $CNI_COMMAND = ADD ] && head -c 6000000 /dev/zero\nexit 0\n",
    );
    let network = node.network("net", &["chatty"]);
    let error =
        node.builder(30.0).build().add(&network, &attachment("c1"), Existing::Refuse).unwrap_err();
    assert!(error.to_string().contains("bytes"), "{error}");
}

#[test]
fn only_the_networks_lock_is_inherited() {
    let node = Node::new();
    node.plugin("fds", "cat > /dev/null\nls -l /proc/self/fd > $NODE/fds\necho '{}'\n");
    let network = node.network("net", &["fds"]);
    node.builder(30.0).build().add(&network, &attachment("c1"), Existing::Refuse).unwrap();
    let open = fs::read_to_string(node.path("fds")).unwrap();
    assert!(open.contains("locks/network/net"), "{open}");
    assert!(!open.contains("locks/container"), "{open}");
}

#[test]
fn b116_a_wrapper_can_hand_on_all_that_its_delegate_needs() {
    let node = Node::new();
    // As flannel does: the delegate gets the wrapper's request, kept for DEL.
    node.plugin(
        "wrapper",
        "cat > $NODE/request\n[ $CNI_COMMAND = ADD ] && cp $NODE/request $NODE/saved\n\
         [ -e $NODE/saved ] || exit 0\n\
         ${CNI_PATH%%:*}/record < $NODE/saved\n[ $CNI_COMMAND = DEL ] && rm $NODE/saved\nexit 0\n",
    );
    let text = r#"{"cniVersion":"1.1.0","name":"net","plugins":[{"type":"record"},
        {"type":"wrapper","capabilities":{"mac":true},"delegate":{"hairpinMode":true}}]}"#;
    let network = podwire_runtime::Network::from_list_bytes(text.as_bytes()).unwrap();
    let mut attachment = attachment("c1");
    attachment.capability_args.insert("mac", "\"00:11:22:33:44:55\"").unwrap();
    let runtime = node.builder(30.0).build();
    runtime.add(&network, &attachment, Existing::Refuse).unwrap();
    let saved = fs::read_to_string(node.path("saved")).unwrap();
    for part in [
        r#""cniVersion":"1.1.0","delegate":{"hairpinMode":true},"name":"net""#,
        r#""prevResult":{"cniVersion":"1.1.0","ips":"#,
        r#""runtimeConfig":{"mac":"00:11:22:33:44:55"}"#,
    ] {
        assert!(saved.contains(part), "{part} not in {saved}");
    }
    for _ in 0..2 {
        runtime.del(&network, &attachment, Source::Recorded).unwrap();
    }
    assert_eq!(
        node.log(),
        [
            "ADD record c1",
            "ADD record c1",
            "DEL record c1",
            "DEL record c1",
            // The second DEL: the wrapper has nothing saved, which is fine.
            "DEL record c1"
        ]
    );
}
