//! Routes (`struct rtmsg`, `linux/rtnetlink.h`).

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::attribute::{Attribute, Attributes, read_u16, read_u32};
use crate::error::Malformed;
use crate::message::Body;
use crate::route::family::{Family, Scope, TABLE_MAIN};

pub use super::route_change::{AddRoute, DeleteRoute, RouteMode};
pub use super::route_query::RouteFilter;

pub(crate) const RTM_NEWROUTE: u16 = 24;
pub(crate) const RTM_DELROUTE: u16 = 25;
pub(crate) const RTM_GETROUTE: u16 = 26;

pub(crate) const RTA_DST: u16 = 1;
const RTA_SRC: u16 = 2;
pub(crate) const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTA_MULTIPATH: u16 = 9;
pub(crate) const RTA_TABLE: u16 = 15;
const RTA_VIA: u16 = 18;
const RTAX_MTU: u16 = 2;
const RTAX_ADVMSS: u16 = 8;

/// `sizeof(struct rtmsg)`.
pub(crate) const HEADER: usize = 12;
/// The gateway is reachable on the link though no subnet says so
/// (`RTNH_F_ONLINK`).
const RTNH_F_ONLINK: u32 = 4;
/// The route is a copy that the kernel made for a destination (`RTM_F_CLONED`).
const RTM_F_CLONED: u32 = 0x200;

/// What happens to packets (`RTN_*`): the kernel's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RouteKind(pub u8);

impl RouteKind {
    /// Sent out of a link.
    pub const UNICAST: Self = Self(1);
    /// Taken by the host.
    pub const LOCAL: Self = Self(2);
    /// Taken by the host and sent as broadcast.
    pub const BROADCAST: Self = Self(3);
    /// Dropped silently.
    pub const BLACKHOLE: Self = Self(6);
    /// Refused as unreachable.
    pub const UNREACHABLE: Self = Self(7);
    /// Refused as prohibited.
    pub const PROHIBIT: Self = Self(8);
    /// Looked up in the next table instead.
    pub const THROW: Self = Self(9);
}

/// Who made a route (`RTPROT_*`): the kernel's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RouteProtocol(pub u8);

impl RouteProtocol {
    /// Unknown; in a listing filter, any.
    pub const UNSPECIFIED: Self = Self(0);
    /// The kernel itself, with an address.
    pub const KERNEL: Self = Self(2);
    /// Set up at boot time, the customary value for tools that aren't routing
    /// daemons.
    pub const BOOT: Self = Self(3);
    /// The administrator.
    pub const STATIC: Self = Self(4);
}

/// One of several ways of a multipath route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextHop {
    /// The link to leave by.
    pub output: u32,
    /// The router on the way, or `None` for a destination on the link.
    pub gateway: Option<IpAddr>,
    /// Its share is `weight + 1`.
    pub weight: u8,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Where to; the prefix `0.0.0.0/0` or `::/0` for everything.
    pub destination: IpNet,
    /// Where from, if that matters (IPv6).
    pub source: Option<IpNet>,
    /// The router on the way; it may be IPv6 for an IPv4 destination.
    pub gateway: Option<IpAddr>,
    /// The link to leave by.
    pub output: Option<u32>,
    /// The ways of a multipath route, which has no gateway and output itself.
    pub next_hops: Vec<NextHop>,
    /// The source address of packets without one.
    pub preferred_source: Option<IpAddr>,
    /// Its rank among routes to the same place, low first. `None` for the
    /// kernel's default: 0, or 1024 for IPv6.
    pub priority: Option<u32>,
    /// Its table.
    pub table: u32,
    /// How far it reaches. The kernel ignores it for IPv6.
    pub scope: Scope,
    /// What happens to packets.
    pub kind: RouteKind,
    /// Who made it.
    pub protocol: RouteProtocol,
    /// Largest packet, in bytes, if set for the route.
    pub mtu: Option<u32>,
    /// TCP segment size to announce, in bytes, if set for the route.
    pub advertised_mss: Option<u32>,
    /// Whether the gateway is on the link though no subnet says so.
    pub on_link: bool,
    /// Whether it is an entry of the kernel's cache of exceptions.
    pub cloned: bool,
}

