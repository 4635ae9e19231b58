//! ADD and its rollback.

use podwire_spec::error::ErrorCode;

use super::fake::{Namespace, Node, attachment, full_attachment, network, refuse, succeed};
use crate::{Attachment, Existing, Notice, Rollback, RuntimeError, Source};

const RESULT: &str = "cache/results/net-c1-eth0";
const INTENT: &str = "cache/podwire/intents/net:c1:eth0";

#[test]
fn plugins_run_in_order_and_each_gets_the_result_before_it() {
    let node = Node::new();
    let network = network("net", "1.1.0", &["main", "meta"]);
    let added = node.runtime.add(&network, &full_attachment("c1"), Existing::Refuse).unwrap();
    assert_eq!(added.raw, r#"{"cniVersion":"1.1.0","by":"meta"}"#);
    let seen = node.seen();
    assert_eq!((seen[0].plugin.as_str(), seen[1].plugin.as_str()), ("main", "meta"));
    assert_eq!(seen[0].key("prevResult"), None);
    assert_eq!(seen[1].key("prevResult").unwrap(), r#"{"cniVersion":"1.1.0","by":"main"}"#);
    assert_eq!(seen[1].key("runtimeConfig").unwrap(), r#"{"mac":"00:11:22:33:44:55"}"#);
    for (variable, value) in [
        ("CNI_CONTAINERID", "c1"),
        ("CNI_IFNAME", "eth0"),
        ("CNI_NETNS", "/run/netns/nowhere"),
        ("CNI_ARGS", "K=V;L=W"),
        ("CNI_PATH", "/fake"),
    ] {
        assert_eq!(seen[1].variable(variable), value);
    }
    assert_eq!(node.files(), [RESULT, "locks/container/c1", "locks/network/net"]);
    let stored = node.runtime.store().list().unwrap().attachments.remove(0).record;
    assert_eq!(stored.config.unwrap(), network.list().raw());
    assert_eq!(stored.args, full_attachment("c1").args);
    assert_eq!(stored.capability_args, full_attachment("c1").capability_args);
}

#[test]
fn b008_the_intent_is_on_the_disk_before_the_first_plugin_runs() {
    let node = Node::new();
    let intent = node.directory.path().join(INTENT);
    let result = node.directory.path().join(RESULT);
    node.behave(move |seen| {
        let text = std::fs::read_to_string(&intent).unwrap();
        assert!(text.contains(r#""state":"adding""#) && text.contains("/run/netns/nowhere"));
        assert!(!result.exists());
        succeed(seen)
    });
    node.runtime
        .add(&network("net", "1.1.0", &["main"]), &attachment("c1"), Existing::Refuse)
        .unwrap();
}

#[test]
fn b017_all_executables_are_found_before_the_first_runs() {
    let node = Node::new();
    node.lose("gone");
    let network = network("net", "1.1.0", &["main", "gone", "meta"]);
    let error = node.runtime.add(&network, &attachment("c1"), Existing::Refuse).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("\"gone\"") && text.contains("/fake (not there)"), "{text}");
    assert!(node.calls().is_empty());
    assert!(node.files().is_empty());
}

#[test]
fn a_failed_add_is_rolled_back_over_the_whole_list_in_reverse() {
    let node = Node::new();
    node.behave(|seen| match (seen.command(), seen.plugin.as_str()) {
        ("ADD", "second") => refuse(11, "no lease"),
        _ => succeed(seen),
    });
    let network = network("net", "1.1.0", &["first", "second", "third"]);
    let error = node.runtime.add(&network, &full_attachment("c1"), Existing::Refuse).unwrap_err();
    assert_eq!(error.code(), ErrorCode::TryAgainLater);
    let text = error.to_string();
    assert!(text.contains("net/c1/eth0") && text.contains("\"second\""), "{text}");
    assert!(text.contains("no lease") && text.contains("second was asked"), "{text}");
    assert!(matches!(error, RuntimeError::AddFailed { rollback: Rollback::Done, .. }));
    let seen = node.seen();
    let calls: Vec<_> =
        seen.iter().map(|seen| format!("{} {}", seen.command(), seen.plugin)).collect();
    assert_eq!(calls, ["ADD first", "ADD second", "DEL third", "DEL second", "DEL first"]);
    assert_eq!(seen[2].key("prevResult"), None);
    assert_eq!(seen[2].variable("CNI_ARGS"), "K=V;L=W");
    assert!(node.files().is_empty(), "{:?}", node.files());
    assert!(matches!(node.notices()[..], [Notice::RollingBack { .. }]));
}

#[test]
fn b007_a_rollback_that_fails_leaves_a_pending_deletion_for_del() {
    let node = Node::new();
    node.behave(|seen| match seen.command() {
        "ADD" => refuse(999, "boom"),
        _ => refuse(999, "bust"),
    });
    let network = network("net", "1.1.0", &["first", "second"]);
    let error = node.runtime.add(&network, &full_attachment("c1"), Existing::Refuse).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("boom") && text.contains("bust") && text.contains("pending"), "{text}");
    assert_eq!(node.calls(), ["ADD first", "DEL second"]);
    let files = node.files();
    assert!(files.contains(&INTENT.to_owned()), "{files:?}");
    let listed = node.runtime.store().list().unwrap().attachments.remove(0).record;
    assert_eq!(listed.state.to_string(), "delete pending");

    node.behave(succeed);
    let key = attachment("c1").key(network.name());
    let plain = Attachment::new(key.container_id, key.ifname);
    node.runtime.del(&key.network, &plain, Source::Recorded).unwrap();
    let seen = node.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].variable("CNI_ARGS"), "K=V;L=W");
    assert_eq!(seen[0].variable("CNI_NETNS"), "/run/netns/nowhere");
    assert!(node.files().is_empty(), "{:?}", node.files());
}

#[test]
fn code_3_of_the_first_plugin_asks_for_no_cleanup() {
    let node = Node::new();
    node.behave(|seen| match seen.command() {
        "ADD" => refuse(3, "no such container"),
        _ => succeed(seen),
    });
    let network = network("net", "1.1.0", &["first", "second"]);
    let error = node.runtime.add(&network, &attachment("c1"), Existing::Refuse).unwrap_err();
    assert!(matches!(error, RuntimeError::AddFailed { rollback: Rollback::NotNeeded, .. }));
    assert_eq!(node.calls(), ["ADD first"]);
    assert!(node.files().is_empty());
}

#[test]
fn b043_b044_success_with_no_result_is_a_failure() {
    for printed in
        ["", "null", "[]", r#"{"cniVersion":"1.0.0"}{"code":7}"#, r#"{"cniVersion":"9.9.9"}"#]
    {
        let node = Node::new();
        node.behave(move |seen| match seen.command() {
            "ADD" => Ok(printed.to_owned()),
            _ => succeed(seen),
        });
        let network = network("net", "1.0.0", &["first"]);
        let error = node.runtime.add(&network, &attachment("c1"), Existing::Refuse).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("\"first\"") && text.contains("result"), "{printed}: {text}");
        assert_eq!(node.calls(), ["ADD first", "DEL first"], "{printed}");
        assert!(node.files().is_empty());
    }
}

#[test]
fn an_error_object_is_an_error_also_with_exit_status_0() {
    let node = Node::new();
    node.behave(|seen| match seen.command() {
        "ADD" => Ok(r#"{"cniVersion":"1.0.0","code":11,"msg":"later"}"#.to_owned()),
        _ => succeed(seen),
    });
    let network = network("net", "1.0.0", &["first"]);
    let error = node.runtime.add(&network, &attachment("c1"), Existing::Refuse).unwrap_err();
    assert_eq!(error.code(), ErrorCode::TryAgainLater);
    assert!(error.to_string().contains("later (code 11, exit status 0)"), "{error}");
}

#[test]
fn b044_the_next_plugin_gets_the_version_of_the_list() {
    let node = Node::new();
    node.behave(|seen| match (seen.command(), seen.plugin.as_str()) {
        ("ADD", "old") => Ok(r#"{"ips":[{"version":"4","address":"10.0.0.2/24"}]}"#.to_owned()),
        ("ADD", "new") => {
            Ok(r#"{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.2/24"}]}"#.to_owned())
        }
        _ => succeed(seen),
    });
    let network = network("net", "0.3.1", &["old", "new", "last"]);
    node.runtime.add(&network, &attachment("c1"), Existing::Refuse).unwrap();
    let seen = node.seen();
    assert!(seen[1].key("prevResult").unwrap().contains(r#""cniVersion":"0.3.1""#));
    let third = seen[2].key("prevResult").unwrap();
    assert!(
        third.contains(r#""cniVersion":"0.3.1""#) && third.contains(r#""version":"4""#),
        "{third}"
    );
}

#[test]
fn b038_a_second_add_is_refused_or_replaces_what_is_dead() {
    let node = Node::new();
    let network = network("net", "1.1.0", &["main"]);
    let mut dead = attachment("c1");
    dead.netns = Some(node.directory.path().join("gone"));
    node.runtime.add(&network, &dead, Existing::Refuse).unwrap();
    let error = node.runtime.add(&network, &dead, Existing::Refuse).unwrap_err();
    assert!(error.to_string().contains("attached already"), "{error}");
    node.seen();
    node.runtime.add(&network, &dead, Existing::ReplaceDead).unwrap();
    assert_eq!(node.calls(), ["DEL main", "ADD main"]);
    assert!(matches!(node.notices()[..], [Notice::ReplacingDead { .. }]));

    let mut alive = attachment("c2");
    let namespace = Namespace::new();
    alive.netns = Some(namespace.path());
    node.runtime.add(&network, &alive, Existing::Refuse).unwrap();
    let error = node.runtime.add(&network, &alive, Existing::ReplaceDead).unwrap_err();
    assert!(matches!(error, RuntimeError::AlreadyAttached { unfinished: false, .. }));
}

#[test]
fn bad_requests_change_nothing() {
    let node = Node::new();
    let network = network("net", "1.1.0", &["main"]);
    let mut without = attachment("c1");
    without.netns = None;
    let error = node.runtime.add(&network, &without, Existing::Refuse).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidEnvironment);
    let long = attachment(&"c".repeat(300));
    assert!(node.runtime.add(&network, &long, Existing::Refuse).is_err());
    assert!(node.calls().is_empty() && node.files().is_empty());
}

#[test]
fn a_store_that_cannot_be_written_stops_before_the_first_plugin() {
    let node = Node::new();
    node.plant("podwire", b"a file in the way");
    let network = network("net", "1.1.0", &["main"]);
    let error = node.runtime.add(&network, &attachment("c1"), Existing::Refuse).unwrap_err();
    assert!(error.to_string().contains("podwire/intents"), "{error}");
    assert!(node.calls().is_empty());
}

#[test]
fn a_result_that_cannot_be_stored_is_rolled_back() {
    let node = Node::new();
    node.plant("results", b"a file in the way");
    let network = network("net", "1.1.0", &["main"]);
    let error = node.runtime.add(&network, &attachment("c1"), Existing::Refuse).unwrap_err();
    assert!(matches!(error, RuntimeError::AddFailed { .. }), "{error}");
    assert_eq!(node.calls(), ["ADD main", "DEL main"]);
}

#[test]
fn b038_a_plugin_that_found_it_there_already_gets_no_del() {
    let words = "10.0.0.2 has been allocated to c1, duplicate allocation is not allowed";
    for (code, msg) in [(102, "interface eth0 already exists"), (999, words)] {
        let node = Node::new();
        node.behave(move |seen| match (seen.command(), seen.plugin.as_str()) {
            ("ADD", "first") => refuse(code, msg),
            _ => succeed(seen),
        });
        let network = network("net", "1.1.0", &["first", "second"]);
        let error = node.runtime.add(&network, &attachment("c1"), Existing::Refuse).unwrap_err();
        assert!(matches!(error, RuntimeError::AddFailed { rollback: Rollback::NotNeeded, .. }));
        assert_eq!(node.calls(), ["ADD first"], "{msg}");
        assert!(node.files().is_empty(), "{:?}", node.files());
    }
}

#[test]
fn b038_a_later_plugin_that_found_it_there_rolls_back_those_before_it() {
    let node = Node::new();
    node.behave(|seen| match (seen.command(), seen.plugin.as_str()) {
        ("ADD", "third") => refuse(102, "it is there already"),
        _ => succeed(seen),
    });
    let network = network("net", "1.1.0", &["first", "second", "third", "fourth"]);
    node.runtime.add(&network, &attachment("c1"), Existing::Refuse).unwrap_err();
    assert_eq!(node.calls(), ["ADD first", "ADD second", "ADD third", "DEL second", "DEL first"]);
    assert!(node.files().is_empty(), "{:?}", node.files());
}

#[test]
fn b038_an_interface_that_is_there_stops_add_before_anything_runs() {
    let node = Node::new();
    let namespace = Namespace::new();
    let netns = podwire_sys::netns::NetNs::open(namespace.path()).unwrap();
    let made = netns.run(|| {
        let mut ip = std::process::Command::new("ip");
        ip.args(["link", "add", "eth0", "type", "veth", "peer", "name", "other"])
            .status()
            .unwrap()
            .success()
    });
    assert!(made.unwrap());
    let mut attachment = attachment("c1");
    attachment.netns = Some(namespace.path());
    let network_of = |plugin: &str| network("net", "1.1.0", &[plugin]);
    let error = node.runtime.add(&network_of("bridge"), &attachment, Existing::Refuse).unwrap_err();
    assert!(matches!(error, RuntimeError::InterfaceExists { .. }));
    assert_eq!(error.code(), ErrorCode::ALREADY_EXISTS);
    assert!(error.to_string().contains("interface eth0 already exists"), "{error}");
    assert!(node.calls().is_empty());
    assert!(node.files().iter().all(|file| file.starts_with("locks/")), "{:?}", node.files());
    // A plugin that makes no interface works on the one that is there.
    node.runtime.add(&network_of("tuning"), &attachment, Existing::Refuse).unwrap();
}

#[test]
fn the_hosts_own_namespace_is_refused_with_nothing_recorded_and_del_never_sees_it() {
    let node = Node::new();
    let network = network("net", "1.1.0", &["main"]);
    let mut own = attachment("c1");
    own.netns = Some("/proc/self/ns/net".into());
    let error = node.runtime.add(&network, &own, Existing::Refuse).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidNamespace);
    assert!(node.calls().is_empty() && node.files().is_empty());
    node.runtime.del(&network, &own, Source::Recorded).unwrap();
    assert_eq!(node.seen()[0].variable("CNI_NETNS"), "");
}
