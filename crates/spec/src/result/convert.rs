//! Results from one version to another. What is lost, step by step:
//!
//! - 1.x to 0.3–0.4: an interface's `mtu`, `socketPath` and `pciID`. The
//!   `version` of an address comes from the address.
//! - 0.3–0.4 to 0.1–0.2: all interfaces, and all addresses but the first whose
//!   declared `version` is `4` and the first whose is `6`. A route goes where
//!   its destination's family has an address, with `dst` and `gw` alone, or
//!   nowhere. Without any address there is no such result.
//! - Upwards nothing is lost but the declared `version`.

use ipnet::IpNet;

use super::newest::{CniResult, Interface, IpConfig, Route};
use super::older::{MiddleIp, MiddleResult, OldestIp, OldestResult};
use super::{Shape, VersionedResult};
use crate::error::Error;
use crate::version::{Family, SpecVersion};

pub(super) fn convert(result: VersionedResult, to: SpecVersion) -> Result<VersionedResult, Error> {
    let shape = match (to.family(), result.shape) {
        (Family::Oldest, shape @ Shape::Oldest(_))
        | (Family::Middle, shape @ Shape::Middle(_))
        | (Family::Newest, shape @ Shape::Newest(_)) => shape,
        (Family::Newest, shape) => Shape::Newest(to_newest(shape)),
        (Family::Middle, shape) => Shape::Middle(to_middle(shape)),
        (Family::Oldest, shape) => Shape::Oldest(
            to_oldest(to_middle(shape))
                .map_err(|error| error.context(format!("converting {} to {to}", result.version)))?,
        ),
    };
    Ok(VersionedResult { version: to, shape })
}

pub(super) fn to_newest(shape: Shape) -> CniResult {
    match shape {
        Shape::Newest(result) => result,
        shape => {
            let middle = to_middle(shape);
            CniResult {
                interfaces: middle.interfaces,
                ips: middle.ips.into_iter().map(|ip| ip.config).collect(),
                routes: middle.routes,
                dns: middle.dns,
            }
        }
    }
}

fn to_middle(shape: Shape) -> MiddleResult {
    match shape {
        Shape::Middle(result) => result,
        Shape::Oldest(result) => oldest_to_middle(result),
        Shape::Newest(result) => MiddleResult {
            interfaces: result.interfaces.into_iter().map(without_newest_keys).collect(),
            ips: result.ips.into_iter().map(with_version).collect(),
            routes: result.routes,
            dns: result.dns,
        },
    }
}

fn without_newest_keys(interface: Interface) -> Interface {
    Interface { mtu: None, socket_path: None, pci_id: None, ..interface }
}

fn with_version(config: IpConfig) -> MiddleIp {
    let version = if is_v4(config.address) { "4" } else { "6" };
    MiddleIp { version: version.to_owned(), config }
}

fn oldest_to_middle(result: OldestResult) -> MiddleResult {
    let mut middle = MiddleResult { dns: result.dns, ..MiddleResult::default() };
    for (version, ip) in [("4", result.ip4), ("6", result.ip6)] {
        let Some(OldestIp { ip, gateway, routes }) = ip else { continue };
        middle.ips.push(MiddleIp {
            version: version.to_owned(),
            config: IpConfig { address: ip, gateway, interface: None },
        });
        middle.routes.extend(routes);
    }
    middle
}

fn to_oldest(result: MiddleResult) -> Result<OldestResult, Error> {
    let first = |version: &str| {
        let found = result.ips.iter().find(|ip| ip.version == version)?;
        Some(OldestIp {
            ip: found.config.address,
            gateway: found.config.gateway,
            routes: Vec::new(),
        })
    };
    let mut ip4 = first("4");
    let mut ip6 = first("6");
    if ip4.is_none() && ip6.is_none() {
        return Err(Error::internal("cannot convert: no valid IP addresses")
            .with_details("results of 0.1.0 and 0.2.0 are one IPv4 and one IPv6 address; use a newer cniVersion for an attachment without addresses"));
    }
    for route in &result.routes {
        let side = if is_v4(route.dst) { &mut ip4 } else { &mut ip6 };
        if let Some(side) = side {
            side.routes.push(Route::new(route.dst, route.gw));
        }
    }
    Ok(OldestResult { ip4, ip6, dns: result.dns })
}

const fn is_v4(network: IpNet) -> bool {
    matches!(network, IpNet::V4(_))
}
