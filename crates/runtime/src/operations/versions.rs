//! What a version of the specification allows, and results brought to it.

use podwire_spec::config::NetworkList;
use podwire_spec::error::Error;
use podwire_spec::json::{Editor, Object, compact};
use podwire_spec::operation::Operation;
use podwire_spec::result::VersionedResult;

use crate::error::RuntimeError;

/// Whether the version of a list has an operation.
pub(super) fn supports(list: &NetworkList, operation: Operation) -> bool {
    list.version >= operation.since()
}

/// Refuses an operation that the version of a list doesn't have.
pub(super) fn require(list: &NetworkList, operation: Operation) -> Result<(), RuntimeError> {
    if supports(list, operation) {
        return Ok(());
    }
    Err(RuntimeError::Unsupported {
        network: list.name.clone(),
        operation,
        version: list.version.to_string(),
    })
}

/// A result as the plugins of `list` and whoever reads the record are to see
/// it: in the list's version, with all that the plugin printed kept where it
/// is in that version already.
///
/// A plugin that answers in another version is put right here: the next one
/// in the list would refuse it, since plugins take a previous result only of
/// their own version's family. Where that is impossible (an answer without
/// addresses for 0.1.0 or 0.2.0) it stays as it is, as libcni leaves it.
pub(super) fn read_result(
    printed: &str,
    list: &NetworkList,
) -> Result<(VersionedResult, String), Error> {
    let result = VersionedResult::parse(printed, list.version)?;
    if result.version() == list.version {
        let raw = as_printed(printed, list)?.unwrap_or_else(|| result.to_compact_json());
        return Ok((result, raw));
    }
    Ok(match result.clone().convert(list.version) {
        Ok(converted) => {
            let raw = converted.to_compact_json();
            (converted, raw)
        }
        Err(_) => (result, compact(printed)),
    })
}

/// The error object that a plugin printed in the place of a result although
/// it ended with success. libcni takes it for an empty result.
pub(super) fn error_instead(printed: &str) -> Option<Error> {
    let object = Object::parse(printed).ok()?;
    let result_keys = ["interfaces", "ips", "ip4", "ip6", "routes", "dns"];
    if object.get("code").is_none() || result_keys.iter().any(|key| object.get(key).is_some()) {
        return None;
    }
    Error::parse(printed)
}

/// A recorded result for DEL and CHECK, strictly in the list's version.
pub(super) fn recorded_result(recorded: &str, list: &NetworkList) -> Result<String, Error> {
    let result = VersionedResult::parse(recorded, list.version)?;
    if result.version() == list.version
        && let Some(raw) = as_printed(recorded, list)?
    {
        return Ok(raw);
    }
    Ok(result.convert(list.version)?.to_compact_json())
}

/// The text itself with its version filled in, on one line; `None` if it has
/// `null` among its entries, which would trip the next reader (B044).
fn as_printed(printed: &str, list: &NetworkList) -> Result<Option<String>, Error> {
    let object = Object::parse(printed)?;
    for key in ["interfaces", "ips", "routes"] {
        if object.array(key)?.iter().any(podwire_spec::json::Value::is_null) {
            return Ok(None);
        }
    }
    if object.raw_exact("cniVersion").is_some_and(|text| text.len() > 2 && text.starts_with('"')) {
        return Ok(Some(compact(printed)));
    }
    let mut editor = Editor::new(&object);
    editor.set_string("cniVersion", list.version.as_str());
    Ok(Some(editor.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(version: &str) -> NetworkList {
        let text = format!(r#"{{"cniVersion":"{version}","name":"n","plugins":[{{"type":"x"}}]}}"#);
        NetworkList::from_bytes(text.as_bytes()).unwrap()
    }

    fn raw(printed: &str, version: &str) -> String {
        read_result(printed, &list(version)).unwrap().1
    }

    #[test]
    fn what_a_plugin_printed_is_passed_on_whole() {
        let printed = "{ \"cniVersion\": \"1.1.0\", \"ips\": [], \"own\": 18446744073709551615 }";
        assert_eq!(
            raw(printed, "1.1.0"),
            r#"{"cniVersion":"1.1.0","ips":[],"own":18446744073709551615}"#
        );
    }

    #[test]
    fn b044_a_missing_version_is_filled_in_and_null_entries_are_dropped() {
        assert_eq!(raw("{}", "0.3.1"), r#"{"cniVersion":"0.3.1"}"#);
        assert_eq!(
            raw(r#"{"cniVersion":"","own":1}"#, "0.3.1"),
            r#"{"cniVersion":"0.3.1","own":1}"#
        );
        let text = r#"{"cniVersion":"1.0.0","interfaces":[null,{"name":"eth0"}],
            "ips":[null,{"address":"10.0.0.2/24","interface":1}]}"#;
        let cleaned = raw(text, "1.0.0");
        assert!(!cleaned.contains("null") && cleaned.contains(r#""interface":0"#), "{cleaned}");
        for text in ["null", "[]", "", "{}{}", "x"] {
            assert!(read_result(text, &list("0.3.1")).is_err(), "{text:?}");
        }
    }

    #[test]
    fn another_version_is_converted_where_it_can_be() {
        let text = r#"{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.2/24"}]}"#;
        assert!(raw(text, "0.4.0").contains(r#""version":"4""#));
        assert_eq!(raw(r#"{"cniVersion":"1.0.0"}"#, "0.2.0"), r#"{"cniVersion":"1.0.0"}"#);
        assert!(recorded_result(r#"{"cniVersion":"1.0.0"}"#, &list("0.2.0")).is_err());
    }

    #[test]
    fn b064_a_record_of_an_old_version_is_converted_up() {
        let old = r#"{"ip4":{"ip":"10.0.0.2/24"}}"#;
        let old_with_version = r#"{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.2/24"}}"#;
        assert!(recorded_result(old_with_version, &list("1.1.0")).unwrap().contains("1.1.0"));
        assert!(recorded_result(old, &list("0.1.0")).unwrap().contains("0.1.0"));
    }
}
