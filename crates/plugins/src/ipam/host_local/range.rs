//! Which addresses of a subnet may be handed out: pure arithmetic.
//!
//! What is never handed out, whatever the configuration says: the gateway,
//! what `exclude` names, an IPv4 network and broadcast address, and the IPv6
//! subnet-router anycast address (RFC 4291, 2.6.1). Only point-to-point
//! prefixes (/31, /127; RFC 3021, RFC 6164) and host prefixes (/32, /128) use
//! all their addresses; since such a prefix is mostly a slip, it needs an
//! explicit `gateway`, `"none"` included.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use podwire_spec::Error;

use super::candidates::{Candidates, Span};
use super::disjoint::Disjoint;
use crate::ipam::input::{family, same_family};

/// What the configuration says about a range's gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GatewayChoice {
    /// Nothing: the first address of the subnet.
    Default,
    /// `"none"`: the result has no gateway, and no address is kept for one.
    None,
    /// This address.
    Address(IpAddr),
}

/// A range as it is written, not judged yet.
#[derive(Debug, Clone)]
pub(super) struct RangeSpec {
    /// Where it is written, as `ipam.ranges[0][1]`.
    pub(super) path: String,
    pub(super) subnet: IpNet,
    pub(super) start: Option<IpAddr>,
    pub(super) end: Option<IpAddr>,
    pub(super) gateway: GatewayChoice,
    pub(super) exclude: Vec<IpNet>,
}

/// One range of addresses of one subnet.
#[derive(Debug, Clone)]
pub(super) struct Range {
    pub(super) path: String,
    pub(super) subnet: IpNet,
    pub(super) gateway: Option<IpAddr>,
    /// Bounds, both included.
    bounds: Span,
    /// What of it may be handed out, ascending.
    usable: Vec<Span>,
    exclude: Vec<IpNet>,
}

/// What an address is to a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It can be handed out.
    Usable,
    /// It is the gateway.
    Gateway,
    /// It is the network's own address.
    Network,
    /// It is the broadcast address.
    Broadcast,
    /// `exclude` names it.
    Excluded,
    /// It is in the subnet, but not between the bounds.
    BesideBounds,
    /// It is not in the subnet.
    Outside,
}

/// An address as a number; IPv4 ones are small.
pub(super) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)),
        IpAddr::V6(v6) => u128::from(v6),
    }
}

/// The address of a number, of the family of `like`.
fn address(number: u128, like: IpNet) -> IpAddr {
    match (like, u32::try_from(number)) {
        (IpNet::V4(_), Ok(number)) => IpAddr::V4(Ipv4Addr::from(number)),
        _ => IpAddr::V6(Ipv6Addr::from(number)),
    }
}

impl Range {
    /// Judges a range.
    ///
    /// # Errors
    /// Code 7 naming the key and why its value can't be.
    pub(super) fn new(spec: RangeSpec) -> Result<Self, Error> {
        let RangeSpec { path, subnet, .. } = &spec;
        if subnet.addr() != subnet.network() {
            return Err(Error::config(format!(
                "{path}.subnet: Network {subnet} has host bits set. For a subnet mask of length \
                 {} the network address is {}",
                subnet.prefix_len(),
                subnet.network()
            )));
        }
        let host_bits = subnet.max_prefix_len() - subnet.prefix_len();
        if host_bits < 2 && spec.gateway == GatewayChoice::Default {
            return Err(Error::config(format!(
                "{path}.subnet: Network {subnet} too small to allocate from: a range of one or two \
                 addresses needs an explicit gateway"
            ))
            .with_details(
                "add \"gateway\": \"none\", or the gateway's address, if so small a range is meant",
            ));
        }
        let (network, last) = (number(subnet.network()), number(subnet.broadcast()));
        // The addresses that a host may have.
        let first_host = if host_bits < 2 { network } else { network + 1 };
        let last_host = if host_bits >= 2 && subnet.addr().is_ipv4() { last - 1 } else { last };
        let gateway = spec.gateway_address(first_host)?;
        let first = spec.bound("rangeStart", spec.start)?.unwrap_or(first_host);
        let end = spec.bound("rangeEnd", spec.end)?.unwrap_or(last_host);
        if first > end {
            return Err(Error::config(format!(
                "{path}: rangeStart {} is behind rangeEnd {}{}: the range is reversed",
                address(first, *subnet),
                address(end, *subnet),
                if spec.end.is_none() { " (the default)" } else { "" }
            )));
        }
        let bounds = Span { first, last: end };
        let hosts = bounds.intersect(Span { first: first_host, last: last_host });
        let gateways = gateway.filter(|gateway| subnet.contains(gateway)).map(number);
        let holes = gateways.into_iter().map(|at| Span { first: at, last: at }).chain(
            spec.exclude
                .iter()
                .map(|net| Span { first: number(net.network()), last: number(net.broadcast()) }),
        );
        let usable = hosts.map(|hosts| hosts.without(holes.collect())).unwrap_or_default();
        let RangeSpec { path, subnet, exclude, .. } = spec;
        Ok(Self { path, subnet, gateway, bounds, usable, exclude })
    }

    /// Whether the address lies between the bounds, handed out or not.
    pub(super) fn holds(&self, candidate: IpAddr) -> bool {
        same_family(candidate, self.subnet.addr()) && self.bounds.contains(number(candidate))
    }

    /// What an address is to this range.
    pub(super) fn place(&self, candidate: IpAddr) -> Place {
        let at = number(candidate);
        if self.gateway == Some(candidate) {
            return Place::Gateway;
        }
        if !self.subnet.contains(&candidate) {
            return Place::Outside;
        }
        if self.usable.iter().any(|span| span.contains(at)) {
            return Place::Usable;
        }
        if self.exclude.iter().any(|net| net.contains(&candidate)) {
            return Place::Excluded;
        }
        if candidate == self.subnet.network() {
            return Place::Network;
        }
        if candidate.is_ipv4() && candidate == self.subnet.broadcast() {
            return Place::Broadcast;
        }
        Place::BesideBounds
    }
}

