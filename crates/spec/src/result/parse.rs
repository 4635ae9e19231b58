//! Reading results, as tolerant as the field needs: the plugins of many
//! authors print them.

use std::net::IpAddr;

use super::newest::{CniResult, Dns, Interface, IpConfig, Route};
use super::older::{MiddleIp, MiddleResult, OldestIp, OldestResult};
use super::{Shape, VersionedResult};
use crate::address::{parse_cidr, parse_ip};
use crate::error::Error;
use crate::json::{Kind, Object, Value};
use crate::version::{Family, SpecVersion};

impl VersionedResult {
    /// Reads what a plugin printed or a record holds.
    ///
    /// A result without a version, with an empty one or with one that isn't a
    /// string takes that of the configuration; otherwise its own decides, even
    /// if it differs (CNI issue 895).
    ///
    /// # Errors
    /// Code 6 if it isn't one JSON object (`null` included) or a part has
    /// another type; code 1 for a version this release doesn't know.
    pub fn parse(text: &str, config_version: SpecVersion) -> Result<Self, Error> {
        let object = Object::parse(text).map_err(|error| error.context("reading the result"))?;
        Self::from_object(&object, config_version)
            .map_err(|error| error.context("reading the result"))
    }

    /// Reads a result that is part of another document.
    ///
    /// # Errors
    /// As [`VersionedResult::parse`].
    pub fn from_object(object: &Object<'_>, config_version: SpecVersion) -> Result<Self, Error> {
        let version = declared_version(object)?.unwrap_or(config_version);
        let shape = match version.family() {
            Family::Oldest => Shape::Oldest(OldestResult {
                ip4: oldest_ip(object, "ip4")?,
                ip6: oldest_ip(object, "ip6")?,
                dns: Dns::from_config(object)?,
            }),
            Family::Middle => Shape::Middle(middle(object)?),
            Family::Newest => Shape::Newest(newest(object)?),
        };
        Ok(Self { version, shape })
    }
}

/// The version as the Go implementation looks for it: by the exact key, and
/// only if it is a string.
fn declared_version(object: &Object<'_>) -> Result<Option<SpecVersion>, Error> {
    let declared = object.get_exact("cniVersion").filter(|value| value.kind() == Kind::String);
    let Some(declared) = declared else { return Ok(None) };
    let text = declared.string()?;
    if text.is_empty() {
        return Ok(None);
    }
    SpecVersion::parse_known(&text).map(Some).ok_or_else(|| {
        Error::incompatible_version(format!("unsupported CNI result version {text:?}"))
    })
}

fn newest(object: &Object<'_>) -> Result<CniResult, Error> {
    let (interfaces, places) = interfaces(object, true)?;
    let mut ips = Vec::new();
    for entry in present(object.array("ips")?) {
        ips.push(ip_config(&entry.object()?, &places)?);
    }
    Ok(CniResult { interfaces, ips, routes: routes(object)?, dns: Dns::from_config(object)? })
}

fn middle(object: &Object<'_>) -> Result<MiddleResult, Error> {
    let (interfaces, places) = interfaces(object, false)?;
    let mut ips = Vec::new();
    for entry in present(object.array("ips")?) {
        let entry = entry.object()?;
        let version = entry.string("version")?.unwrap_or_default().into_owned();
        ips.push(MiddleIp { version, config: ip_config(&entry, &places)? });
    }
    Ok(MiddleResult { interfaces, ips, routes: routes(object)?, dns: Dns::from_config(object)? })
}

fn oldest_ip(object: &Object<'_>, key: &str) -> Result<Option<OldestIp>, Error> {
    let Some(entry) = object.object(key)? else { return Ok(None) };
    let ip = required_cidr(&entry, "ip")?;
    Ok(Some(OldestIp { ip, gateway: address(&entry, "gateway")?, routes: routes(&entry)? }))
}

