//! Plans, without a kernel.

use podwire_plugin::{Attachment, Sandbox};
use podwire_spec::id::{AttachmentKey, ContainerId, IfName, NetworkName};
use podwire_spec::json::Object;
use podwire_spec::result::VersionedResult;
use podwire_spec::version::SpecVersion;

use super::*;

fn attachment() -> Attachment {
    let key = AttachmentKey {
        network: NetworkName::parse("n1").unwrap(),
        container_id: ContainerId::parse("c1").unwrap(),
        ifname: IfName::parse("eth0").unwrap(),
    };
    Attachment::new(key, Sandbox::Unspecified)
}

fn result(text: &str) -> CniResult {
    VersionedResult::parse(text, SpecVersion::V1_0_0).unwrap().into_newest().unwrap()
}

fn settings(keys: &str, mappings: &str) -> Settings {
    let runtime = format!("{{\"portMappings\":{mappings}}}");
    let runtime = Object::parse(&runtime).unwrap();
    Settings::parse(&Object::parse(keys).unwrap(), Some(&runtime), Strictness::Whole).unwrap()
}

fn described(plan: &Plan<Kernel>) -> Vec<String> {
    plan.iter().map(|resource| resource.describe()).collect()
}

const ONE: &str = r#"[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]"#;
const BOTH: &str = r#"{"cniVersion":"1.0.0",
    "interfaces":[{"name":"lo","sandbox":"/x"},{"name":"br"},{"name":"eth0","sandbox":"/x"}],
    "ips":[{"address":"127.0.0.1/8","interface":0},{"address":"::1/128"},
           {"address":"10.9.9.9/24","interface":1},{"address":"10.1.0.2/24","interface":2},
           {"address":"10.1.0.3/24","interface":2},{"address":"fd00::2/64"}]}"#;

#[test]
fn b106_without_mappings_nothing_is_planned() {
    for none in ["[]", "null"] {
        assert!(wanted(&settings("{}", none), &attachment(), &result(BOTH)).is_empty());
    }
}

#[test]
fn c13_the_containers_first_address_of_each_family_and_never_a_loopback_one() {
    let addresses = container_addresses(&attachment(), &result(BOTH));
    let texts: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["10.1.0.2/24", "fd00::2/64"]);
}

#[test]
fn the_switch_comes_before_the_mappings_and_only_where_it_is_needed() {
    let plan = |keys: &str| described(&wanted(&settings(keys, ONE), &attachment(), &result(BOTH)));
    let mapping = "mapping of tcp port 8080";
    assert_eq!(plan("{}"), ["route_localnet on the interface to 10.1.0.2", mapping]);
    assert_eq!(plan(r#"{"snat":false}"#), [mapping]);
    let v6 = result(r#"{"cniVersion":"1.0.0","ips":[{"address":"fd00::2/64"}]}"#);
    assert_eq!(described(&wanted(&settings("{}", ONE), &attachment(), &v6)), [mapping]);
}

#[test]
fn many_mappings_are_described_by_their_first_ones() {
    let many: Vec<_> =
        (1..=50).map(|port| format!("{{\"hostPort\":{port},\"containerPort\":80}}")).collect();
    let many = format!("[{}]", many.join(","));
    let plan = wanted(&settings(r#"{"snat":false}"#, &many), &attachment(), &result(BOTH));
    assert_eq!(described(&plan), ["mapping of tcp port 1, tcp port 2, tcp port 3, more"]);
}

#[test]
fn a_mapping_for_both_families_is_named_once() {
    let two = r#"[{"hostPort":1,"containerPort":2},{"hostPort":3,"containerPort":4}]"#;
    let plan = wanted(&settings(r#"{"snat":false}"#, two), &attachment(), &result(BOTH));
    assert_eq!(described(&plan), ["mapping of tcp port 1, tcp port 3"]);
}

#[test]
fn an_attachment_without_an_address_has_no_plan() {
    let none = result(r#"{"cniVersion":"1.0.0","ips":[]}"#);
    assert!(wanted(&settings("{}", ONE), &attachment(), &none).is_empty());
}

#[test]
fn del_plans_by_the_names_alone() {
    let expected = ["port mappings", "port mappings that the Go plugin made for container c1"];
    assert_eq!(described(&left(&attachment(), None)), expected);
    assert_eq!(described(&left(&attachment(), Some(&result(BOTH)))), expected);
}