impl RangeSpec {
    fn gateway_address(&self, first_host: u128) -> Result<Option<IpAddr>, Error> {
        let gateway = match self.gateway {
            GatewayChoice::None => return Ok(None),
            GatewayChoice::Default => return Ok(Some(address(first_host, self.subnet))),
            GatewayChoice::Address(gateway) => gateway,
        };
        if !same_family(gateway, self.subnet.addr()) {
            return Err(Error::config(format!(
                "{}.gateway: {gateway} is an {} address and can't be the gateway of {}",
                self.path,
                family(gateway),
                self.subnet
            )));
        }
        // An IPv6 gateway is often link-local or in another prefix of the
        // link; an IPv4 one can only be outside a prefix that has no room.
        let needs_room = gateway.is_ipv4() && self.subnet.prefix_len() < 32;
        if needs_room && !self.subnet.contains(&gateway) {
            return Err(Error::config(format!(
                "{}.gateway: {gateway} is not in subnet {}, so containers could not reach it",
                self.path, self.subnet
            ))
            .with_details(
                "an IPv4 gateway must be in the subnet; only an IPv6 one may be outside",
            ));
        }
        Ok(Some(gateway))
    }

    fn bound(&self, key: &str, bound: Option<IpAddr>) -> Result<Option<u128>, Error> {
        match bound {
            Some(bound) if !self.subnet.contains(&bound) => Err(Error::config(format!(
                "{}.{key}: {bound} is not in network {}",
                self.path, self.subnet
            ))),
            bound => Ok(bound.map(number)),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Span { first, last } = self.bounds;
        write!(formatter, "{}-{}", address(first, self.subnet), address(last, self.subnet))
    }
}

/// Ranges of one family that together give one address.
#[derive(Debug, Clone)]
pub(super) struct RangeSet {
    ranges: Vec<Range>,
}

impl RangeSet {
    /// Judges the ranges of a set together. `path` is where it is written.
    ///
    /// # Errors
    /// Code 7: none, families mixed, ranges that overlap, nothing to hand out.
    pub(super) fn new(path: &str, ranges: Vec<Range>) -> Result<Self, Error> {
        let Some(head) = ranges.first() else {
            return Err(Error::config(format!("{path}: empty range set")));
        };
        let mut disjoint = Disjoint::new();
        for range in &ranges {
            if !same_family(head.subnet.addr(), range.subnet.addr()) {
                return Err(Error::config(format!(
                    "{}: mixed address families: {} and {} are in one range set",
                    range.path, head.subnet, range.subnet
                ))
                .with_details("give each family a set of its own: [[IPv4 range], [IPv6 range]]"));
            }
            let Span { first, last } = range.bounds;
            if let Err(other) = disjoint.insert(first, last, range) {
                return Err(Error::config(format!(
                    "{}: subnets {other} and {range} overlap",
                    range.path
                )));
            }
        }
        let set = Self { ranges };
        if set.capacity() == 0 {
            return Err(Error::config(format!(
                "{path}: range set {set} has no address to hand out: only the network, broadcast, \
                 gateway and excluded addresses are in it"
            )));
        }
        Ok(set)
    }

    /// How many addresses it can hand out.
    pub(super) fn capacity(&self) -> u128 {
        let spans = self.ranges.iter().flat_map(|range| &range.usable);
        spans.fold(0, |sum: u128, span| sum.saturating_add(span.count()))
    }

    /// The range an address lies in, handed out or not.
    pub(super) fn range_of(&self, candidate: IpAddr) -> Option<&Range> {
        self.ranges.iter().find(|range| range.holds(candidate))
    }

    /// Whether an address can be handed out.
    pub(super) fn hands_out(&self, candidate: IpAddr) -> bool {
        self.ranges.iter().any(|range| range.place(candidate) == Place::Usable)
    }

    /// The ranges, in the order they are used up.
    pub(super) fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// Every address that can be handed out, once, round robin: beginning
    /// behind `last`, or at the start when that isn't in the set.
    pub(super) fn candidates(&self, last: Option<IpAddr>) -> impl Iterator<Item = IpAddr> + '_ {
        let like = self.ranges.first().map(|range| range.subnet);
        let groups = self.ranges.iter().map(|range| (range.bounds, range.usable.as_slice()));
        let last = last.filter(|last| self.range_of(*last).is_some()).map(number);
        Candidates::new(groups, last)
            .filter_map(move |number| like.map(|like| address(number, like)))
    }
}

/// The first set of which a range lies in a range of an earlier set: the places of that
/// one and of its own.
pub(super) fn overlap(sets: &[RangeSet]) -> Option<(usize, usize)> {
    let mut disjoint = Disjoint::new();
    for (at, set) in sets.iter().enumerate() {
        for range in &set.ranges {
            let key = |number| (range.subnet.addr().is_ipv4(), number);
            let Span { first, last } = range.bounds;
            if let Err(before) = disjoint.insert(key(first), key(last), at) {
                return Some((before, at));
            }
        }
    }
    None
}

impl fmt::Display for RangeSet {
    /// `10.1.0.1-10.1.0.9,10.2.0.1-10.2.0.9`
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, range) in self.ranges.iter().enumerate() {
            if at > 0 {
                formatter.write_str(",")?;
            }
            range.fmt(formatter)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "range_properties.rs"]
mod properties;

#[cfg(test)]
#[path = "range_tests.rs"]
mod tests;
