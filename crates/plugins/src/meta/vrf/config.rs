//! The plugin's configuration.

use podwire_spec::Error;
use podwire_spec::id::IfName;
use podwire_spec::json::Object;

/// What the configuration asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Config {
    /// The VRF's name inside the container.
    pub(super) name: IfName,
    /// Its table; any free one where there is none.
    pub(super) table: Option<u32>,
}

impl Config {
    /// Reads the configuration.
    ///
    /// # Errors
    /// Code 6 or 7 that names the key and its value.
    pub(super) fn parse(object: &Object<'_>) -> Result<Self, Error> {
        let name = object.text_of("vrfname")?.ok_or_else(|| {
            Error::config("configuration is expected to have a valid vrf name")
                .with_details("set vrfname, for example to \"blue\"")
        })?;
        let name = IfName::parse(&name)
            .map_err(|error| Error::config(format!("vrfname {name:?}: {}", error.msg)))?;
        let table = match object.unsigned("table")? {
            None | Some(0) => None,
            Some(number) => Some(u32::try_from(number).map_err(|_| {
                Error::config(format!("table: {number} is no routing table"))
                    .with_details("tables are numbered from 1 to 4294967295; 0 takes a free one")
            })?),
        };
        Ok(Self { name, table })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, Error> {
        Config::parse(&Object::parse(text).unwrap())
    }

    #[test]
    fn name_and_table_are_read() {
        let config = parse(r#"{"vrfname":"blue","table":10}"#).unwrap();
        assert_eq!((config.name.as_str(), config.table), ("blue", Some(10)));
        assert_eq!(parse(r#"{"vrfname":"blue","table":0}"#).unwrap().table, None);
    }

    #[test]
    fn mistakes_are_named() {
        let message = |text| parse(text).unwrap_err().msg;
        let expected = "configuration is expected to have a valid vrf name";
        assert_eq!(message("{}"), expected);
        assert_eq!(message(r#"{"vrfname":""}"#), expected);
        assert!(message(r#"{"vrfname":"a/b"}"#).contains("a/b"));
        assert!(message(r#"{"vrfname":"x","table":4294967296}"#).contains("4294967296"));
    }
}
