//! GC.

use podwire_spec::id::{ContainerId, IfName};

use super::fake::{Namespace, Node, attachment, full_attachment, network, refuse, succeed};
use crate::live::{keep_live, liveness};
use crate::{Existing, GcMode, Network, RuntimeError, StaleOutcome, ValidSet};

fn valid(ids: &[&str]) -> ValidSet {
    ValidSet::of(
        ids.iter().map(|id| (ContainerId::parse(id).unwrap(), IfName::parse("eth0").unwrap())),
    )
}

fn add(node: &Node, network: &Network, id: &str) {
    node.runtime.add(network, &full_attachment(id), Existing::Refuse).unwrap();
    node.seen();
}

#[test]
fn b037_each_stale_attachment_is_deleted_as_it_was_added_then_the_new_plugins_collect() {
    let node = Node::new();
    add(&node, &network("net", "1.1.0", &["v1-main", "v1-meta"]), "a");
    add(&node, &network("net", "1.1.0", &["v1-main", "v1-meta"]), "kept");
    add(&node, &network("other", "1.1.0", &["foreign"]), "a");
    let now = network("net", "1.1.0", &["v2-main"]);
    let report = node.runtime.gc(&now, &valid(&["kept"]), GcMode::Collect).unwrap();
    assert!(report.is_clean(), "{:?}", report.failures);
    assert_eq!(report.stale.len(), 1);
    assert_eq!(report.stale[0].outcome, StaleOutcome::Removed);
    let seen = node.seen();
    let calls: Vec<_> =
        seen.iter().map(|seen| format!("{} {}", seen.command(), seen.plugin)).collect();
    assert_eq!(calls, ["DEL v1-meta", "DEL v1-main", "GC v2-main"]);
    assert_eq!(seen[0].variable("CNI_ARGS"), "K=V;L=W");
    assert_eq!(seen[0].variable("CNI_NETNS"), "/run/netns/nowhere");
    assert_eq!(seen[0].key("runtimeConfig").unwrap(), r#"{"mac":"00:11:22:33:44:55"}"#);
    assert!(seen[0].key("prevResult").is_some());
    for key in ["cni.dev/valid-attachments", "cni.dev/attachments"] {
        assert_eq!(seen[2].key(key).unwrap(), r#"[{"containerID":"kept","ifname":"eth0"}]"#);
    }
    assert_eq!(seen[2].variable("CNI_CONTAINERID"), "");
    assert_eq!(node.runtime.store().list().unwrap().attachments.len(), 2);
}

#[test]
fn an_empty_set_is_sent_as_an_empty_list() {
    let node = Node::new();
    node.runtime
        .gc(&network("net", "1.1.0", &["main"]), &ValidSet::none(), GcMode::Collect)
        .unwrap();
    assert_eq!(node.seen()[0].key("cni.dev/valid-attachments").unwrap(), "[]");
}

#[test]
fn b007_b008_gc_finishes_what_dead_adds_left() {
    let node = Node::new();
    let network = network("net", "1.1.0", &["main"]);
    node.behave(|_| refuse(999, "boom"));
    assert!(node.runtime.add(&network, &full_attachment("c1"), Existing::Refuse).is_err());
    node.seen();
    node.behave(succeed);
    let report = node.runtime.gc(&network, &valid(&["x"]), GcMode::Collect).unwrap();
    assert!(report.is_clean() && report.stale[0].outcome == StaleOutcome::Removed);
    assert_eq!(node.calls(), ["DEL main", "GC main"]);
    assert!(node.files().is_empty(), "{:?}", node.files());
}

#[test]
fn b056_gc_goes_on_after_each_failure_and_reports_all() {
    let node = Node::new();
    let network = network("net", "1.1.0", &["one", "two", "three"]);
    for id in ["a", "b", "c"] {
        add(&node, &network, id);
    }
    node.plant("results/net-b-eth0", b"{torn");
    node.behave(|seen| match (seen.command(), seen.plugin.as_str()) {
        ("GC", "one") => refuse(999, "gc bust"),
        ("DEL", "three") if seen.variable("CNI_CONTAINERID") == "a" => refuse(999, "del bust"),
        _ => succeed(seen),
    });
    node.lose("two");
    let report = node.runtime.gc(&network, &ValidSet::none(), GcMode::Collect).unwrap();
    assert_eq!(node.calls(), ["DEL three", "DEL three", "GC one", "GC three"]);
    let texts: Vec<_> = report.failures.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 5, "{texts:#?}");
    assert!(texts[0].contains("net-b-eth0"), "{texts:#?}");
    assert!(texts[1].contains("net/a/eth0") && texts[1].contains("del bust"), "{texts:#?}");
    assert!(texts[2].contains("net/c/eth0") && texts[2].contains("\"two\""), "{texts:#?}");
    assert!(texts[3].contains("gc bust") && texts[4].contains("\"two\""), "{texts:#?}");
    assert_eq!(node.runtime.store().list().unwrap().attachments.len(), 2);
}

/// B056: a file that by its name is no record of this network doesn't spoil its GC.
#[test]
fn b056_what_is_unreadable_but_another_networks_is_a_warning() {
    let node = Node::new();
    let network = network("net", "1.1.0", &["main"]);
    for name in ["results/other-b-eth0", "results/network-b-eth0", "results/notes.txt"] {
        node.plant(name, b"{torn");
    }
    node.plant("podwire/intents/other:c:eth0", b"{torn");
    let report = node.runtime.gc(&network, &ValidSet::none(), GcMode::Collect).unwrap();
    assert!(report.is_clean(), "{:?}", report.failures);
    assert_eq!(report.warnings.len(), 4, "{:?}", report.warnings);
    node.plant("podwire/intents/net:c:eth0", b"{torn");
    let report = node.runtime.gc(&network, &ValidSet::none(), GcMode::Collect).unwrap();
    let failures: Vec<_> = report.failures.iter().map(ToString::to_string).collect();
    assert!(failures.len() == 1 && failures[0].contains("net:c:eth0"), "{failures:?}");
    assert!(failures[0].contains("delete the attachment"), "{failures:?}");
}

#[test]
fn b056_a_missing_cache_is_no_error_and_an_unreadable_one_is() {
    let node = Node::new();
    let network = network("net", "1.1.0", &["main"]);
    assert!(node.runtime.gc(&network, &ValidSet::none(), GcMode::Collect).unwrap().is_clean());
    node.plant("results", b"no directory");
    node.seen();
    assert!(matches!(
        node.runtime.gc(&network, &ValidSet::none(), GcMode::Collect),
        Err(RuntimeError::Store { .. })
    ));
    assert!(node.calls().is_empty());
}

#[test]
fn a_dry_run_changes_nothing_and_disable_gc_does_nothing() {
    let node = Node::new();
    let network = network("net", "1.1.0", &["main"]);
    add(&node, &network, "a");
    let before = node.files();
    let report = node.runtime.gc(&network, &ValidSet::none(), GcMode::DryRun).unwrap();
    assert_eq!((report.stale.len(), report.plugins.len()), (1, 1));
    assert_eq!(report.stale[0].outcome, StaleOutcome::WouldBeRemoved);
    assert!(node.calls().is_empty());
    assert_eq!(node.files(), before);
    let text =
        r#"{"cniVersion":"1.1.0","name":"net","disableGC":"true","plugins":[{"type":"main"}]}"#;
    let disabled = Network::from_list_bytes(text.as_bytes()).unwrap();
    assert!(node.runtime.gc(&disabled, &ValidSet::none(), GcMode::Collect).unwrap().disabled);
    assert!(node.calls().is_empty());
}

#[test]
fn before_1_1_0_only_recorded_attachments_are_collected() {
    let node = Node::new();
    let network = network("net", "0.4.0", &["main"]);
    add(&node, &network, "a");
    node.runtime.gc(&network, &ValidSet::none(), GcMode::Collect).unwrap();
    assert_eq!(node.calls(), ["DEL main"]);
}

#[test]
fn gc_does_not_start_beside_an_add() {
    let node = Node::new();
    let directory = node.directory.path().join("locks");
    let held = podwire_sys::lock::FileLock::shared(
        directory.join("network/net"),
        std::time::Duration::ZERO,
    )
    .unwrap();
    let network = network("net", "1.1.0", &["main"]);
    let error = node.runtime.gc(&network, &ValidSet::none(), GcMode::Collect).unwrap_err();
    assert!(matches!(error, RuntimeError::Locked { .. }), "{error}");
    drop(held);
    add(&node, &network, "busy");
    let held = podwire_sys::lock::FileLock::exclusive(
        directory.join("container/busy"),
        std::time::Duration::ZERO,
    )
    .unwrap();
    let report = node.runtime.gc(&network, &ValidSet::none(), GcMode::Collect).unwrap();
    // Not a failure: the next one finds it idle.
    assert_eq!(report.stale[0].outcome, StaleOutcome::Busy);
    assert!(report.is_clean(), "{:?}", report.failures);
    assert_eq!(node.calls(), ["GC main"]);
    drop(held);
}

#[test]
fn keep_live_keeps_what_lives_or_cannot_be_told() {
    let node = Node::new();
    let network = network("net", "1.1.0", &["main"]);
    let plain = node.directory.path().join("plain");
    std::fs::write(&plain, "").unwrap();
    let namespace = Namespace::new();
    for (id, path) in [
        ("alive", namespace.path()),
        ("dead", node.directory.path().join("gone")),
        ("plain", plain),
        ("elsewhere", "/no/such/directory/ns".into()),
    ] {
        let mut attachment = attachment(id);
        attachment.netns = Some(path);
        node.runtime.add(&network, &attachment, Existing::Refuse).unwrap();
    }
    let listing = node.runtime.store().list().unwrap();
    let words: Vec<_> = listing
        .attachments
        .iter()
        .map(|stored| (stored.record.key.container_id.as_str(), liveness(stored).as_str()))
        .collect();
    assert_eq!(
        words,
        [("alive", "alive"), ("dead", "dead"), ("elsewhere", "unknown"), ("plain", "dead")]
    );
    assert_eq!(keep_live(network.name(), &listing).unwrap(), valid(&["alive", "elsewhere"]));
    node.plant("results/net-torn-eth0", b"{");
    let listing = node.runtime.store().list().unwrap();
    assert!(keep_live(network.name(), &listing).is_err(), "the torn one may be alive");
    let other = super::fake::name("elsewhere");
    assert!(keep_live(&other, &listing).unwrap().is_empty());
}
