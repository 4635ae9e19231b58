//! CHECK and STATUS.

use podwire_spec::error::ErrorCode;

use super::fake::{Node, attachment, name, network, refuse, succeed};
use crate::{Checked, Existing, Network, RuntimeError, Source, Status};

fn with_disable_check(value: &str) -> Result<Network, podwire_spec::Error> {
    let text = format!(
        r#"{{"cniVersion":"1.0.0","name":"net","disableCheck":{value},"plugins":[{{"type":"main"}}]}}"#
    );
    Network::from_list_bytes(text.as_bytes())
}

#[test]
fn check_runs_in_order_with_the_recorded_result() {
    let node = Node::new();
    let network = network("net", "0.4.0", &["main", "meta"]);
    node.runtime.add(&network, &attachment("c1"), Existing::Refuse).unwrap();
    node.seen();
    for target in [
        node.runtime.check(&network, &attachment("c1"), Source::Recorded),
        node.runtime.check(&name("net"), &attachment("c1"), Source::Recorded),
    ] {
        assert_eq!(target.unwrap(), Checked::Sound);
    }
    let seen = node.seen();
    assert_eq!(seen.len(), 4);
    assert_eq!((seen[0].plugin.as_str(), seen[1].plugin.as_str()), ("main", "meta"));
    assert!(seen[0].key("prevResult").unwrap().contains("\"by\":\"meta\""));
    node.behave(|seen| match seen.plugin.as_str() {
        "main" => refuse(100, "address 10.0.0.2 is gone"),
        _ => succeed(seen),
    });
    let error = node.runtime.check(&network, &attachment("c1"), Source::Recorded).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Plugin(100));
    assert_eq!(node.calls(), ["CHECK main"]);
}

#[test]
fn b065_disable_check_in_each_of_its_spellings() {
    let node = Node::new();
    for value in ["true", "\"true\"", "\"TRUE\""] {
        let network = with_disable_check(value).unwrap();
        let checked = node.runtime.check(&network, &attachment("c1"), Source::Recorded).unwrap();
        assert_eq!(checked, Checked::Disabled, "{value}");
    }
    assert!(node.calls().is_empty());
    for value in ["\"yes\"", "1"] {
        assert!(
            with_disable_check(value).unwrap_err().to_string().contains("disableCheck"),
            "{value}"
        );
    }
}

#[test]
fn b065_disable_check_counts_also_when_it_came_later() {
    let node = Node::new();
    node.runtime
        .add(&with_disable_check("false").unwrap(), &attachment("c1"), Existing::Refuse)
        .unwrap();
    node.seen();
    let now = with_disable_check("true").unwrap();
    assert_eq!(
        node.runtime.check(&now, &attachment("c1"), Source::Recorded).unwrap(),
        Checked::Disabled
    );
    assert!(node.calls().is_empty());
}

#[test]
fn b065_check_needs_0_4_0_and_a_finished_add() {
    let node = Node::new();
    let old = network("net", "0.3.1", &["main"]);
    let error = node.runtime.check(&old, &attachment("c1"), Source::Recorded).unwrap_err();
    assert_eq!(error.code(), ErrorCode::IncompatibleVersion);
    assert!(error.to_string().contains("does not support the CHECK command"), "{error}");
    let new = network("net", "1.0.0", &["main"]);
    let error = node.runtime.check(&new, &attachment("c1"), Source::Recorded).unwrap_err();
    assert!(matches!(error, RuntimeError::NotAttached(_)), "{error}");
    node.plant("results/net-c1-eth0", b"{");
    let error = node.runtime.check(&new, &attachment("c1"), Source::Recorded).unwrap_err();
    assert!(matches!(error, RuntimeError::Record { .. }), "{error}");
    assert!(node.calls().is_empty());
}

#[test]
fn status_asks_in_order_and_keeps_the_code() {
    let node = Node::new();
    let network = network("net", "1.1.0", &["main", "meta", "last"]);
    assert_eq!(node.runtime.status(&network).unwrap(), Status::Ready);
    let seen = node.seen();
    assert_eq!(seen.len(), 3);
    assert_eq!((seen[0].variable("CNI_CONTAINERID"), seen[0].variable("CNI_NETNS")), ("", ""));
    assert_eq!(seen[0].variable("CNI_PATH"), "/fake");
    node.behave(|seen| match seen.plugin.as_str() {
        "meta" => refuse(50, "pool is full"),
        _ => succeed(seen),
    });
    let error = node.runtime.status(&network).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unavailable);
    assert_eq!(node.calls(), ["STATUS main", "STATUS meta"]);
    let older = super::fake::network("net", "1.0.0", &["main"]);
    assert_eq!(node.runtime.status(&older).unwrap(), Status::NotAsked);
    assert!(node.calls().is_empty());
}
