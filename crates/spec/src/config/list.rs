//! A network configuration list.

use std::borrow::Cow;

use super::location::ConfigError;
use super::plugin::PluginConfig;
use super::selection;
use crate::error::Error;
use crate::id::NetworkName;
use crate::json::{Editor, Object, Value, Writer, decode_text};
use crate::version::SpecVersion;

/// What every message about a list begins with; the Go library's words, which
/// people search for.
const PARSING: &str = "error parsing configuration list";

/// A network: its plugins in the order of ADD, and how to run them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkList {
    /// The network's name.
    pub name: NetworkName,
    /// The version it is run with.
    pub version: SpecVersion,
    /// CHECK is not to be run, and counts as successful.
    pub disable_check: bool,
    /// GC is not to be run.
    pub disable_gc: bool,
    /// The plugins of the folder named as the network are not to be loaded.
    pub load_only_inlined_plugins: bool,
    /// The plugins, in the order of ADD.
    pub plugins: Vec<PluginConfig>,
    candidates: Vec<SpecVersion>,
    raw: Vec<u8>,
    /// Whether `raw` says all: no plugin came from elsewhere and a reader
    /// that doesn't know `cniVersions` runs it with the same version.
    raw_is_whole: bool,
    /// Whether it was a single plugin configuration.
    single: bool,
}

