//! The well-known values of `runtimeConfig` (CNI conventions, "Dynamic Plugin
//! specific fields"), as types.
//!
//! Every function takes the object that holds the capability, mostly
//! [`crate::request::PluginRequest::runtime_config`], and tells absent and
//! `null` alike: nothing was asked for. Keys are read in any case, since
//! runtimes not written in Go send `HostPort` and the like.

mod addresses;
mod ports;

pub use addresses::{IpRange, RequestedIp, ip_ranges, ips};
pub use ports::{PortMapping, Protocol, port_mappings};

use crate::error::Error;
use crate::json::{Kind, Object};
use crate::mac::MacAddress;
use crate::result::Dns;

/// `bandwidth`: limits of the container's traffic. 0 is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bandwidth {
    /// Into the container, bits a second.
    pub ingress_rate: u64,
    /// Into the container at once, bits.
    pub ingress_burst: u64,
    /// Out of the container, bits a second.
    pub egress_rate: u64,
    /// Out of the container at once, bits.
    pub egress_burst: u64,
}

impl Bandwidth {
    /// Reads the four keys of an object; the plugin's own configuration has
    /// the same.
    ///
    /// # Errors
    /// Code 6, naming the key, for another type.
    pub fn from_object(object: &Object<'_>) -> Result<Self, Error> {
        let amount = |key| Ok::<_, Error>(object.unsigned(key)?.unwrap_or(0));
        Ok(Self {
            ingress_rate: amount("ingressRate")?,
            ingress_burst: amount("ingressBurst")?,
            egress_rate: amount("egressRate")?,
            egress_burst: amount("egressBurst")?,
        })
    }
}

/// `bandwidth`.
///
/// # Errors
/// Code 6, naming the key, for another type; as all of these.
pub fn bandwidth(object: &Object<'_>) -> Result<Option<Bandwidth>, Error> {
    object.object("bandwidth")?.map(|entry| Bandwidth::from_object(&entry)).transpose()
}

/// `dns`, whose keys are `servers`, `searches` and `options`, unlike those of
/// a configuration; these are read as well.
pub fn dns(object: &Object<'_>) -> Result<Option<Dns>, Error> {
    let Some(entry) = object.object("dns")? else { return Ok(None) };
    let mut dns = Dns::from_config(object)?;
    dns.nameservers.extend(entry.string_array("servers")?);
    dns.search.extend(entry.string_array("searches")?);
    Ok(Some(dns))
}

/// `mac`: the hardware address the interface shall have.
pub fn mac(object: &Object<'_>) -> Result<Option<MacAddress>, Error> {
    object.parsed("mac", "a hardware address, as 02:00:5e:10:00:01")
}

/// `aliases` of the container in a network: a list (the convention) or an
/// object with a list for each network (Podman, CRI-O).
pub fn aliases(object: &Object<'_>, network: &str) -> Result<Vec<String>, Error> {
    match object.get("aliases") {
        None => Ok(Vec::new()),
        Some(value) if value.kind() == Kind::Object => {
            let networks = value.object()?;
            // The keys are names of networks, so their case counts.
            match networks.get_exact(network) {
                Some(list) => {
                    list.array()?.iter().map(|alias| Ok(alias.string()?.into())).collect()
                }
                None => Ok(Vec::new()),
            }
        }
        Some(_) => object.string_array("aliases"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Object<'_> {
        Object::parse(text).unwrap()
    }

    #[test]
    fn bandwidth_is_read_in_any_case_and_null_is_no_limit() {
        let text = r#"{"Bandwidth":{"IngressRate":1000000,"ingressBurst":null,"egressRate":18446744073709551615}}"#;
        let limits = bandwidth(&object(text)).unwrap().unwrap();
        assert_eq!(
            limits,
            Bandwidth { ingress_rate: 1_000_000, egress_rate: u64::MAX, ..Bandwidth::default() }
        );
        assert_eq!(bandwidth(&object(r#"{"bandwidth":null}"#)).unwrap(), None);
        let error = bandwidth(&object(r#"{"bandwidth":{"egressRate":-1}}"#)).unwrap_err();
        assert!(error.msg.starts_with("bandwidth.egressRate: expected a whole number"));
    }

    #[test]
    fn name_servers_come_under_two_names() {
        let text = r#"{"dns":{"Servers":["10.0.0.10"],"searches":["a"],"options":["ndots:5"],"nameservers":null}}"#;
        let servers = dns(&object(text)).unwrap().unwrap();
        assert_eq!(servers.nameservers, ["10.0.0.10"]);
        assert_eq!((servers.search.len(), servers.options.len()), (1, 1));
        assert_eq!(dns(&object("{}")).unwrap(), None);
    }

    #[test]
    fn a_hardware_address_is_checked() {
        let address = mac(&object(r#"{"MAC":"02:00:5E:10:00:01"}"#)).unwrap().unwrap();
        assert_eq!(address.to_string(), "02:00:5e:10:00:01");
        assert_eq!(mac(&object(r#"{"mac":""}"#)).unwrap(), None);
        assert!(mac(&object(r#"{"mac":"x"}"#)).unwrap_err().msg.contains("found \"x\""));
    }

    #[test]
    fn aliases_come_as_a_list_or_by_network() {
        assert_eq!(aliases(&object(r#"{"aliases":["a",null]}"#), "n").unwrap(), ["a"]);
        let text = object(r#"{"aliases":{"n":["a","b"],"N":["c"]}}"#);
        assert_eq!(aliases(&text, "n").unwrap(), ["a", "b"]);
        assert!(aliases(&text, "other").unwrap().is_empty());
        assert!(aliases(&object(r#"{"aliases":"a"}"#), "n").is_err());
    }
}
