//! Routes in options: classless (121, RFC 3442) and by address class (33).

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

/// A route that a server gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Where to.
    pub destination: Ipv4Addr,
    /// Bits of `destination` that count.
    pub prefix: u8,
    /// The router; none for what is on the link.
    pub gateway: Option<Ipv4Addr>,
}

impl Route {
    /// The destination as a network; none if the prefix is too long.
    pub fn network(&self) -> Option<Ipv4Net> {
        Ipv4Net::new(self.destination, self.prefix).ok().map(|network| network.trunc())
    }
}

/// Routes of option 121; `None` when one of them is malformed, since a part of
/// the routes may be worse than none.
pub(super) fn classless(mut value: &[u8], limit: usize) -> Option<Vec<Route>> {
    let mut routes = Vec::new();
    while let [prefix, rest @ ..] = value {
        if *prefix > 32 || routes.len() == limit {
            return None;
        }
        let (significant, rest) = rest.split_at_checked(usize::from(prefix.div_ceil(8)))?;
        let mut destination = [0; 4];
        for (to, from) in destination.iter_mut().zip(significant) {
            *to = *from;
        }
        let (gateway, rest) = rest.split_at_checked(4)?;
        let gateway = Ipv4Addr::from(<[u8; 4]>::try_from(gateway).ok()?);
        let network = Ipv4Net::new(Ipv4Addr::from(destination), *prefix).ok()?.trunc();
        routes.push(Route {
            destination: network.addr(),
            prefix: *prefix,
            gateway: Some(gateway).filter(|gateway| !gateway.is_unspecified()),
        });
        value = rest;
    }
    Some(routes)
}

/// Routes of option 33, whose destinations have the prefix of their class.
pub(super) fn classful(value: &[u8], limit: usize) -> Vec<Route> {
    let pairs = value.chunks_exact(8).take(limit);
    let route = |pair: &[u8]| {
        let (destination, gateway) = pair.split_at_checked(4)?;
        let destination = <[u8; 4]>::try_from(destination).ok()?;
        let gateway = Ipv4Addr::from(<[u8; 4]>::try_from(gateway).ok()?);
        let prefix = match destination {
            [1..=127, ..] => 8,
            [128..=191, ..] => 16,
            [192..=223, ..] => 24,
            _ => return None,
        };
        // A destination with bits beside its class is a host (RFC 1812, as
        // clients have long read it).
        let network = Ipv4Net::new(Ipv4Addr::from(destination), prefix).ok()?;
        let prefix = if network.addr() == network.trunc().addr() { prefix } else { 32 };
        (!gateway.is_unspecified()).then_some(Route {
            destination: Ipv4Addr::from(destination),
            prefix,
            gateway: Some(gateway),
        })
    };
    pairs.filter_map(route).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(routes: &[Route]) -> Vec<String> {
        let text = |route: &Route| {
            let gateway = route.gateway.map(|gateway| gateway.to_string()).unwrap_or_default();
            format!("{} {gateway}", route.network().unwrap())
        };
        routes.iter().map(text).collect()
    }

    #[test]
    fn classless_routes_carry_only_significant_bytes() {
        let value = [
            0, 10, 0, 0, 1, // default
            8, 10, 10, 0, 0, 2, // 10/8
            25, 10, 1, 2, 0x80, 10, 0, 0, 3, // 10.1.2.128/25
            32, 192, 0, 2, 7, 0, 0, 0, 0, // on the link
        ];
        let routes = classless(&value, 9).unwrap();
        assert_eq!(
            texts(&routes),
            [
                "0.0.0.0/0 10.0.0.1",
                "10.0.0.0/8 10.0.0.2",
                "10.1.2.128/25 10.0.0.3",
                "192.0.2.7/32 "
            ]
        );
        assert_eq!(classless(&value, 3), None);
        assert_eq!(classless(&[], 3), Some(Vec::new()));
        for bad in [&[33, 1, 2, 3, 4, 5, 1, 2, 3, 4][..], &[8], &[8, 10, 1, 2, 3], &[0, 1]] {
            assert_eq!(classless(bad, 9), None, "{bad:?}");
        }
    }

    #[test]
    fn classful_routes_have_their_class() {
        let value = [
            10, 0, 0, 0, 10, 0, 0, 1, //
            172, 16, 0, 0, 10, 0, 0, 1, //
            192, 168, 7, 0, 10, 0, 0, 1, //
            192, 168, 7, 9, 10, 0, 0, 1, //
            0, 0, 0, 0, 10, 0, 0, 1, // no default route here (RFC 2132, 5.8)
            224, 0, 0, 1, 10, 0, 0, 1, //
            10, 9, // cut
        ];
        assert_eq!(
            texts(&classful(&value, 9)),
            [
                "10.0.0.0/8 10.0.0.1",
                "172.16.0.0/16 10.0.0.1",
                "192.168.7.0/24 10.0.0.1",
                "192.168.7.9/32 10.0.0.1"
            ]
        );
    }
}
