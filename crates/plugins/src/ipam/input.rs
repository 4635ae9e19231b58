//! Reading addresses out of configurations, with errors of code 7 that name
//! the key and the value.

use std::net::IpAddr;

use ipnet::IpNet;
use podwire_spec::Error;
use podwire_spec::address::{parse_cidr, parse_ip};
use podwire_spec::json::{Object, Value};
use podwire_spec::result::Route;

/// An IP address, as a value of the configuration.
pub(crate) fn address(value: &Value<'_>) -> Result<IpAddr, Error> {
    let text = value.string()?;
    parse_ip(&text).ok_or_else(|| unusable(value.path(), "an IP address, as 10.1.0.9", &text))
}

/// The IP address under `key`; absent when empty, as the runtimes write it.
pub(crate) fn optional_address(object: &Object<'_>, key: &str) -> Result<Option<IpAddr>, Error> {
    match object.get(key) {
        Some(value) if !value.string()?.is_empty() => address(&value).map(Some),
        _ => Ok(None),
    }
}

/// An address with or without a prefix, of which the prefix doesn't matter.
pub(crate) fn address_or_cidr(path: &str, text: &str) -> Result<IpAddr, Error> {
    parse_ip(text)
        .or_else(|| parse_cidr(text).map(|network| network.addr()))
        .ok_or_else(|| unusable(path, "an IP address, as 10.1.0.9", text))
}

/// The error for a value of the right type that isn't what it should be.
pub(crate) fn unusable(path: &str, wanted: &str, found: &str) -> Error {
    Error::config(format!("{path}: expected {wanted}, found {found:?}"))
}

/// `routes` of an `ipam` object, with all attributes.
pub(crate) fn routes(ipam: &Object<'_>) -> Result<Vec<Route>, Error> {
    let entries = ipam.array("routes")?;
    entries
        .iter()
        .filter(|entry| !entry.is_null())
        .map(|entry| Route::from_object(&entry.object()?))
        .collect()
}

/// Whether two addresses are of one family.
pub(crate) fn same_family(one: IpAddr, other: IpAddr) -> bool {
    one.is_ipv4() == other.is_ipv4()
}

/// `IPv4` or `IPv6`, for texts.
pub(crate) fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

/// At most one address a family fits a result of version 0.2.0 or older.
pub(crate) fn one_per_family(
    addresses: impl IntoIterator<Item = IpNet>,
    what: &str,
) -> Result<(), Error> {
    let (mut ipv4, mut ipv6) = (false, false);
    for network in addresses {
        let seen = if network.addr().is_ipv4() { &mut ipv4 } else { &mut ipv6 };
        if *seen {
            return Err(Error::config(format!(
                "CNI version 0.2.0 and older does not support more than 1 {} address, and the \
                 configuration has several {what}",
                family(network.addr())
            ))
            .with_details("set cniVersion to 0.3.0 or newer"));
        }
        *seen = true;
    }
    Ok(())
}
