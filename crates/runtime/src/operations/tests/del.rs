//! DEL.

use super::fake::{Node, attachment, full_attachment, name, network, refuse, succeed};
use crate::{Attachment, Existing, Network, Notice, RuntimeError, Source};

fn added(node: &Node, network: &Network, attachment: &Attachment) {
    node.runtime.add(network, attachment, Existing::Refuse).unwrap();
    node.seen();
}

fn bare(id: &str) -> Attachment {
    let with_namespace = attachment(id);
    Attachment::new(with_namespace.container_id, with_namespace.ifname)
}

#[test]
fn del_runs_in_reverse_with_what_was_recorded() {
    let node = Node::new();
    let before = network("net", "1.1.0", &["main", "meta"]);
    added(&node, &before, &full_attachment("c1"));
    let now = network("net", "1.1.0", &["other"]);
    let deleted = node.runtime.del(&now, &bare("c1"), Source::Recorded).unwrap();
    assert!(deleted.was_recorded);
    let seen = node.seen();
    assert_eq!((seen[0].plugin.as_str(), seen[1].plugin.as_str()), ("meta", "main"));
    for seen in &seen {
        assert_eq!(seen.key("prevResult").unwrap(), r#"{"cniVersion":"1.1.0","by":"meta"}"#);
        assert_eq!(seen.key("runtimeConfig").unwrap(), r#"{"mac":"00:11:22:33:44:55"}"#);
        assert_eq!(seen.variable("CNI_NETNS"), "/run/netns/nowhere");
        assert_eq!(seen.variable("CNI_ARGS"), "K=V;L=W");
    }
    assert!(node.files().is_empty(), "{:?}", node.files());
}

#[test]
fn the_callers_configuration_counts_when_asked_for() {
    let node = Node::new();
    added(&node, &network("net", "1.1.0", &["main"]), &full_attachment("c1"));
    let mut given = attachment("c1");
    given.netns = Some("/run/netns/other".into());
    let now = network("net", "1.1.0", &["other"]);
    node.runtime.del(&now, &given, Source::Given).unwrap();
    let seen = node.seen();
    assert_eq!(seen[0].plugin, "other");
    assert_eq!(
        (seen[0].variable("CNI_ARGS"), seen[0].variable("CNI_NETNS")),
        ("", "/run/netns/other")
    );
    assert!(seen[0].key("prevResult").is_some());
}

#[test]
fn b040_an_empty_namespace_path_says_that_it_is_gone_and_del_repeats() {
    let node = Node::new();
    let network = network("net", "1.1.0", &["main"]);
    added(&node, &network, &attachment("c1"));
    let mut gone = bare("c1");
    gone.netns = Some("".into());
    node.runtime.del(&network, &gone, Source::Recorded).unwrap();
    assert_eq!(node.seen()[0].variable("CNI_NETNS"), "");
    let again = node.runtime.del(&network, &gone, Source::Recorded).unwrap();
    assert!(!again.was_recorded);
    assert_eq!(node.calls(), ["DEL main"]);
}

#[test]
fn b020_a_late_del_does_not_follow_another_path_than_the_recorded_one() {
    let node = Node::new();
    let network = network("net", "1.1.0", &["main"]);
    added(&node, &network, &attachment("old"));
    let mut other = bare("old");
    other.netns = Some("/run/netns/of-the-new-one".into());
    node.runtime.del(&network, &other, Source::Recorded).unwrap();
    assert_eq!(node.seen()[0].variable("CNI_NETNS"), "/run/netns/nowhere");
}

#[test]
fn b008_without_a_record_the_given_list_still_runs() {
    let node = Node::new();
    let network = network("net", "1.1.0", &["main", "meta"]);
    let deleted = node.runtime.del(&network, &full_attachment("c1"), Source::Recorded).unwrap();
    assert!(!deleted.was_recorded);
    let seen = node.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].key("prevResult"), None);
    assert_eq!(seen[0].variable("CNI_ARGS"), "K=V;L=W");
    assert!(!node.runtime.del(&name("net"), &bare("c1"), Source::Recorded).unwrap().was_recorded);
    assert!(node.calls().is_empty() && node.files().is_empty());
}

