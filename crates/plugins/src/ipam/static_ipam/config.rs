//! The configuration of `static`.
//!
//! Addresses come from four places. The first of these that names any counts:
//! 1. `runtimeConfig.ips` (capability `ips`);
//! 2. `args.cni.ips`;
//! 3. `ipam.addresses`, and behind them those of `CNI_ARGS` `IP`.
//!
//! Every address needs its prefix length (`10.1.0.9/24`). The gateways of
//! `CNI_ARGS` `GATEWAY` go to the addresses whose network they are in, from
//! whichever place, except where `ipam.addresses` says its own. A gateway
//! outside the network of its address is accepted (on-link gateways), one of
//! the other family is not. No address at all is a result without addresses.

use std::net::IpAddr;

use ipnet::IpNet;
use podwire_plugin::DRIFT;
use podwire_spec::Error;
use podwire_spec::address::{parse_cidr, parse_ip};
use podwire_spec::json::Object;
use podwire_spec::request::PluginRequest;
use podwire_spec::result::{Dns, IpConfig, Route};
use podwire_spec::version::SpecVersion;

use crate::ipam::input::{self, family, same_family};

/// A configuration that ADD can work with.
#[derive(Debug)]
pub(super) struct Config {
    addresses: Vec<Address>,
    pub(super) routes: Vec<Route>,
    pub(super) dns: Dns,
}

/// An address to give.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Address {
    network: IpNet,
    gateway: Option<IpAddr>,
    /// The key or variable that named it, for errors.
    source: String,
}

impl Config {
    /// Reads the configuration. `ip` and `gateway` are those of `CNI_ARGS`.
    ///
    /// # Errors
    /// Code 7, or 6 for values of another type, naming the key and the value.
    pub(super) fn parse(
        request: &PluginRequest<'_>,
        version: SpecVersion,
        ip: Option<&str>,
        gateway: Option<&str>,
    ) -> Result<Self, Error> {
        let ipam =
            request.ipam.as_ref().ok_or_else(|| Error::config("IPAM config missing 'ipam' key"))?;
        let mut addresses = configured(ipam)?;
        addresses.extend(listed("CNI_ARGS IP", ip)?);
        let of_args = match &request.args {
            Some(args) => args.object("cni")?,
            None => None,
        };
        for object in of_args.iter().chain(&request.runtime_config) {
            let given = of_runtime(object)?;
            if !given.is_empty() {
                addresses = given;
            }
        }
        add_gateways(&mut addresses, gateway)?;
        let addresses = merge_equal(addresses)?;
        if version < SpecVersion::V0_3_0 {
            let networks = addresses.iter().map(|address| address.network);
            input::one_per_family(networks, "addresses of one family")?;
        }
        Ok(Self { addresses, routes: input::routes(ipam)?, dns: Dns::from_config(ipam)? })
    }

    /// The addresses as a result has them.
    pub(super) fn ips(&self) -> Vec<IpConfig> {
        let ip = |address: &Address| IpConfig {
            gateway: address.gateway,
            ..IpConfig::new(address.network)
        };
        self.addresses.iter().map(ip).collect()
    }

    /// Compares with the addresses of a result, which may have more.
    ///
    /// # Errors
    /// Code 100 ([`DRIFT`]) naming the first difference.
    pub(super) fn compare(&self, result: &[IpConfig]) -> Result<(), Error> {
        for expected in self.ips() {
            let address = expected.address;
            let found = result.iter().find(|ip| ip.address.addr() == address.addr());
            let difference = match found {
                None => format!("{address} is missing from the attachment's result"),
                Some(found) if found.address != address => {
                    format!("{address} is {} in the attachment's result", found.address)
                }
                // Where none is configured, the interface plugin may have put its own.
                Some(found) if expected.gateway.is_some() && found.gateway != expected.gateway => {
                    format!(
                        "the gateway of {address} is {} and {} in the attachment's result",
                        shown(expected.gateway),
                        shown(found.gateway)
                    )
                }
                Some(_) => continue,
            };
            return Err(Error::new(DRIFT, format!("static: Failed to match addr: {difference}")));
        }
        Ok(())
    }
}

fn shown(gateway: Option<IpAddr>) -> String {
    gateway.map_or_else(|| "none".to_owned(), |gateway| gateway.to_string())
}

/// `ipam.addresses`.
fn configured(ipam: &Object<'_>) -> Result<Vec<Address>, Error> {
    let mut addresses = Vec::new();
    for entry in ipam.array("addresses")?.iter().filter(|entry| !entry.is_null()) {
        let entry = entry.object()?;
        let source = entry.path_of("address");
        let text = entry.text_of("address")?.unwrap_or_default();
        let network = cidr(&source, &text)?;
        let gateway = input::optional_address(&entry, "gateway")?;
        if let Some(gateway) = gateway.filter(|gateway| !same_family(*gateway, network.addr())) {
            return Err(Error::config(format!(
                "{}: {gateway} is an {} address and can't be the gateway of {network}",
                entry.path_of("gateway"),
                family(gateway)
            )));
        }
        addresses.push(Address { network, gateway, source });
    }
    Ok(addresses)
}

