//! Configurations as they are found in the field, one file a case under
//! `data/`, loaded as a runtime loads them.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

use podwire_spec::config::{NetworkList, PluginConfig};
use podwire_spec::error::Error;
use podwire_spec::id::NetworkName;
use podwire_spec::json::Object;
use podwire_spec::request::{CapabilityArguments, PluginRequest, RequestInputs, build};
use podwire_spec::version::SpecVersion;

macro_rules! data {
    ($name:literal) => {
        include_bytes!(concat!("data/", $name, ".json")).as_slice()
    };
}

fn list(bytes: &[u8]) -> NetworkList {
    let list = NetworkList::from_bytes(bytes).unwrap();
    list.require_plugins().unwrap();
    assert_eq!(list.record(), bytes, "the record is the file");
    list
}

fn single(bytes: &[u8]) -> NetworkList {
    NetworkList::from_plugin_bytes(bytes, None).unwrap()
}

fn types(list: &NetworkList) -> Vec<&str> {
    list.plugins.iter().map(|plugin| plugin.plugin_type.as_str()).collect()
}

fn requests(list: &NetworkList, capabilities: &str) -> Vec<String> {
    let arguments = CapabilityArguments::parse(capabilities).unwrap();
    let inputs =
        RequestInputs { capability_arguments: Some(&arguments), ..RequestInputs::default() };
    list.plugins.iter().map(|plugin| build(plugin, list, inputs).unwrap()).collect()
}

fn refusal(text: impl AsRef<[u8]>) -> (u32, String) {
    let error = NetworkList::from_bytes(text.as_ref()).unwrap_err();
    let error = Error::from(error);
    (error.code.number(), error.to_string())
}

const CAPABILITIES: &str =
    r#"{"portMappings":[{"hostPort":80}],"bandwidth":{"ingressRate":1},"mac":"x"}"#;

#[test]
fn c01_flannel_delegates_and_capabilities_reach_those_who_declare_them() {
    let list = list(data!("c01"));
    assert_eq!(types(&list), ["flannel", "portmap", "bandwidth"]);
    assert_eq!(
        requests(&list, CAPABILITIES),
        [
            r#"{"cniVersion":"1.0.0","delegate":{"hairpinMode":true,"forceAddress":true,"isDefaultGateway":true},"name":"cbr0","type":"flannel"}"#,
            r#"{"capabilities":{"portMappings":true},"cniVersion":"1.0.0","name":"cbr0","runtimeConfig":{"portMappings":[{"hostPort":80}]},"type":"portmap"}"#,
            r#"{"capabilities":{"bandwidth":true},"cniVersion":"1.0.0","name":"cbr0","runtimeConfig":{"bandwidth":{"ingressRate":1}},"type":"bandwidth"}"#,
        ]
    );
}

#[test]
fn c02_kindnet_loads() {
    let list = list(data!("c02"));
    assert_eq!((list.version, types(&list)), (SpecVersion::V0_3_1, vec!["ptp", "portmap"]));
    assert_eq!(list.plugins[0].ipam_type.as_deref(), Some("host-local"));
}