/// Array elements that are not `null`.
fn present(elements: Vec<Value<'_>>) -> impl Iterator<Item = Value<'_>> {
    elements.into_iter().filter(|element| !element.is_null())
}

/// Where each entry of the printed list went: `None` for a dropped `null`.
type Places = Vec<Option<usize>>;

/// The interfaces, `null` entries dropped, and where each went, so that the
/// indices of the addresses still mean the same interface.
fn interfaces(object: &Object<'_>, newest: bool) -> Result<(Vec<Interface>, Places), Error> {
    let mut interfaces = Vec::new();
    let mut places = Vec::new();
    for entry in object.array("interfaces")? {
        if entry.is_null() {
            places.push(None);
            continue;
        }
        let entry = entry.object()?;
        let optional = |key| Ok::<_, Error>(entry.text_of(key)?.map(std::borrow::Cow::into_owned));
        places.push(Some(interfaces.len()));
        interfaces.push(Interface {
            name: entry.string("name")?.unwrap_or_default().into_owned(),
            mac: optional("mac")?,
            sandbox: optional("sandbox")?,
            mtu: if newest { amount(&entry, "mtu")? } else { None },
            socket_path: if newest { optional("socketPath")? } else { None },
            pci_id: if newest { optional("pciID")? } else { None },
        });
    }
    Ok((interfaces, places))
}

fn ip_config(entry: &Object<'_>, places: &Places) -> Result<IpConfig, Error> {
    let interface = match entry.get("interface") {
        None => None,
        // Some plugins write -1 for "none".
        Some(index) if index.text() == "-1" => None,
        Some(index) => {
            let index = index.integer::<usize>()?;
            match places.get(index) {
                Some(place) => *place,
                // Out of range stays out of range; whoever uses it checks.
                None => Some(index),
            }
        }
    };
    Ok(IpConfig {
        address: required_cidr(entry, "address")?,
        gateway: address(entry, "gateway")?,
        interface,
    })
}

fn routes(object: &Object<'_>) -> Result<Vec<Route>, Error> {
    let entries = present(object.array("routes")?);
    entries.map(|entry| Route::from_object(&entry.object()?)).collect()
}

impl Route {
    /// Reads a route of a result or of an IPAM configuration.
    ///
    /// # Errors
    /// Code 6 naming the key, if `dst` is missing or a value has another type.
    pub fn from_object(entry: &Object<'_>) -> Result<Self, Error> {
        Ok(Self {
            dst: required_cidr(entry, "dst")?,
            gw: address(entry, "gw")?,
            mtu: amount(entry, "mtu")?,
            advmss: amount(entry, "advmss")?,
            priority: amount(entry, "priority")?,
            table: entry.integer("table")?,
            scope: entry.integer("scope")?,
        })
    }
}

impl Dns {
    /// Reads the `dns` of a result or of a plugin configuration; empty when
    /// absent.
    ///
    /// # Errors
    /// Code 6 naming the key, if a value has another type.
    pub fn from_config(object: &Object<'_>) -> Result<Self, Error> {
        let Some(entry) = object.object("dns")? else { return Ok(Self::default()) };
        Ok(Self {
            nameservers: entry.string_array("nameservers")?,
            domain: entry.text_of("domain")?.map(std::borrow::Cow::into_owned),
            search: entry.string_array("search")?,
            options: entry.string_array("options")?,
        })
    }
}

fn required_cidr(entry: &Object<'_>, key: &str) -> Result<ipnet::IpNet, Error> {
    const WANTED: &str = "an address with a prefix, as 10.1.2.3/24";
    let value = entry.get(key).ok_or_else(|| {
        Error::decode(format!("{}: missing, expected {WANTED}", entry.path_of(key)))
    })?;
    parse_cidr(&value.string()?).ok_or_else(|| value.mismatch(WANTED))
}

fn address(entry: &Object<'_>, key: &str) -> Result<Option<IpAddr>, Error> {
    let Some(value) = entry.get(key) else { return Ok(None) };
    let text = value.string()?;
    if text.is_empty() {
        return Ok(None);
    }
    parse_ip(&text).map(Some).ok_or_else(|| value.mismatch("an IP address"))
}

/// A number of which 0 means "not set". So does a negative one: the Go types
/// are signed and let it pass, and the kernel has no such value.
fn amount(entry: &Object<'_>, key: &str) -> Result<Option<u32>, Error> {
    if entry.get(key).is_some_and(|value| value.integer::<i64>().is_ok_and(|number| number <= 0)) {
        return Ok(None);
    }
    entry.integer(key)
}
