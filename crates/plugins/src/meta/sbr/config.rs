//! The plugin's configuration.

use std::net::IpAddr;

use podwire_spec::Error;
use podwire_spec::json::Object;

/// What the configuration asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Config {
    /// Make only rules, that lead to this table.
    pub(super) table: Option<u32>,
    /// At most one for each IP version; before those of the result.
    pub(super) gateways: Vec<IpAddr>,
    /// Leave the routes to the link's subnets in the main table.
    pub(super) add_source_hints: bool,
}

impl Config {
    /// Reads the configuration.
    ///
    /// # Errors
    /// Code 6 or 7 that names the key and its value.
    pub(super) fn parse(object: &Object<'_>) -> Result<Self, Error> {
        Ok(Self {
            table: table(object)?,
            gateways: gateways(object)?,
            add_source_hints: object.boolean("addSourceHints")?.unwrap_or(false),
        })
    }

    /// The same for DEL: a mistake must not keep anything from being removed.
    pub(super) fn parse_leniently(object: &Object<'_>) -> Self {
        let table = table(object).unwrap_or_else(|error| {
            log::warn!("going on without a table: {error}");
            None
        });
        Self { table, ..Self::default() }
    }

    /// The gateway that the configuration names for addresses of this kind.
    pub(super) fn gateway(&self, address: IpAddr) -> Option<IpAddr> {
        let mut all = self.gateways.iter().copied();
        all.find(|gateway| gateway.is_ipv4() == address.is_ipv4())
    }
}

fn table(object: &Object<'_>) -> Result<Option<u32>, Error> {
    let Some(number) = object.signed("table")? else { return Ok(None) };
    match u32::try_from(number) {
        Ok(table) if table > 0 => Ok(Some(table)),
        _ => Err(Error::config(format!("table: {number} is no routing table"))
            .with_details("tables are numbered from 1 to 4294967295")),
    }
}

fn gateways(object: &Object<'_>) -> Result<Vec<IpAddr>, Error> {
    let texts = object.string_array("gateways")?;
    if texts.len() > 2 {
        return Err(Error::config(format!(
            "gateways list cannot contain more than 2 entries, found {}",
            texts.len()
        )));
    }
    let mut gateways: Vec<IpAddr> = Vec::new();
    for text in texts {
        let gateway: IpAddr = text.parse().map_err(|_| {
            Error::config(format!("gateways: {text:?} is no IP address"))
                .with_details("for example [\"10.1.0.1\", \"fd00::1\"]")
        })?;
        if gateways.iter().any(|other| other.is_ipv4() == gateway.is_ipv4()) {
            let version = if gateway.is_ipv4() { "IPv4" } else { "IPv6" };
            return Err(Error::config(format!(
                "gateways list cannot contain multiple {version} addresses"
            )));
        }
        gateways.push(gateway);
    }
    Ok(gateways)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, Error> {
        Config::parse(&Object::parse(text).unwrap())
    }

    #[test]
    fn every_key_is_read() {
        assert_eq!(parse("{}").unwrap(), Config::default());
        let config =
            parse(r#"{"table":200,"gateways":["fd00::1","10.1.0.1"],"addSourceHints":true}"#)
                .unwrap();
        assert_eq!((config.table, config.add_source_hints), (Some(200), true));
        let gateway = |text: &str| config.gateway(text.parse().unwrap()).unwrap().to_string();
        assert_eq!(
            (gateway("10.1.0.2"), gateway("fd00::2")),
            ("10.1.0.1".into(), "fd00::1".into())
        );
    }

    #[test]
    fn mistakes_are_named() {
        let message = |text| parse(text).unwrap_err().msg;
        assert!(
            message(r#"{"gateways":["10.1.0.1","fd00::1","fd00::2"]}"#).contains("more than 2")
        );
        assert!(message(r#"{"gateways":["10.1.0.1","10.1.0.2"]}"#).contains("multiple IPv4"));
        assert!(message(r#"{"gateways":["10.1.0.1/24"]}"#).contains("10.1.0.1/24"));
        assert!(message(r#"{"table":0}"#).contains('0'));
        assert!(message(r#"{"table":4294967296}"#).contains("4294967296"));
        let object = Object::parse(r#"{"table":-1,"gateways":7}"#).unwrap();
        assert_eq!(Config::parse_leniently(&object), Config::default());
    }
}