#[test]
fn b017_del_stops_at_a_vanished_plugin_keeps_its_record_and_succeeds_later() {
    let node = Node::new();
    let network = network("net", "1.1.0", &["bridge", "gone", "portmap"]);
    added(&node, &network, &attachment("c1"));
    node.lose("gone");
    for _ in 0..3 {
        let error = node.runtime.del(&network, &bare("c1"), Source::Recorded).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, RuntimeError::PluginNotFound { .. }));
        assert!(text.contains("\"gone\"") && text.contains("/fake"), "{text}");
        assert_eq!(node.calls(), ["DEL portmap"]);
        assert!(node.files().contains(&"cache/results/net-c1-eth0".to_owned()));
    }
    node.restore("gone");
    node.runtime.del(&network, &bare("c1"), Source::Recorded).unwrap();
    assert_eq!(node.calls(), ["DEL portmap", "DEL gone", "DEL bridge"]);
    assert!(node.files().is_empty());
}

#[test]
fn del_stops_at_the_first_failure() {
    let node = Node::new();
    let network = network("net", "1.1.0", &["bridge", "portmap"]);
    added(&node, &network, &attachment("c1"));
    node.behave(|seen| match seen.plugin.as_str() {
        "portmap" => refuse(11, "busy"),
        _ => succeed(seen),
    });
    assert!(node.runtime.del(&network, &bare("c1"), Source::Recorded).is_err());
    assert_eq!(node.calls(), ["DEL portmap"]);
    assert_eq!(node.runtime.store().list().unwrap().attachments.len(), 1);
}

#[test]
fn torn_records_are_set_aside_and_block_nothing() {
    let node = Node::new();
    let network = network("net", "1.1.0", &["main"]);
    for torn in ["", "{\"kind\":\"cniCacheV1\",\"con", "\0\0\0\0"] {
        node.plant("results/net-c1-eth0", torn.as_bytes());
        node.runtime.del(&network, &attachment("c1"), Source::Recorded).unwrap();
        let seen = node.seen();
        assert_eq!((seen.len(), seen[0].key("prevResult")), (1, None));
        assert!(matches!(&node.notices()[..], [Notice::SetAside { .. }]));
    }
    assert_eq!(node.runtime.store().quarantined().unwrap().len(), 3);
}

#[test]
fn a_record_with_an_unusable_configuration_falls_back_to_the_given_one() {
    let node = Node::new();
    let record = r#"{"kind":"cniCacheV1","containerId":"c1","config":"e30=","ifName":"eth0",
        "networkName":"net","cniArgs":[["A","B"]],"result":{"cniVersion":"1.1.0"}}"#;
    node.plant("results/net-c1-eth0", record.as_bytes());
    let error = node.runtime.del(&name("net"), &bare("c1"), Source::Recorded).unwrap_err();
    assert!(error.to_string().contains("configuration"), "{error}");
    node.notices();
    let network = network("net", "1.1.0", &["main"]);
    node.runtime.del(&network, &bare("c1"), Source::Recorded).unwrap();
    assert_eq!(node.seen()[0].variable("CNI_ARGS"), "A=B");
    assert!(matches!(&node.notices()[..], [Notice::RecordedConfigurationUnusable { .. }]));
    assert!(node.files().is_empty());
}

