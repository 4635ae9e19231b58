//! VERSION and validation.

use podwire_spec::version::SpecVersion;

use super::fake::{Node, network, refuse, succeed};
use crate::operations::Severity;

#[allow(clippy::unnecessary_wraps, reason = "it is one of the answers")]
fn supports(versions: &str) -> super::fake::Answer {
    Ok(format!(r#"{{"cniVersion":"1.0.0","supportedVersions":[{versions}]}}"#))
}

#[test]
fn version_asks_each_program_once_as_libcni_asks() {
    let node = Node::new();
    node.behave(|seen| match seen.plugin.as_str() {
        "oldest" => refuse(4, "unknown CNI_COMMAND: VERSION"),
        "mute" => Ok(String::new()),
        _ => supports(r#""0.4.0","1.0.0""#),
    });
    let network = network("net", "1.0.0", &["main", "oldest", "main", "mute"]);
    let versions = node.runtime.versions(&network);
    let seen = node.seen();
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[0].request, r#"{"cniVersion":"1.1.0"}"#);
    assert_eq!(
        (seen[0].variable("CNI_COMMAND"), seen[0].variable("CNI_NETNS")),
        ("VERSION", "dummy")
    );
    assert!(versions[0].outcome.as_ref().unwrap().supports(SpecVersion::V1_0_0));
    assert_eq!(versions[1].outcome.as_ref().unwrap().supported, ["0.1.0"]);
    let error = versions[2].outcome.as_ref().unwrap_err().to_string();
    assert!(error.contains("\"mute\"") && error.contains("version"), "{error}");
}

#[test]
fn b118_each_finding_names_file_key_and_what_to_do() {
    let node = Node::new();
    node.lose("absent");
    node.behave(|seen| match seen.plugin.as_str() {
        "old" => supports(r#""0.3.1""#),
        "fails" => Err((1, String::new())),
        _ => supports(r#""1.0.0""#),
    });
    let directory = node.directory.path().join("net.d");
    std::fs::create_dir(&directory).unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.join(name), text).unwrap();
    write(
        "10-net.conflist",
        r#"{"cniVersion":"1.0.0","name":"net","disabelCheck":true,"plugins":[
            {"type":"old"},{"type":"absent"},{"type":"fails"},
            {"type":"good","ipam":{"range":"x"},"capabilities":{"portmappings":true}},
            {"type":"good","ipam":{"type":"absent"}}]}"#,
    );
    write("20-bad.conflist", "{\"name\":\"x\",}");
    write("30-net.conf", r#"{"cniVersion":"1.0.0","name":"net","type":"good"}"#);
    let findings = node.runtime.validate(&directory).unwrap();
    let lines: Vec<_> = findings.iter().map(ToString::to_string).collect();
    let has = |severity: Severity, parts: &[&str]| {
        findings.iter().any(|finding| {
            let line = finding.to_string();
            finding.severity == severity && parts.iter().all(|part| line.contains(part))
        })
    };
    for (severity, parts) in [
        (
            Severity::Error,
            &["10-net", "plugins[0].type", "does not support version 1.0.0", "0.3.1"][..],
        ),
        (Severity::Error, &["plugins[1].type", "absent", "/fake"]),
        (Severity::Error, &["plugins[2].type", "fails", "exit status 1"]),
        (Severity::Warning, &["plugins[3].ipam.type", "missing"]),
        (Severity::Warning, &["plugins[3].capabilities.portmappings", "known are"]),
        (Severity::Warning, &["10-net.conflist:1:", "disabelCheck", "disableCheck"]),
        (Severity::Error, &["20-bad.conflist:1:12", "comma"]),
        (Severity::Warning, &["30-net.conf", "more than one file", "10-net"]),
    ] {
        assert!(has(severity, parts), "{parts:?} not in {lines:#?}");
    }
    assert!(lines.iter().all(|line| !line.contains('\n')));
    write(
        "40-good.conflist",
        r#"{"cniVersion":"1.0.0","name":"good","plugins":[{"type":"good"}]}"#,
    );
    assert!(node.runtime.validate(&directory.join("40-good.conflist")).unwrap().is_empty());
    node.behave(succeed);
}

#[test]
fn b118_a_list_in_a_conf_file_is_told_apart() {
    let node = Node::new();
    let path = node.directory.path().join("x.conf");
    std::fs::write(&path, r#"{"name":"x","plugins":[{"type":"a"}]}"#).unwrap();
    let findings = node.runtime.validate(&path).unwrap();
    assert!(findings[0].to_string().contains(".conflist"), "{}", findings[0]);
}
