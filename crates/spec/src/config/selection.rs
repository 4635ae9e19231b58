//! Which version of the specification a list is run with.

use super::location::ConfigError;
use crate::error::Error;
use crate::json::{Object, Value};
use crate::version::{SpecVersion, VersionNumbers};

/// The versions a list may be run with, the best first: `cniVersion` and those
/// of `cniVersions` that this release knows. Never empty.
///
/// Without `cniVersions` the list has no choice, so a version that isn't known
/// is an error here, where the file can be named. The Go library lets it pass
/// and fails on the result of the first ADD.
pub(super) fn candidates(
    document: &str,
    object: &Object<'_>,
) -> Result<Vec<SpecVersion>, ConfigError> {
    let declared = object.get_exact("cniVersion");
    let text = match &declared {
        Some(value) => {
            value.string().map_err(|_| wrong_type(document, value, "cniVersion", "a string"))?
        }
        None => "".into(),
    };
    let place = declared.as_ref().map_or("", |value| value.text());
    let Some(choices) = object.get_exact("cniVersions") else {
        return match SpecVersion::parse_known(&text) {
            Some(version) => Ok(vec![version]),
            None => Err(ConfigError::at(document, place, unknown(&text))),
        };
    };
    let numbers =
        VersionNumbers::parse(&text).map_err(|error| ConfigError::at(document, place, error))?;
    let mut found = vec![];
    if declared.is_some() {
        found.extend(SpecVersion::from_numbers(numbers));
    }
    let entries = choices
        .array()
        .map_err(|_| wrong_type(document, &choices, "cniVersions", "an array of strings"))?;
    for (index, entry) in entries.iter().enumerate() {
        let numbers =
            entry.string().and_then(|text| VersionNumbers::parse(&text)).map_err(|_| {
                ConfigError::at(
                    document,
                    entry.text(),
                    Error::config(format!(
                        "invalid cniVersions entry {} at index {index}",
                        entry.text()
                    ))
                    .with_details("each entry is a version in quotes, as \"1.0.0\""),
                )
            })?;
        found.extend(SpecVersion::from_numbers(numbers));
    }
    found.sort_unstable_by(|one, other| other.cmp(one));
    found.dedup();
    if found.is_empty() {
        return Err(ConfigError::at(document, choices.text(), unknown(&text)));
    }
    Ok(found)
}

fn wrong_type(document: &str, value: &Value<'_>, key: &str, wanted: &str) -> ConfigError {
    let error = Error::decode(format!(
        "invalid {key} type: expected {wanted}, found {}",
        value.kind().in_words()
    ));
    ConfigError::at(document, value.text(), error)
}

fn unknown(text: &str) -> Error {
    let known: Vec<_> = SpecVersion::ALL.iter().map(|version| version.as_str()).collect();
    Error::incompatible_version(format!("cniVersion {text:?} is not known"))
        .with_details(format!("known are {}", known.join(", ")))
}