/// A list as `CNI_ARGS` has it, with commas.
fn listed(source: &str, list: Option<&str>) -> Result<Vec<Address>, Error> {
    words(list)
        .map(|text| {
            let network = cidr(source, text)?;
            Ok(Address { network, gateway: None, source: source.to_owned() })
        })
        .collect()
}

/// `ips` of `args.cni` or `runtimeConfig`.
fn of_runtime(object: &Object<'_>) -> Result<Vec<Address>, Error> {
    let entries = object.array("ips")?;
    let entries = entries.iter().filter(|entry| !entry.is_null());
    entries
        .map(|entry| {
            let network = cidr(entry.path(), &entry.string()?)?;
            Ok(Address { network, gateway: None, source: entry.path().to_owned() })
        })
        .collect()
}

/// `GATEWAY` of `CNI_ARGS`: each to the addresses whose network it is in.
fn add_gateways(addresses: &mut [Address], list: Option<&str>) -> Result<(), Error> {
    for text in words(list) {
        let gateway = parse_ip(text).ok_or_else(|| {
            Error::config(format!("CNI_ARGS GATEWAY: invalid gateway address: {text:?}"))
        })?;
        for address in &mut *addresses {
            if address.gateway.is_none() && address.network.contains(&gateway) {
                address.gateway = Some(gateway);
            }
        }
    }
    Ok(())
}

fn words(list: Option<&str>) -> impl Iterator<Item = &str> {
    list.unwrap_or_default().split(',').map(str::trim).filter(|text| !text.is_empty())
}

/// One address named twice in the same form is one address.
fn merge_equal(all: Vec<Address>) -> Result<Vec<Address>, Error> {
    let mut merged: Vec<Address> = Vec::with_capacity(all.len());
    for address in all {
        let same = merged.iter_mut().find(|one| one.network.addr() == address.network.addr());
        let Some(first) = same else {
            merged.push(address);
            continue;
        };
        let gateways_differ = first.gateway.is_some()
            && address.gateway.is_some()
            && first.gateway != address.gateway;
        if first.network != address.network || gateways_differ {
            return Err(Error::config(format!(
                "{}: address {} is given twice in different ways, first by {}",
                address.source, address.network, first.source
            )));
        }
        first.gateway = first.gateway.or(address.gateway);
    }
    Ok(merged)
}

