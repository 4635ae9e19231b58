//! A request as the runtime writes it.

use std::collections::BTreeMap;

use super::attachments::{FIRST_KEY, KEY, ValidAttachment};
use crate::config::{NetworkList, PluginConfig};
use crate::error::Error;
use crate::json::{Editor, Object, compact};

/// The runtime's values by capability, each JSON: port mappings, addresses
/// asked for and so on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapabilityArguments {
    values: BTreeMap<String, String>,
}

impl CapabilityArguments {
    /// Reads an object with one key a capability.
    ///
    /// # Errors
    /// Code 6 if it isn't one.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Object::parse(text).map(|object| Self::from_object(&object))
    }

    /// Takes the entries of an object.
    pub fn from_object(object: &Object<'_>) -> Self {
        let entries = object.members();
        Self { values: entries.map(|(key, text)| (key.to_owned(), compact(text))).collect() }
    }

    /// Sets the value of a capability, as JSON.
    ///
    /// # Errors
    /// Code 6 if it isn't JSON.
    pub fn insert(&mut self, capability: impl Into<String>, json: &str) -> Result<(), Error> {
        let capability = capability.into();
        serde_json::from_str::<serde::de::IgnoredAny>(json)
            .map_err(|error| Error::decode(format!("capability {capability}: {error}")))?;
        self.values.insert(capability, compact(json));
        Ok(())
    }

    /// The value of a capability, as JSON.
    pub fn get(&self, capability: &str) -> Option<&str> {
        self.values.get(capability).map(String::as_str)
    }

    /// Capabilities and values, as JSON, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(capability, json)| (capability.as_str(), json.as_str()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The object again.
    pub fn to_json(&self) -> String {
        self.to_json_where(|_| true)
    }

    fn to_json_where(&self, picks: impl Fn(&str) -> bool) -> String {
        let mut editor = Editor::empty();
        for (capability, json) in self.iter().filter(|(capability, _)| picks(capability)) {
            editor.insert_exact(capability, json);
        }
        editor.finish()
    }
}

/// What a request holds beside the plugin's configuration.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestInputs<'a> {
    /// The result of the plugin before (ADD) or of the ADD (CHECK, DEL), JSON.
    pub prev_result: Option<&'a str>,
    /// The runtime's values, of which the plugin gets those it declares (ADD,
    /// CHECK, DEL).
    pub capability_arguments: Option<&'a CapabilityArguments>,
    /// The attachments that must stay (GC).
    pub valid_attachments: Option<&'a [ValidAttachment]>,
    /// Leave `capabilities` out, as the specification says. The Go library
    /// leaves it in and meta plugins read it.
    pub strip_capabilities: bool,
}

