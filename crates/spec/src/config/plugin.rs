//! One plugin of a list, as the runtime sees it.

use std::collections::BTreeMap;

use super::location::ConfigError;
use crate::error::Error;
use crate::id::PluginType;
use crate::json::{Kind, Object, Value, compact, decode_text};

/// Keys whose type the runtime checks although it doesn't read them, since
/// every runtime built on the Go library refuses the whole list otherwise.
const TYPED_KEYS: [(&str, Kind); 6] = [
    ("name", Kind::String),
    ("cniVersion", Kind::String),
    ("ipam", Kind::Object),
    ("dns", Kind::Object),
    ("prevResult", Kind::Object),
    ("cni.dev/valid-attachments", Kind::Array),
];

/// One plugin configuration: what the runtime needs of it, and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginConfig {
    /// The executable.
    pub plugin_type: PluginType,
    /// The plugin's own `name`; in a list only messages show it.
    pub name: Option<String>,
    /// Which values of the runtime it wants, by capability.
    pub capabilities: BTreeMap<String, bool>,
    /// The executable that gives it addresses.
    pub ipam_type: Option<String>,
    text: String,
}

impl PluginConfig {
    /// Reads one plugin object, as a file of a plugin folder holds it.
    ///
    /// # Errors
    /// Code 6 for what isn't JSON or has another type, code 7 for a missing or
    /// invalid `type`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ConfigError> {
        let text = decode_text(bytes).map_err(ConfigError::from);
        text.and_then(|text| Self::parse(&text, &Object::parse_document(&text)?))
            .map_err(|error| error.context("error parsing configuration"))
    }

    /// Reads one plugin object that is part of `document`.
    pub(super) fn parse(document: &str, object: &Object<'_>) -> Result<Self, ConfigError> {
        let Some(type_value) = object.get("type") else {
            let missing = Error::config("missing 'type'");
            return Err(ConfigError::at(
                document,
                object.text(),
                if object.get("plugins").is_some() {
                    missing.with_details(
                        "this is a list of plugins (it has 'plugins'): its file must be named \
                         .conflist",
                    )
                } else {
                    missing.with_details("'type' is the name of the plugin's executable")
                },
            ));
        };
        let at = |value: &Value<'_>, error| ConfigError::at(document, value.text(), error);
        let type_text = type_value.string().map_err(|error| at(&type_value, error))?;
        let plugin_type = PluginType::parse(&type_text).map_err(|error| at(&type_value, error))?;
        for (key, kind) in TYPED_KEYS {
            if let Some(value) = object.get(key).filter(|value| value.kind() != kind) {
                return Err(at(&value, value.mismatch(kind.in_words())));
            }
        }
        let within =
            |key, error| ConfigError::at(document, object.raw(key).unwrap_or_default(), error);
        let ipam_type = match object.object("ipam")? {
            Some(ipam) => ipam.text_of("type").map_err(|error| within("ipam", error))?,
            None => None,
        };
        Ok(Self {
            plugin_type,
            name: object.text_of("name")?.map(std::borrow::Cow::into_owned),
            capabilities: object
                .boolean_map("capabilities")
                .map_err(|error| within("capabilities", error))?,
            ipam_type: ipam_type.map(std::borrow::Cow::into_owned),
            text: compact(object.text()),
        })
    }

    /// The plugin object, white space removed, else as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it wants the runtime's values for a capability.
    pub fn has_capability(&self, capability: &str) -> bool {
        self.capabilities.get(capability) == Some(&true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> (u32, String) {
        let error = Error::from(PluginConfig::from_bytes(text.as_bytes()).unwrap_err());
        (error.code.number(), error.to_string())
    }

    #[test]
    fn c19_known_keys_are_read_in_any_case_and_the_text_is_kept() {
        let text = r#"{ "Type": "azure-vnet", "IPAM": {"TYPE":"azure-vnet-ipam"},
            "Capabilities": {"portMappings": true, "dns": false}, "dns": {"Nameservers": []} }"#;
        let plugin = PluginConfig::from_bytes(text.as_bytes()).unwrap();
        assert_eq!(plugin.plugin_type.as_str(), "azure-vnet");
        assert_eq!(plugin.ipam_type.as_deref(), Some("azure-vnet-ipam"));
        assert!(plugin.has_capability("portMappings") && !plugin.has_capability("dns"));
        assert!(plugin.text().starts_with(r#"{"Type":"azure-vnet","IPAM""#));
    }

    #[test]
    fn the_keys_of_the_runtime_are_checked() {
        assert_eq!(
            refusal("{\n \"ipam\": 7, \"type\": \"x\"}"),
            (
                6,
                "line 2, column 10: error parsing configuration: ipam: expected an object, found 7"
                    .into()
            )
        );
        for text in [
            r#"{"type":7}"#,
            r#"{"type":"x","name":7}"#,
            r#"{"type":"x","cniVersion":1}"#,
            r#"{"type":"x","capabilities":["mac"]}"#,
            r#"{"type":"x","capabilities":{"mac":"true"}}"#,
            r#"{"type":"x","ipam":{"type":7}}"#,
            r#"{"type":"x","dns":[]}"#,
            r#"{"type":"x","prevResult":[]}"#,
            r#"{"type":"x","cni.dev/valid-attachments":{}}"#,
        ] {
            assert_eq!(refusal(text).0, 6, "{text}");
        }
        assert!(refusal(r#"{"type":"../x"}"#).1.contains("invalid plugin name: ../x"));
        assert!(refusal(r#"{"type":""}"#).1.contains("no plugin name provided"));
        assert!(
            refusal(r#"{"type":null}"#).1.contains("error parsing configuration: missing 'type'")
        );
    }

    #[test]
    fn a_list_in_the_place_of_a_plugin_is_called_one() {
        let (code, message) = refusal(r#"{"name":"a","plugins":[{"type":"x"}]}"#);
        assert_eq!(code, 7);
        assert!(message.contains("missing 'type'") && message.contains(".conflist"), "{message}");
    }
}