/// An address with its prefix length. A bare address is the commonest slip.
fn cidr(source: &str, text: &str) -> Result<IpNet, Error> {
    parse_cidr(text).ok_or_else(|| {
        let error = Error::config(format!(
            "{source}: the address is expected to be in CIDR notation, got: {text:?}"
        ));
        match parse_ip(text) {
            Some(bare) => error.with_details(format!(
                "add the prefix length of its network, as {bare}/{}",
                if bare.is_ipv4() { 24 } else { 64 }
            )),
            None => error,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(members: &str, ip: &str, gateway: &str) -> Result<Config, Error> {
        parse_as(members, ip, gateway, SpecVersion::LATEST)
    }

    fn parse_as(
        members: &str,
        ip: &str,
        gateway: &str,
        version: SpecVersion,
    ) -> Result<Config, Error> {
        let text = format!(r#"{{"name":"n1",{members}}}"#);
        let request = PluginRequest::parse(&text).unwrap();
        Config::parse(&request, version, Some(ip), Some(gateway))
    }

    fn given(config: &Config) -> Vec<String> {
        config.ips().iter().map(|ip| format!("{} {}", ip.address, shown(ip.gateway))).collect()
    }

    fn addresses(members: &str, ip: &str, gateway: &str) -> Vec<String> {
        given(&parse(members, ip, gateway).unwrap())
    }

    fn refusal(members: &str, ip: &str, gateway: &str) -> String {
        let error = parse(members, ip, gateway).unwrap_err();
        assert_eq!(error.code.number(), 7, "{error}");
        error.to_string()
    }

    const TWO: &str = r#""ipam":{"addresses":[{"address":"10.1.0.9/24","gateway":"10.1.0.1"},
                                             {"address":"fd00::9/64"}]}"#;

    /// B115
    #[test]
    fn b115_the_places_have_an_order() {
        assert_eq!(addresses(TWO, "", ""), ["10.1.0.9/24 10.1.0.1", "fd00::9/64 none"]);
        assert_eq!(
            addresses(TWO, "10.2.0.9/24,10.3.0.9/24", ""),
            ["10.1.0.9/24 10.1.0.1", "fd00::9/64 none", "10.2.0.9/24 none", "10.3.0.9/24 none"]
        );
        let args = format!(r#"{TWO},"args":{{"cni":{{"ips":["10.4.0.9/24"]}}}}"#);
        assert_eq!(addresses(&args, "10.2.0.9/24", ""), ["10.4.0.9/24 none"]);
        let runtime = format!(r#"{args},"runtimeConfig":{{"ips":["10.5.0.9/24","fd01::9/64"]}}"#);
        assert_eq!(addresses(&runtime, "10.2.0.9/24", ""), ["10.5.0.9/24 none", "fd01::9/64 none"]);
        let empty = format!(r#"{args},"runtimeConfig":{{"ips":[]}}"#);
        assert_eq!(addresses(&empty, "", ""), ["10.4.0.9/24 none"]);
        assert_eq!(addresses(r#""ipam":{}"#, "", ""), [] as [String; 0], "no address is no error");
    }

    /// B115
    #[test]
    fn b115_gateways_go_to_the_networks_they_are_in() {
        assert_eq!(
            addresses(TWO, "10.2.0.9/24", "10.2.0.1,fd00::1,10.1.0.254"),
            ["10.1.0.9/24 10.1.0.1", "fd00::9/64 fd00::1", "10.2.0.9/24 10.2.0.1"]
        );
        let runtime = format!(r#"{TWO},"runtimeConfig":{{"ips":["10.5.0.9/24"]}}"#);
        assert_eq!(addresses(&runtime, "", "10.5.0.1"), ["10.5.0.9/24 10.5.0.1"]);
        let on_link = r#""ipam":{"addresses":[{"address":"10.1.0.9/32","gateway":"169.254.1.1"}]}"#;
        assert_eq!(addresses(on_link, "", ""), ["10.1.0.9/32 169.254.1.1"]);
        assert!(refusal(TWO, "", "10.1.0").contains("invalid gateway address: \"10.1.0\""));
        let other = r#""ipam":{"addresses":[{"address":"10.1.0.9/24","gateway":"fd00::1"}]}"#;
        let text = refusal(other, "", "");
        assert!(text.contains("ipam.addresses[0].gateway: fd00::1 is an IPv6 address"), "{text}");
    }

    /// B115
    #[test]
    fn b115_a_bare_address_is_refused_with_its_source() {
        let text = refusal(TWO, "10.1.1.1", "");
        assert!(text.contains("CNI_ARGS IP: "), "{text}");
        assert!(text.contains("as 10.1.1.1/24"), "{text}");
        let runtime = format!(r#"{TWO},"runtimeConfig":{{"ips":["10.1.1.9"]}}"#);
        assert!(refusal(&runtime, "", "").contains("runtimeConfig.ips[0]: "));
        let args = format!(r#"{TWO},"args":{{"cni":{{"ips":["fd00::9"]}}}}"#);
        assert!(refusal(&args, "", "").contains("as fd00::9/64"));
        let text = refusal(r#""ipam":{"addresses":[{"address":"x"}]}"#, "", "");
        assert!(text.contains("ipam.addresses[0].address: "), "{text}");
        assert!(refusal(r#""ipam":{"addresses":[{}]}"#, "", "").contains("addresses[0].address"));
    }

    /// B115
    #[test]
    fn b115_an_address_given_twice_is_one_or_an_error() {
        assert_eq!(addresses(TWO, "10.1.0.9/24", "").len(), 2);
        let text = refusal(TWO, "10.1.0.9/25", "");
        assert!(text.contains("given twice"), "{text}");
        assert!(text.contains("first by ipam.addresses[0].address"), "{text}");
    }

    #[test]
    fn routes_and_dns_are_copied_and_old_versions_limited() {
        let members = r#""ipam":{"addresses":[{"address":"10.1.0.9/24"}],
            "routes":[{"dst":"0.0.0.0/0"},{"dst":"10.9.0.0/16","gw":"10.1.0.5","mtu":1400}],
            "dns":{"nameservers":["192.0.2.1"],"search":["example.org"]}}"#;
        let config = parse(members, "", "").unwrap();
        assert_eq!(config.routes.len(), 2);
        assert_eq!(config.routes[1].mtu, Some(1400));
        assert_eq!(config.dns.nameservers, ["192.0.2.1"]);
        assert!(parse_as(members, "10.2.0.9/24", "", SpecVersion::V0_2_0).is_err());
        parse_as(TWO, "", "", SpecVersion::V0_2_0).unwrap();
        assert!(refusal(r#""x":1"#, "", "").contains("missing 'ipam' key"));
    }

    #[test]
    fn check_finds_what_is_missing_or_different() {
        let config = parse(TWO, "", "").unwrap();
        let mut result = config.ips();
        result.push(IpConfig::new(parse_cidr("10.99.0.1/24").unwrap()));
        config.compare(&result).unwrap();
        let difference = |result: &[IpConfig]| config.compare(result).unwrap_err().msg;
        let text = difference(&result[..1]);
        assert!(text.contains("fd00::9/64 is missing from the attachment's result"), "{text}");
        result[0].gateway = None;
        assert!(difference(&result).contains("the gateway of 10.1.0.9/24 is 10.1.0.1 and none"));
        result[0].address = parse_cidr("10.1.0.9/16").unwrap();
        assert!(difference(&result).contains("10.1.0.9/24 is 10.1.0.9/16"));
    }
}