#[test]
fn b064_a_version_raised_or_lowered_between_add_and_del_is_no_obstacle() {
    // Recorded by libcni before it kept configurations: only the file is there.
    for (recorded, now, prev_result) in [
        (r#"{"ip4":{"ip":"10.0.0.2/24"}}"#, "0.3.1", false),
        (r#"{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.2/24"}}"#, "1.1.0", true),
        (r#"{"cniVersion":"0.2.0"}"#, "0.4.0", true),
        (r#"{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.2/24"}]}"#, "0.4.0", true),
        (r#"{"cniVersion":"7.0.0"}"#, "1.0.0", false),
    ] {
        let node = Node::new();
        node.plant("results/net-c1-eth0", recorded.as_bytes());
        let network = network("net", now, &["main"]);
        node.runtime.del(&network, &attachment("c1"), Source::Recorded).unwrap();
        let seen = node.seen();
        assert_eq!(seen[0].key("prevResult").is_some(), prev_result, "{recorded} {now}");
        if let Some(text) = seen[0].key("prevResult") {
            assert!(text.contains(&format!(r#""cniVersion":"{now}""#)), "{text}");
        }
        assert!(node.files().is_empty());
    }
}

#[test]
fn b064_the_recorded_version_runs_even_if_the_file_was_changed() {
    let node = Node::new();
    added(&node, &network("net", "1.0.0", &["main"]), &attachment("c1"));
    let lowered = network("net", "0.3.1", &["main"]);
    node.runtime.del(&lowered, &bare("c1"), Source::Recorded).unwrap();
    assert_eq!(node.seen()[0].key("cniVersion").unwrap(), "\"1.0.0\"");
}

#[test]
fn b046_two_attachments_with_one_libcni_name_are_told_apart() {
    let node = Node::new();
    let (first, second) = (network("a-b", "1.1.0", &["one"]), network("a", "1.1.0", &["two"]));
    added(&node, &first, &attachment("c"));
    added(&node, &second, &attachment("b-c"));
    node.runtime.del(&name("a-b"), &bare("c"), Source::Recorded).unwrap();
    assert_eq!(node.calls(), ["DEL one"]);
    node.runtime.check(&name("a"), &bare("b-c"), Source::Recorded).unwrap();
    assert_eq!(node.calls(), ["CHECK two"]);
    node.runtime.del(&name("a"), &bare("b-c"), Source::Recorded).unwrap();
    assert_eq!(node.calls(), ["DEL two"]);
    assert!(node.files().is_empty());
}

#[test]
fn folder_plugins_that_libcni_did_not_record_are_reached() {
    let node = Node::new();
    let folder = node.directory.path().join("net.d");
    std::fs::create_dir_all(folder.join("net")).unwrap();
    let text = r#"{"cniVersion":"1.1.0","name":"net","plugins":[{"type":"main"}]}"#;
    std::fs::write(folder.join("net.conflist"), text).unwrap();
    std::fs::write(folder.join("net/x.conf"), r#"{"type":"extra"}"#).unwrap();
    let record = r#"{"kind":"cniCacheV1","containerId":"c1","ifName":"eth0","networkName":"net",
        "config":"eyJjbmlWZXJzaW9uIjoiMS4xLjAiLCJuYW1lIjoibmV0IiwicGx1Z2lucyI6W3sidHlwZSI6Im1haW4ifV19",
        "result":{"cniVersion":"1.1.0"}}"#;
    node.plant("results/net-c1-eth0", record.as_bytes());
    let loaded = node.runtime.network("net").unwrap();
    node.runtime.del(&loaded, &bare("c1"), Source::Recorded).unwrap();
    assert_eq!(node.calls(), ["DEL extra", "DEL main"]);

    node.plant("results/net-c1-eth0", record.as_bytes());
    let changed = network("net", "1.1.0", &["other"]);
    node.runtime.del(&changed, &bare("c1"), Source::Recorded).unwrap();
    assert_eq!(node.calls(), ["DEL main"]);

    node.runtime.add(&loaded, &attachment("c2"), Existing::Refuse).unwrap();
    node.calls();
    node.runtime.del(&name("net"), &bare("c2"), Source::Recorded).unwrap();
    assert_eq!(node.calls(), ["DEL extra", "DEL main"]);
}

#[test]
fn names_that_no_add_accepts_have_nothing_to_delete() {
    let node = Node::new();
    let network = network("net", "1.1.0", &["main"]);
    node.runtime.del(&network, &attachment(&"c".repeat(300)), Source::Recorded).unwrap();
    assert!(node.calls().is_empty());
}

#[test]
fn b008_a_deletion_is_on_the_disk_before_its_first_plugin_runs() {
    let node = Node::new();
    let network = network("net", "1.1.0", &["main"]);
    added(&node, &network, &full_attachment("c1"));
    let intent = node.directory.path().join("cache/podwire/intents/net:c1:eth0");
    node.behave(move |_| {
        assert!(std::fs::read_to_string(&intent).unwrap().contains("delete pending"));
        refuse(999, "killed here")
    });
    node.runtime.del(&network, &bare("c1"), Source::Recorded).unwrap_err();
    let listing = node.runtime.store().list().unwrap();
    assert_eq!(listing.attachments.len(), 1);
    assert_eq!(listing.attachments[0].record.state, crate::store::State::DeletePending);
    assert!(crate::live::keep_live(network.name(), &listing).unwrap().iter().next().is_none());
    let error = node.runtime.check(&network, &bare("c1"), Source::Recorded).unwrap_err();
    assert!(error.to_string().contains("a DEL began and did not finish"), "{error}");
    node.seen();
    node.behave(succeed);
    node.runtime.del(&network, &bare("c1"), Source::Recorded).unwrap();
    let seen = node.seen();
    assert_eq!(seen[0].key("prevResult").unwrap(), r#"{"cniVersion":"1.1.0","by":"main"}"#);
    assert!(node.files().is_empty(), "{:?}", node.files());
}