#[test]
fn c04_fields_of_a_plugin_are_not_the_loaders_to_check() {
    let list = list(data!("c04"));
    assert!(list.disable_check);
    assert_eq!(types(&list), ["aws-cni", "egress-cni", "portmap", "cilium-cni"]);
    let request = &requests(&list, "{}")[1];
    assert!(request.contains(r#""mtu":"9001""#) && request.contains(r#""enabled":"true""#));
    assert!(request.contains(r#""name":"aws-cni""#), "the list's name replaces the plugin's");
    assert_eq!(list.plugins[1].name.as_deref(), Some("egress-cni"));
}

#[test]
fn c05_a_template_is_json_and_loads() {
    assert_eq!(types(&list(data!("c05"))), ["aws-cni", "portmap"]);
}

#[test]
fn c07_the_ipam_of_a_foreign_plugin_passes() {
    assert!(requests(&list(data!("c07")), "{}")[0].contains(r#""subnet":"usePodCidr""#));
}

#[test]
fn c08_ipam_may_have_the_type_of_its_plugin() {
    let list = list(data!("c08"));
    assert_eq!(types(&list), ["kube-ovn", "portmap", "cilium-cni"]);
    assert_eq!(list.plugins[0].ipam_type.as_deref(), Some("kube-ovn"));
}

#[test]
fn c10_unknown_keys_of_a_list_stay_in_the_record_and_out_of_requests() {
    let loaded = list(data!("c10"));
    assert_eq!(types(&loaded), ["bridge", "portmap", "firewall", "tuning"]);
    assert!(requests(&loaded, "{}").iter().all(|request| !request.contains("nerdctl/")));
    assert!(loaded.merged().contains(r#""nerdctlID":"17f29b07""#));
    let number = String::from_utf8_lossy(data!("c10")).replace("\"17f29b07\"", "17");
    list(number.as_bytes());
}

#[test]
fn c11_a_list_needs_a_name_and_a_plugin_may_borrow_one() {
    assert_eq!(types(&list(data!("c11"))), ["bridge"]);
    let loopback = br#"{"cniVersion":"0.3.1","type":"loopback"}"#;
    let (code, message) = refusal(loopback);
    assert_eq!((code, message.as_str()), (7, "error parsing configuration list: no name"));
    let error = NetworkList::from_plugin_bytes(loopback, None).unwrap_err();
    assert_eq!(error.to_string(), "error parsing configuration: missing network name");
    let name = NetworkName::parse("loopback").unwrap();
    let borrowed = NetworkList::from_plugin_bytes(loopback, Some(&name)).unwrap();
    assert_eq!(borrowed.name, name);
}

#[test]
fn c13_nomad_loads() {
    assert_eq!(types(&list(data!("c13"))), ["loopback", "bridge", "firewall", "portmap"]);
}

#[test]
fn c14_a_single_configuration_becomes_a_list_of_one() {
    let list = single(data!("c14"));
    assert_eq!((list.name.as_str(), types(&list)), ("multus-cni-network", vec!["multus"]));
    assert!(list.is_single() && !list.wants_folder_plugins());
    let again = NetworkList::from_bytes(&list.record()).unwrap();
    assert_eq!(again.plugins, list.plugins);
    let request = &requests(&list, CAPABILITIES)[0];
    assert!(request.contains(r#""delegates":[{"cniVersion":"0.3.1","name":"cbr0","plugins":[{"#));
    assert!(request.contains(r#""runtimeConfig":{"portMappings":[{"hostPort":80}]}"#));
}

#[test]
fn c16_the_name_may_come_from_outside() {
    let name = NetworkName::parse("macvlan-conf").unwrap();
    let list = NetworkList::from_plugin_bytes(data!("c16"), Some(&name)).unwrap();
    assert_eq!(list.name, name);
    assert!(requests(&list, "{}")[0].contains(r#""range":"192.168.2.225/28""#));
}

#[test]
fn c17_without_a_version_it_is_the_oldest() {
    let name = NetworkName::parse("nad").unwrap();
    let list = NetworkList::from_plugin_bytes(data!("c17"), Some(&name)).unwrap();
    assert_eq!(list.version, SpecVersion::V0_1_0);
}

#[test]
fn c19_case_and_line_ends_of_others() {
    let windows = String::from_utf8_lossy(data!("c19")).replace(',', ",\r\n  ");
    let list = list(windows.as_bytes());
    let request = requests(&list, "{}").remove(0);
    assert!(request.contains(r#""Nameservers":["10.0.0.10","168.63.129.16"]"#));
    let request = PluginRequest::parse(&request).unwrap();
    assert_eq!(request.dns.search, ["svc.cluster.local"]);
    let single =
        single(br#"{"CNIVersion":"1.0.0","Name":"n","Type":"bridge","IPAM":{"TYPE":"x"}}"#);
    assert_eq!(single.version, SpecVersion::V1_0_0);
    assert_eq!(single.plugins[0].ipam_type.as_deref(), Some("x"));
}

#[test]
fn c19_a_list_key_in_another_case_is_pointed_out() {
    let (code, message) = refusal(r#"{"cniVersion":"1.0.0","Name":"a","plugins":[{"type":"x"}]}"#);
    assert_eq!(code, 7);
    assert_eq!(
        message,
        "error parsing configuration list: no name; the keys of a list keep their case: write \
         \"name\""
    );
    assert!(refusal(r#"{"name":"a","Plugins":[{"type":"x"}]}"#).1.contains("write \"plugins\""));
}

#[test]
fn c20_comments_are_refused_with_their_place() {
    let (code, message) = refusal(data!("c20"));
    assert_eq!(code, 6);
    assert_eq!(
        message,
        "line 2, column 26: error parsing configuration list: comments are not JSON; remove the \
         comment"
    );
    let error = NetworkList::from_bytes(data!("c20")).unwrap_err().in_file("net.d/10-db.conflist");
    assert!(error.msg.starts_with("net.d/10-db.conflist:2:26: error parsing"), "{}", error.msg);
    let without =
        r#"{"cniVersion":"1.0.0","name":"d","plugins":[{"type":"b","url":"http://x/*"}]}"#;
    list(without.as_bytes());
}

#[test]
fn c22_encodings_and_padding_are_refused_by_name() {
    let good = br#"{"cniVersion":"1.0.0","name":"b","plugins":[{"type":"loopback"}]}"#;
    let marked = [b"\xEF\xBB\xBF".as_slice(), good].concat();
    assert!(refusal(&marked).1.contains("byte order mark"));
    let wide: Vec<u8> = good.iter().flat_map(|byte| [*byte, 0]).collect();
    assert!(refusal(&wide).1.contains("UTF-16"));
    assert!(refusal([good.as_slice(), b"\0\0"].concat()).1.contains("NUL"));
    assert!(refusal([good.as_slice(), b"x"].concat()).1.contains("follows after the end"));
    assert!(refusal("").1.contains("empty"));
}

#[test]
fn c23_booleans_of_the_runtime_may_be_strings() {
    let strings = list(data!("c23"));
    assert!(strings.disable_check && !strings.disable_gc);
    assert!(requests(&strings, "{}")[0].contains(r#""isGateway":"true""#));
    for value in ["\"yes\"", "1", "\"\"", "[]"] {
        let text =
            format!("{{\"name\":\"n\",\n\"disableGC\":{value},\"plugins\":[{{\"type\":\"x\"}}]}}");
        let (code, message) = refusal(&text);
        assert_eq!(code, 7);
        assert!(message.starts_with("line 2, column 13: "), "{message}");
        assert!(message.contains(&format!("invalid value {value} for disableGC")), "{message}");
    }
}

// B065: disableCheck was ignored in single configurations.
#[test]
fn b065_a_single_configuration_keeps_its_runtime_keys() {
    let list = single(br#"{"name":"a","cniVersion":"0.4.0","type":"x","disableCheck":"TRUE"}"#);
    assert!(list.disable_check);
    let error =
        NetworkList::from_plugin_bytes(br#"{"name":"a","type":"x","disableCheck":"yes"}"#, None);
    assert!(error.unwrap_err().to_string().contains("disableCheck"));
}

#[test]
fn c25_numbers_and_unknown_values_pass_exactly() {
    let request = requests(&list(data!("c25")), "{}").remove(0);
    for exact in [
        r#""id":18446744073709551615"#,
        r#""neg":-9223372036854775808"#,
        r#""f":1.10"#,
        r#""e":1e3"#,
        r#""deep":{"x":[{"y":null}]}"#,
        r#""uni":"\u00e9\ud83d\ude00""#,
        r#""empty":{}"#,
    ] {
        assert!(request.contains(exact), "{exact} in {request}");
    }
}

#[test]
fn c26_the_highest_known_version_is_chosen() {
    let chosen = NetworkList::from_bytes(data!("c26")).unwrap();
    assert_eq!(chosen.version, SpecVersion::V1_1_0);
    assert_eq!(
        chosen.candidates(),
        [SpecVersion::V1_1_0, SpecVersion::V1_0_0, SpecVersion::V0_3_1]
    );
    let record = chosen.record().into_owned();
    let again = NetworkList::from_bytes(&record).unwrap();
    assert_eq!(again.version, SpecVersion::V1_1_0);
    assert!(!String::from_utf8(record).unwrap().contains("cniVersions"));

    let mut lower = chosen.clone();
    lower.select(SpecVersion::V1_0_0).unwrap();
    assert_eq!(NetworkList::from_bytes(&lower.record()).unwrap().version, SpecVersion::V1_0_0);
    assert_eq!(lower.select(SpecVersion::V0_2_0).unwrap_err().code.number(), 1);
}

#[test]
fn c26_entries_that_are_no_versions_are_errors_with_their_index() {
    let versions = |entries: &str| {
        refusal(format!(
            r#"{{"cniVersion":"1.0.0","cniVersions":{entries},"name":"v","plugins":[{{"type":"x"}}]}}"#
        ))
    };
    let (code, message) = versions(r#"["0.3.1","abc"]"#);
    assert_eq!(code, 7);
    assert!(message.contains("invalid cniVersions entry \"abc\" at index 1"), "{message}");
    assert!(versions("[1.0]").1.contains("invalid cniVersions entry 1.0 at index 0"));
    assert!(versions(r#""1.0.0""#).1.contains("invalid cniVersions type"));
}

#[test]
fn an_unknown_version_without_a_choice_is_an_error_when_loading() {
    for version in ["1.2.0", "abc", "1.0", "1"] {
        let text = format!(r#"{{"cniVersion":"{version}","name":"v","plugins":[{{"type":"x"}}]}}"#);
        let (code, message) = refusal(&text);
        assert_eq!(code, 1);
        assert!(message.contains("is not known; known are 0.1.0"), "{message}");
    }
    let text = r#"{"cniVersion":"2.0.0","cniVersions":["1"],"name":"v","plugins":[{"type":"x"}]}"#;
    assert_eq!(NetworkList::from_bytes(text.as_bytes()).unwrap().version, SpecVersion::V1_0_0);
    let text = r#"{"cniVersions":["2.0.0"],"name":"v","plugins":[{"type":"x"}]}"#;
    assert_eq!(refusal(text).0, 1);
}

#[test]
fn c28_the_old_syntax_passes_to_host_local() {
    let list = single(data!("c28"));
    assert_eq!(list.version, SpecVersion::V0_2_0);
    let request = requests(&list, "{}").remove(0);
    let request = PluginRequest::parse(&request).unwrap();
    let ipam = request.ipam.unwrap();
    assert_eq!(ipam.string("rangestart").unwrap().unwrap(), "10.1.2.9");
}

#[test]
fn c29_a_plugin_chained_by_an_installer_loads() {
    let list = list(data!("c29"));
    assert_eq!(types(&list), ["ptp", "istio-cni"]);
    assert!(requests(&list, "{}")[1].contains("ZZZ-istio-cni-kubeconfig"));
}

#[test]
fn plugins_of_a_folder_are_kept_in_the_record() {
    let text = br#"{"cniVersion":"1.0.0","name":"neta","x":1,"plugins":[{"type":"bridge"}]}"#;
    let mut list = NetworkList::from_bytes(text).unwrap();
    assert!(list.wants_folder_plugins());
    list.push_folder_plugin(PluginConfig::from_bytes(br#"{ "type" : "tuning" }"#).unwrap());
    assert_eq!(
        String::from_utf8(list.record().into_owned()).unwrap(),
        r#"{"cniVersion":"1.0.0","loadOnlyInlinedPlugins":true,"name":"neta","plugins":[{"type":"bridge"},{"type":"tuning"}],"x":1}"#
    );
    let again = NetworkList::from_bytes(&list.record()).unwrap();
    assert_eq!(types(&again), ["bridge", "tuning"]);
    assert!(!again.wants_folder_plugins());
}

#[test]
fn a_list_without_plugins_is_refused_once_all_is_loaded() {
    let list = NetworkList::from_bytes(br#"{"name":"a"}"#).unwrap();
    let error = list.require_plugins().unwrap_err();
    assert_eq!(error.msg, "error parsing configuration list: no plugin configs found");
    let list = NetworkList::from_bytes(br#"{"name":"a","type":"bridge"}"#).unwrap();
    assert!(list.require_plugins().unwrap_err().details.contains("name the file .conf"));
    let (_, message) = refusal(r#"{"name":"a","loadOnlyInlinedPlugins":"True"}"#);
    assert!(message.contains("`loadOnlyInlinedPlugins` is true, and no 'plugins' key"));
    assert!(refusal(r#"{"name":"a","plugins":[]}"#).1.contains("no plugins in list"));
    assert!(refusal(r#"{"name":"a","plugins":{}}"#).1.contains("invalid 'plugins' type"));
}

#[test]
fn the_words_people_search_for_are_kept() {
    assert_eq!(
        refusal(r#"{"name":7}"#).1,
        "line 1, column 9: error parsing configuration list: invalid name type: expected a string, found a number"
    );
    assert!(refusal(r#"{"name":"a","cniVersion":1}"#).1.contains("invalid cniVersion type"));
    assert_eq!(
        refusal("{\"name\":\"a\",\n \"plugins\":[{\"type\":\"x\"},{\"typ\":\"y\"}]}").1,
        "line 2, column 26: error parsing configuration list: failed to parse plugin config 1: \
         error parsing configuration: missing 'type'; 'type' is the name of the plugin's \
         executable"
    );
    let (_, message) = refusal(r#"{"name":"a","plugins":[{"type":"x","capabilities":{"mac":1}}]}"#);
    assert!(message.contains("plugins[0].capabilities.mac: expected true or false, found 1"));
    for name in ["", ".", "../x", "a b"] {
        assert_eq!(refusal(format!(r#"{{"name":"{name}","plugins":[]}}"#)).0, 7, "{name:?}");
    }
}

#[test]
fn every_case_file_is_read_by_a_test() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let this = include_str!("config_cases.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let case = name.strip_suffix(".json").unwrap();
        assert!(this.contains(&format!("data!(\"{case}\")")), "{case}");
    }
}

#[test]
fn the_text_of_a_request_is_one_object_in_one_line() {
    let text = "{\"name\":\"a\",\"plugins\":[{\"type\":\"x\",\n  \"k\": [1,\n 2]}]}";
    let list = NetworkList::from_bytes(text.as_bytes()).unwrap();
    let request = requests(&list, "{}").remove(0);
    assert_eq!(request, r#"{"cniVersion":"0.1.0","k":[1,2],"name":"a","type":"x"}"#);
    assert!(Object::parse(&request).is_ok());
}