impl NetworkList {
    /// Reads a list (`.conflist`).
    ///
    /// Its keys are matched exactly, as the Go library does, unlike those of
    /// plugins. A list without `plugins` loads, for its plugins may come from a
    /// folder: see [`NetworkList::wants_folder_plugins`], and
    /// [`NetworkList::require_plugins`] afterwards.
    ///
    /// # Errors
    /// Code 6 for what isn't JSON or has another type, 7 for what is missing or
    /// not valid, 1 for a version that isn't known; with the position.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ConfigError> {
        let read = || {
            let document = decode_text(bytes)?;
            Self::decode(&document, bytes)
        };
        read().map_err(|error| error.context(PARSING))
    }

    /// Reads a single plugin configuration (`.conf`, `.json`) and makes a list
    /// of it. `fallback_name` names the network if the configuration doesn't,
    /// as when its name is that of the object it was stored in.
    ///
    /// Unlike the Go library it keeps `disableCheck`, `disableGC` and
    /// `cniVersions` (plugin keys were no place for them, but people wrote them
    /// there and were surprised).
    ///
    /// # Errors
    /// As [`NetworkList::from_bytes`].
    pub fn from_plugin_bytes(
        bytes: &[u8],
        fallback_name: Option<&NetworkName>,
    ) -> Result<Self, ConfigError> {
        Self::from_plugin(bytes, fallback_name)
            .map_err(|error| error.context("error parsing configuration"))
    }

    fn from_plugin(bytes: &[u8], fallback_name: Option<&NetworkName>) -> Result<Self, ConfigError> {
        let document = decode_text(bytes)?;
        let object = Object::parse_document(&document)?;
        let plugin = PluginConfig::parse(&document, &object)?;
        let name = match (&plugin.name, fallback_name) {
            (Some(name), _) => NetworkName::parse(name).map_err(|error| {
                ConfigError::at(&document, object.raw("name").unwrap_or_default(), error)
            })?,
            (None, Some(name)) => name.clone(),
            (None, None) => return Err(Error::config("missing network name").into()),
        };
        let plugins = format!("[{}]", plugin.text());
        let mut list = Editor::empty();
        list.set_string("name", name.as_str());
        for key in ["cniVersion", "cniVersions", "disableCheck", "disableGC"] {
            if let Some(text) = object.raw(key) {
                list.set_raw(key, text);
            }
        }
        list.set_raw("plugins", plugins);
        let text = list.finish();
        // What is wrong now is wrong in a key of the list, and its place in
        // this text would mislead.
        let mut list = Self::decode(&text, text.as_bytes())
            .map_err(|error| ConfigError { position: None, ..error })?;
        list.single = true;
        Ok(list)
    }

    fn decode(document: &str, raw: &[u8]) -> Result<Self, ConfigError> {
        let object = Object::parse_document(document)?;
        let name = Self::decode_name(document, &object)?;
        let candidates = selection::candidates(document, &object)?;
        let boolean = |key| Self::decode_boolean(document, &object, key);
        let disable_check = boolean("disableCheck")?;
        let disable_gc = boolean("disableGC")?;
        let load_only_inlined_plugins = boolean("loadOnlyInlinedPlugins")?;
        let plugins = match object.get_exact("plugins") {
            Some(value) => Self::decode_plugins(document, &value)?,
            None if load_only_inlined_plugins => {
                return Err(missing(
                    &object,
                    "plugins",
                    "`loadOnlyInlinedPlugins` is true, and no 'plugins' key",
                )
                .into());
            }
            None if has_only_other_case(&object, "plugins") => {
                return Err(missing(&object, "plugins", "no plugins in list").into());
            }
            None => Vec::new(),
        };
        // Never empty, by the contract of `candidates`.
        let version = candidates.first().copied().unwrap_or(SpecVersion::V0_1_0);
        let declared = object.get_exact("cniVersion").and_then(|value| value.string().ok());
        Ok(Self {
            name,
            version,
            disable_check,
            disable_gc,
            load_only_inlined_plugins,
            plugins,
            raw: raw.to_owned(),
            raw_is_whole: SpecVersion::parse_known(&declared.unwrap_or_default()) == Some(version),
            candidates,
            single: false,
        })
    }

    fn decode_name(document: &str, object: &Object<'_>) -> Result<NetworkName, ConfigError> {
        let value = object.get_exact("name").ok_or_else(|| missing(object, "name", "no name"))?;
        let name = value.string().map_err(|_| {
            Error::decode(format!(
                "invalid name type: expected a string, found {}",
                value.kind().in_words()
            ))
        });
        name.and_then(|name| NetworkName::parse(&name))
            .map_err(|error| ConfigError::at(document, value.text(), error))
    }

    fn decode_boolean(document: &str, object: &Object<'_>, key: &str) -> Result<bool, ConfigError> {
        let Some(value) = object.get_exact(key) else { return Ok(false) };
        value.lenient_boolean().map_err(|_| {
            let error = Error::config(format!("invalid value {} for {key}", value.text()))
                .with_details("write true or false");
            ConfigError::at(document, value.text(), error)
        })
    }

    fn decode_plugins(document: &str, value: &Value<'_>) -> Result<Vec<PluginConfig>, ConfigError> {
        let at = |error| ConfigError::at(document, value.text(), error);
        let entries = value.array().map_err(|_| {
            at(Error::decode(format!(
                "invalid 'plugins' type: expected an array, found {}",
                value.kind().in_words()
            )))
        })?;
        if entries.is_empty() {
            return Err(at(Error::config("no plugins in list")));
        }
        let numbered = entries.iter().enumerate();
        numbered
            .map(|(index, entry)| {
                let object = entry
                    .object()
                    .map_err(|error| ConfigError::at(document, entry.text(), error))?;
                PluginConfig::parse(document, &object).map_err(|error| {
                    error.context(format_args!(
                        "failed to parse plugin config {index}: error parsing configuration"
                    ))
                })
            })
            .collect()
    }

    /// Whether the plugins of the folder named as the network belong to the
    /// list, if there is such a folder.
    pub const fn wants_folder_plugins(&self) -> bool {
        !self.load_only_inlined_plugins && !self.single
    }

    /// Whether it was written as a single plugin configuration.
    pub const fn is_single(&self) -> bool {
        self.single
    }

    /// Appends a plugin of the network's folder.
    pub fn push_folder_plugin(&mut self, plugin: PluginConfig) {
        self.plugins.push(plugin);
        self.raw_is_whole = false;
    }

    /// Checks that there is something to run, once everything is loaded.
    ///
    /// # Errors
    /// Code 7 if not.
    pub fn require_plugins(&self) -> Result<(), Error> {
        if !self.plugins.is_empty() {
            return Ok(());
        }
        let error = Error::config(format!("{PARSING}: no plugin configs found"));
        let has_type = std::str::from_utf8(&self.raw)
            .ok()
            .and_then(|text| Object::parse(text).ok())
            .is_some_and(|object| object.get("type").is_some());
        Err(if has_type {
            error.with_details(
                "this is one plugin, not a list: put it into 'plugins', or name the file .conf",
            )
        } else {
            error.with_details(format!(
                "write 'plugins', or put plugins into a folder named {} beside the file",
                self.name
            ))
        })
    }

    /// The versions it may be run with, the best first: for a runtime that
    /// finds a plugin not to support the best.
    pub fn candidates(&self) -> &[SpecVersion] {
        &self.candidates
    }

    /// Runs it with another of its [`NetworkList::candidates`].
    ///
    /// # Errors
    /// Code 1 if it isn't one.
    pub fn select(&mut self, version: SpecVersion) -> Result<(), Error> {
        if !self.candidates.contains(&version) {
            return Err(Error::incompatible_version(format!(
                "network {} doesn't offer version {version}",
                self.name
            )));
        }
        self.raw_is_whole &= self.version == version;
        self.version = version;
        Ok(())
    }

    /// The list as it was read; for a single configuration the list made of
    /// it.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// What to keep in an attachment's record, so that DEL runs what ADD ran:
    /// the list as it was read if that says all, else with every plugin in it
    /// and the version chosen. The Go library reads both.
    pub fn record(&self) -> Cow<'_, [u8]> {
        if self.raw_is_whole {
            return Cow::Borrowed(&self.raw);
        }
        Cow::Owned(self.merged().into_bytes())
    }

    /// The list with every plugin in it and the version chosen, other keys
    /// kept.
    pub fn merged(&self) -> String {
        let text = String::from_utf8_lossy(&self.raw);
        let object = Object::parse(&text).ok();
        let mut list = object.as_ref().map_or_else(Editor::empty, Editor::new);
        list.remove("cniVersions");
        list.set_string("cniVersion", self.version.as_str());
        list.set_string("name", self.name.as_str());
        list.set_raw("loadOnlyInlinedPlugins", "true");
        let mut plugins = Writer::compact();
        plugins.begin_array();
        for plugin in &self.plugins {
            plugins.raw(plugin.text());
        }
        plugins.end_array();
        list.set_raw("plugins", plugins.finish());
        list.finish()
    }
}

/// The error for a missing key, with a word about one in another case.
fn missing(object: &Object<'_>, key: &str, msg: &str) -> Error {
    let error = Error::config(msg);
    if has_only_other_case(object, key) {
        return error.with_details(format!("the keys of a list keep their case: write {key:?}"));
    }
    error
}

fn has_only_other_case(object: &Object<'_>, key: &str) -> bool {
    object.raw_exact(key).is_none() && object.raw(key).is_some()
}