/// The request for one plugin of a list: one line of JSON, keys sorted, the
/// plugin's own values exactly as written.
///
/// `runtimeConfig` and keys that begin with `cni.dev/` are the runtime's; what
/// a file holds of them is never passed on.
///
/// # Errors
/// Code 6 if `prev_result` isn't a JSON object.
pub fn build(
    plugin: &PluginConfig,
    list: &NetworkList,
    inputs: RequestInputs<'_>,
) -> Result<String, Error> {
    let object = Object::parse(plugin.text())?;
    let mut request = Editor::new(&object);
    request.remove_where(|key| {
        key.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("cni.dev/"))
            || key.eq_ignore_ascii_case("runtimeConfig")
            || (inputs.strip_capabilities && key.eq_ignore_ascii_case("capabilities"))
    });
    request.set_string("cniVersion", list.version.as_str());
    request.set_string("name", list.name.as_str());
    if let Some(result) = inputs.prev_result {
        Object::parse(result).map_err(|error| error.context("prevResult"))?;
        request.set_raw("prevResult", result);
    }
    if let Some(arguments) = inputs.capability_arguments {
        let values = arguments.to_json_where(|capability| plugin.has_capability(capability));
        if values != "{}" {
            request.set_raw("runtimeConfig", values);
        }
    }
    if let Some(valid) = inputs.valid_attachments {
        let json = ValidAttachment::to_json(valid);
        request.set_raw(FIRST_KEY, json.clone());
        request.set_raw(KEY, json);
    }
    Ok(request.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(plugin: &str, inputs: RequestInputs<'_>) -> String {
        let text = format!(r#"{{"cniVersion":"1.1.0","name":"neta","plugins":[{plugin}]}}"#);
        let list = NetworkList::from_bytes(text.as_bytes()).unwrap();
        build(&list.plugins[0], &list, inputs).unwrap()
    }

    #[test]
    fn the_measured_example_with_exact_numbers_and_no_stale_values() {
        let plugin = r#"{"type":"rec","z":1,"a":null,"big":12345678901234567890,"float":1.0,
            "html":"<a&b>","name":"old","cniVersion":"0.1.0","runtimeConfig":{"stale":1},
            "capabilities":{"portMappings":true,"mac":false,"ips":true}}"#;
        let arguments =
            CapabilityArguments::parse(r#"{"portMappings":[ ],"mac":"x","bandwidth":{}}"#).unwrap();
        let inputs =
            RequestInputs { capability_arguments: Some(&arguments), ..RequestInputs::default() };
        assert_eq!(
            request(plugin, inputs),
            r#"{"a":null,"big":12345678901234567890,"capabilities":{"portMappings":true,"mac":false,"ips":true},"cniVersion":"1.1.0","float":1.0,"html":"<a&b>","name":"neta","runtimeConfig":{"portMappings":[]},"type":"rec","z":1}"#
        );
        assert!(!request(plugin, RequestInputs::default()).contains("runtimeConfig"));
        let inputs = RequestInputs { strip_capabilities: true, ..inputs };
        assert!(!request(plugin, inputs).contains("capabilities"));
    }

    #[test]
    fn the_second_plugin_gets_the_result_before() {
        let arguments = CapabilityArguments::parse(r#"{"mac":"00:11:22:33:44:55"}"#).unwrap();
        let inputs = RequestInputs {
            prev_result: Some(r#"{"cniVersion":"1.1.0"}"#),
            capability_arguments: Some(&arguments),
            ..RequestInputs::default()
        };
        assert_eq!(
            request(r#"{"type":"rec2","capabilities":{"mac":true}}"#, inputs),
            r#"{"capabilities":{"mac":true},"cniVersion":"1.1.0","name":"neta","prevResult":{"cniVersion":"1.1.0"},"runtimeConfig":{"mac":"00:11:22:33:44:55"},"type":"rec2"}"#
        );
    }

    #[test]
    fn gc_gets_both_keys_and_never_those_of_a_file() {
        let plugin = r#"{"type":"x","cni.dev/attachments":[],"cni.dev/valid-attachments":null,"CNI.dev/x":1}"#;
        assert_eq!(
            request(plugin, RequestInputs::default()),
            r#"{"cniVersion":"1.1.0","name":"neta","type":"x"}"#
        );
        let valid = [ValidAttachment { container_id: "a".into(), ifname: "eth0".into() }];
        let inputs = RequestInputs { valid_attachments: Some(&valid), ..RequestInputs::default() };
        assert_eq!(
            request(plugin, inputs),
            r#"{"cni.dev/attachments":[{"containerID":"a","ifname":"eth0"}],"cni.dev/valid-attachments":[{"containerID":"a","ifname":"eth0"}],"cniVersion":"1.1.0","name":"neta","type":"x"}"#
        );
        let inputs = RequestInputs { valid_attachments: Some(&[]), ..RequestInputs::default() };
        assert!(request(plugin, inputs).contains(r#""cni.dev/valid-attachments":[]"#));
    }

    #[test]
    fn capability_arguments_go_both_ways() {
        let mut arguments = CapabilityArguments::default();
        assert!(arguments.is_empty());
        arguments.insert("ips", r#"[ "10.0.0.2" ]"#).unwrap();
        arguments.insert("io.kubernetes.cri.pod-annotations", "{}").unwrap();
        assert_eq!(arguments.insert("mac", "00:11").unwrap_err().code.number(), 6);
        let json = r#"{"io.kubernetes.cri.pod-annotations":{},"ips":["10.0.0.2"]}"#;
        assert_eq!(arguments.to_json(), json);
        assert_eq!(CapabilityArguments::parse(json).unwrap(), arguments);
        assert_eq!(arguments.get("ips"), Some(r#"["10.0.0.2"]"#));
        assert!(CapabilityArguments::parse("[]").is_err());
    }
}
