//! The protocol as data: lists, results, errors, versions, arguments.

use podwire_spec::args::CniArgs;
use podwire_spec::config::{NetworkList, PluginConfig};
use podwire_spec::error::{Error, last_error_object};
use podwire_spec::json::{Editor, Object};
use podwire_spec::request::{CapabilityArguments, PluginRequest, RequestInputs, build};
use podwire_spec::result::VersionedResult;
use podwire_spec::version::{SpecVersion, VersionNumbers};
use podwire_spec::{address, capability, id, lint, version_info};

/// A list, or a single configuration; merged, chosen from, linted, and made a
/// request for each of its plugins.
pub(crate) fn network_list(data: &[u8]) {
    for finding in lint::check(data) {
        assert!(!finding.message.is_empty());
    }
    let _ = PluginConfig::from_bytes(data).map_err(|error| error.in_file("f"));
    let name = id::NetworkName::parse("n").unwrap();
    for list in [NetworkList::from_bytes(data), NetworkList::from_plugin_bytes(data, Some(&name))] {
        let Ok(mut list) = list.map_err(|error| error.in_file("f")) else { continue };
        let merged = list.merged();
        assert!(list.plugins.is_empty() || NetworkList::from_bytes(merged.as_bytes()).is_ok());
        let _ = (list.require_plugins(), list.record().len());
        for version in list.candidates().to_vec() {
            let _ = list.select(version);
        }
        for plugin in &list.plugins {
            let text = build(plugin, &list, RequestInputs::default()).unwrap();
            let request = PluginRequest::parse(&text).unwrap();
            let _ = request.spec_version(&SpecVersion::ALL);
        }
    }
}

/// A result: what is printed is read back as the same, in every version.
pub(crate) fn result(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for assumed in [SpecVersion::V0_2_0, SpecVersion::V0_4_0, SpecVersion::V1_1_0] {
        let Ok(read) = VersionedResult::parse(text, assumed) else { continue };
        let newest = read.clone().into_newest().unwrap();
        let _ = newest.validate_indices();
        let _ = newest.container_addresses("eth0");
        let mut twice = newest.clone();
        twice.merge(newest);
        for to in SpecVersion::ALL {
            let Ok(converted) = read.clone().convert(to) else { continue };
            let printed = converted.to_json();
            let again = VersionedResult::parse(&printed, to).unwrap();
            assert_eq!(again.to_json(), printed, "from {assumed} to {to}");
            let compact = VersionedResult::parse(&converted.to_compact_json(), to).unwrap();
            assert_eq!(compact, again);
        }
    }
}

/// What a plugin printed that failed.
pub(crate) fn error_object(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = Error::parse(&text);
    if let Some(error) = last_error_object(&text) {
        let printed = error.to_json(Some(SpecVersion::LATEST));
        assert_eq!(Error::parse(&printed), Some(error));
    }
}

/// Both sides of VERSION.
pub(crate) fn version_info(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let reply = version_info::reply(&text, &SpecVersion::ALL);
    assert!(version_info::VersionInfo::parse(&reply).is_ok(), "{reply}");
    if let Ok(info) = version_info::VersionInfo::parse(&text) {
        let _ = (info.known(), info.supports(SpecVersion::LATEST));
    }
    if let Some(error) = Error::parse(&text) {
        let _ = version_info::VersionInfo::from_refusal(&error);
    }
    let _ = VersionNumbers::parse(&text);
}

/// `CNI_ARGS`: what is read is written as it was understood.
pub(crate) fn cni_args(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(arguments) = CniArgs::parse(&text) {
        let _ = (arguments.get("IP"), arguments.refuse_unknown(&["IP"]));
        assert_eq!(CniArgs::parse(&arguments.to_string()).unwrap(), arguments);
    }
    for text in text.lines() {
        let _ = (address::parse_ip(text), address::parse_cidr(text));
        let _ = (id::IfName::parse(text), id::PluginType::parse(text));
        let _ = (id::ContainerId::parse(text), id::NetworkName::parse(text));
    }
}

/// `runtimeConfig`, and what a runtime's caller hands over for it.
pub(crate) fn capabilities(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(object) = Object::parse(text) else { return };
    let _ = capability::port_mappings(&object);
    let _ = (capability::ip_ranges(&object), capability::ips(&object));
    let _ = (capability::bandwidth(&object), capability::mac(&object));
    let _ = (capability::dns(&object), capability::aliases(&object, "n"));
    let arguments = CapabilityArguments::from_object(&object);
    assert!(Object::parse(&arguments.to_json()).is_ok());
    assert!(Object::parse(&Editor::new(&object).finish()).is_ok());
}