impl Route {
    /// A unicast route in the main table, made by an administrator's tool.
    ///
    /// Its scope is the universe. The kernel compares the scope (IPv4) and who
    /// made the route when it looks for one to delete:
    /// [`Scope::NOWHERE`] and [`RouteProtocol::UNSPECIFIED`] match any there.
    #[must_use]
    pub fn new(destination: IpNet) -> Self {
        Self {
            destination: destination.trunc(),
            source: None,
            gateway: None,
            output: None,
            next_hops: Vec::new(),
            preferred_source: None,
            priority: None,
            table: TABLE_MAIN,
            scope: Scope::UNIVERSE,
            kind: RouteKind::UNICAST,
            protocol: RouteProtocol::BOOT,
            mtu: None,
            advertised_mss: None,
            on_link: false,
            cloned: false,
        }
    }

    /// Its family.
    #[must_use]
    pub fn family(&self) -> Family {
        Family::of(self.destination.addr())
    }

    /// Whether it leads everywhere.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.destination.prefix_len() == 0
    }

    /// Whether it refuses packets rather than sending them.
    pub(crate) fn is_refusal(&self) -> bool {
        let refusals = [RouteKind::BLACKHOLE, RouteKind::UNREACHABLE, RouteKind::PROHIBIT];
        refusals.contains(&self.kind)
    }

    /// Reads an `RTM_NEWROUTE` or `RTM_DELROUTE` message behind its netlink
    /// header; `None` for a family other than IPv4 and IPv6.
    ///
    /// # Errors
    /// The message breaks the format of `linux/rtnetlink.h`.
    pub fn decode(message: &[u8]) -> Result<Option<Self>, Malformed> {
        let short = Malformed("a route message is shorter than its header");
        let header = *message.first_chunk::<8>().ok_or(short)?;
        let flags = read_u32(message, 8).ok_or(short)?;
        let [family, destination_length, source_length, _, table, protocol, scope, kind] = header;
        let Some(family) = Family::from_number(family) else { return Ok(None) };
        let mut route = Self {
            table: u32::from(table),
            scope: Scope(scope),
            kind: RouteKind(kind),
            protocol: RouteProtocol(protocol),
            on_link: flags & RTNH_F_ONLINK != 0,
            cloned: flags & RTM_F_CLONED != 0,
            ..Self::new(family.everything())
        };
        let (mut destination, mut source) = (None, None);
        for attribute in Attributes::after(message, HEADER)? {
            let attribute = attribute?;
            match attribute.kind {
                RTA_DST => destination = Some(attribute.ip()?),
                RTA_SRC => source = Some(attribute.ip()?),
                _ => route.take(attribute)?,
            }
        }
        route.destination = family.prefix(destination, destination_length)?;
        if source_length > 0 {
            route.source = Some(family.prefix(source, source_length)?);
        }
        Ok(Some(route))
    }

    fn take(&mut self, attribute: Attribute<'_>) -> Result<(), Malformed> {
        match attribute.kind {
            RTA_OIF => self.output = Some(attribute.u32()?),
            RTA_GATEWAY => self.gateway = Some(attribute.ip()?),
            RTA_VIA => self.gateway = Some(decode_via(attribute)?),
            RTA_PRIORITY => self.priority = Some(attribute.u32()?),
            RTA_PREFSRC => self.preferred_source = Some(attribute.ip()?),
            RTA_TABLE => self.table = attribute.u32()?,
            RTA_METRICS => {
                for metric in attribute.nested() {
                    let metric = metric?;
                    match metric.kind {
                        RTAX_MTU => self.mtu = Some(metric.u32()?),
                        RTAX_ADVMSS => self.advertised_mss = Some(metric.u32()?),
                        _ => {}
                    }
                }
            }
            RTA_MULTIPATH => self.next_hops = decode_next_hops(attribute.payload)?,
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn encode(&self, body: &mut Body<'_>) {
        let source_length = self.source.map_or(0, |source| source.prefix_len());
        // Tables above 255 only fit the attribute.
        let table = u8::try_from(self.table).unwrap_or(0);
        let [a, b, c, d] = if self.on_link { RTNH_F_ONLINK } else { 0 }.to_ne_bytes();
        let family = self.family();
        let length = self.destination.prefix_len();
        let (protocol, scope, kind) = (self.protocol.0, self.scope.0, self.kind.0);
        body.raw(&[
            family.number(),
            length,
            source_length,
            0,
            table,
            protocol,
            scope,
            kind,
            a,
            b,
            c,
            d,
        ]);
        if length > 0 {
            body.ip(RTA_DST, self.destination.network());
        }
        match self.source {
            Some(source) if Family::of(source.addr()) != family => {
                body.fail("a route's source of another family than its destination");
            }
            Some(source) => body.ip(RTA_SRC, source.network()),
            None => {}
        }
        if let Some(gateway) = self.gateway {
            encode_gateway(body, family, gateway);
        }
        if let Some(output) = self.output {
            body.u32(RTA_OIF, output);
        }
        match self.preferred_source {
            Some(source) if Family::of(source) != family => {
                body.fail("a route's preferred source of another family than its destination");
            }
            Some(source) => body.ip(RTA_PREFSRC, source),
            None => {}
        }
        if let Some(priority) = self.priority {
            body.u32(RTA_PRIORITY, priority);
        }
        if self.table > 255 {
            body.u32(RTA_TABLE, self.table);
        }
        if self.mtu.is_some() || self.advertised_mss.is_some() {
            body.nest(RTA_METRICS, |metrics| {
                if let Some(mtu) = self.mtu {
                    metrics.u32(RTAX_MTU, mtu);
                }
                if let Some(size) = self.advertised_mss {
                    metrics.u32(RTAX_ADVMSS, size);
                }
            });
        }
        if !self.next_hops.is_empty() {
            body.nest_unflagged(RTA_MULTIPATH, |hops| {
                self.next_hops.iter().for_each(|hop| hop.encode(hops, family));
            });
        }
    }
}

impl NextHop {
    /// `struct rtnexthop` and its attributes.
    fn encode(&self, body: &mut Body<'_>, family: Family) {
        // A gateway of the family is 4 + 4 or 4 + 16 bytes; RTA_VIA has a
        // family of 2 bytes more, and padding.
        let gateway = match self.gateway {
            None => 0,
            Some(IpAddr::V4(_)) => 8,
            Some(IpAddr::V6(_)) if family == Family::V6 => 20,
            Some(IpAddr::V6(_)) => 24,
        };
        let [l0, l1] = (8_u16 + gateway).to_ne_bytes();
        let [a, b, c, d] = self.output.to_ne_bytes();
        body.raw(&[l0, l1, 0, self.weight, a, b, c, d]);
        if let Some(gateway) = self.gateway {
            encode_gateway(body, family, gateway);
        }
    }
}

fn encode_gateway(body: &mut Body<'_>, family: Family, gateway: IpAddr) {
    match (family, gateway) {
        (Family::V4, IpAddr::V6(via)) => {
            let mut value = [0; 18];
            let (number, address) = value.split_at_mut(2);
            number.copy_from_slice(&u16::from(Family::V6.number()).to_ne_bytes());
            address.copy_from_slice(&via.octets());
            body.attribute(RTA_VIA, &value);
        }
        (Family::V6, IpAddr::V4(_)) => body.fail("an IPv4 gateway for an IPv6 destination"),
        (_, gateway) => body.ip(RTA_GATEWAY, gateway),
    }
}

fn decode_via(attribute: Attribute<'_>) -> Result<IpAddr, Malformed> {
    let payload = attribute.payload.get(2..).unwrap_or_default();
    Attribute { kind: RTA_VIA, payload }.ip()
}

fn decode_next_hops(bytes: &[u8]) -> Result<Vec<NextHop>, Malformed> {
    let mut rest = bytes;
    let mut hops = Vec::new();
    while !rest.is_empty() {
        let malformed = Malformed("a next hop whose length points outside its route");
        let length = usize::from(read_u16(rest, 0).ok_or(malformed)?);
        let output = read_u32(rest, 4).ok_or(malformed)?;
        let weight = *rest.get(3).ok_or(malformed)?;
        let attributes = rest.get(8..length).ok_or(malformed)?;
        let mut hop = NextHop { output, gateway: None, weight };
        for attribute in Attributes::new(attributes) {
            let attribute = attribute?;
            match attribute.kind {
                RTA_GATEWAY => hop.gateway = Some(attribute.ip()?),
                RTA_VIA => hop.gateway = Some(decode_via(attribute)?),
                _ => {}
            }
        }
        hops.push(hop);
        rest = rest.get(crate::attribute::align(length)..).unwrap_or_default();
    }
    Ok(hops)
}

impl fmt::Display for Route {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_default() {
            formatter.write_str(match self.family() {
                Family::V4 => "default",
                Family::V6 => "default (IPv6)",
            })?;
        } else {
            write!(formatter, "{}", self.destination)?;
        }
        if let Some(gateway) = self.gateway {
            write!(formatter, " via {gateway}")?;
        }
        if let Some(priority) = self.priority {
            write!(formatter, " metric {priority}")?;
        }
        if self.table != TABLE_MAIN {
            write!(formatter, " table {}", self.table)?;
        }
        Ok(())
    }
}
