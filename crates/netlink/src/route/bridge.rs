//! Ports of a bridge: their flags and VLANs (`linux/if_bridge.h`).

use std::fmt;

use bitflags::bitflags;

use crate::attribute::Attributes;
use crate::error::{Error, Malformed, Subject};
use crate::message::{Body, Requests};
use crate::route::RouteSocket;
use crate::route::change::{ACKNOWLEDGED, Change};
use crate::route::device::Device;
use crate::route::link::{
    IFLA_EXT_MASK, LINK_HEADER, RTM_DELLINK, RTM_GETLINK, RTM_NEWLINK, RTM_SETLINK, encode_header,
};

/// `AF_BRIDGE` (linux/socket.h).
const AF_BRIDGE: u8 = 7;
const IFLA_PROTINFO: u16 = 12;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_BRPORT_MODE: u16 = 4;
const IFLA_BRPORT_LEARNING: u16 = 8;
const IFLA_BRPORT_UNICAST_FLOOD: u16 = 9;
const IFLA_BRPORT_NEIGH_SUPPRESS: u16 = 32;
const IFLA_BRPORT_ISOLATED: u16 = 33;
const IFLA_BRIDGE_FLAGS: u16 = 0;
const IFLA_BRIDGE_VLAN_INFO: u16 = 2;
/// The bridge's own VLANs rather than a port's (`BRIDGE_FLAGS_SELF`).
const BRIDGE_FLAGS_SELF: u16 = 2;
/// Lists VLANs one by one (`RTEXT_FILTER_BRVLAN`).
const LIST_VLANS: u32 = 2;
/// Highest VLAN that can be used.
pub const VLAN_LIMIT: u16 = 4094;

/// A port's settings. `None`: unknown to this kernel, or left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortSettings {
    /// Sends packets back out of the port they came in.
    pub hairpin: Option<bool>,
    /// Passes nothing to other isolated ports.
    pub isolated: Option<bool>,
    /// Learns source addresses.
    pub learning: Option<bool>,
    /// Receives packets for unknown addresses.
    pub unicast_flood: Option<bool>,
    /// Answers address resolution for others.
    pub neighbour_suppression: Option<bool>,
}

impl PortSettings {
    pub(crate) fn decode(data: Attributes<'_>) -> Result<Self, Malformed> {
        let mut settings = Self::default();
        for attribute in data {
            let attribute = attribute?;
            let slot = match attribute.kind {
                IFLA_BRPORT_MODE => &mut settings.hairpin,
                IFLA_BRPORT_ISOLATED => &mut settings.isolated,
                IFLA_BRPORT_LEARNING => &mut settings.learning,
                IFLA_BRPORT_UNICAST_FLOOD => &mut settings.unicast_flood,
                IFLA_BRPORT_NEIGH_SUPPRESS => &mut settings.neighbour_suppression,
                _ => continue,
            };
            *slot = Some(attribute.u8()? != 0);
        }
        Ok(settings)
    }

    fn items(self) -> [(u16, &'static str, Option<bool>); 5] {
        [
            (IFLA_BRPORT_MODE, "hairpin", self.hairpin),
            (IFLA_BRPORT_ISOLATED, "isolated", self.isolated),
            (IFLA_BRPORT_LEARNING, "learning", self.learning),
            (IFLA_BRPORT_UNICAST_FLOOD, "unicast flood", self.unicast_flood),
            (IFLA_BRPORT_NEIGH_SUPPRESS, "neighbour suppression", self.neighbour_suppression),
        ]
    }
}

/// Sets a port's flags, those that are `Some`.
#[derive(Debug, Clone, Copy)]
pub struct ChangePort<'a> {
    /// The port.
    pub port: Device<'a>,
    /// What to set.
    pub settings: PortSettings,
}

impl fmt::Display for ChangePort<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.port)?;
        let items = self.settings.items().into_iter();
        for (_, name, value) in items {
            if let Some(on) = value {
                write!(formatter, ", {name} {}", if on { "on" } else { "off" })?;
            }
        }
        Ok(())
    }
}

impl Change for ChangePort<'_> {
    fn operation(&self) -> &'static str {
        "changing bridge port"
    }

    fn encode(&self, requests: &mut Requests) {
        // The kernel takes port flags only with this family, and then only
        // by RTM_SETLINK.
        requests.push(RTM_SETLINK, ACKNOWLEDGED, |body| {
            let index = self.port.required(body);
            encode_header(body, AF_BRIDGE, index, 0, 0);
            body.nest(IFLA_PROTINFO, |data| {
                for (kind, _, value) in self.settings.items() {
                    if let Some(on) = value {
                        data.u8(kind, u8::from(on));
                    }
                }
            });
        });
    }
}

bitflags! {
    /// How a port treats a VLAN (`BRIDGE_VLAN_INFO_*`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct VlanFlags: u16 {
        /// Untagged packets coming in belong to it.
        const PVID = 2;
        /// Packets going out lose their tag.
        const UNTAGGED = 4;
        /// The first of a range, in a request or listing.
        const RANGE_BEGIN = 8;
        /// The last of a range, in a request or listing.
        const RANGE_END = 16;
        const _ = !0;
    }
}

/// VLANs of one port (or of the bridge itself) to add or delete: `first` to
/// `last`.
#[derive(Debug, Clone, Copy)]
pub struct ChangeVlans<'a> {
    /// The port, or the bridge when `on_bridge`.
    pub port: Device<'a>,
    /// First VLAN, 1 to 4094.
    pub first: u16,
    /// Last VLAN, not below the first.
    pub last: u16,
    /// PVID and untagged, as wanted. Not used to delete.
    pub flags: VlanFlags,
    /// Whether the device is the bridge itself.
    pub on_bridge: bool,
    /// Whether to delete rather than add.
    pub delete: bool,
}

impl<'a> ChangeVlans<'a> {
    /// Adds one VLAN to a port, tagged unless flags say otherwise.
    #[must_use]
    pub const fn add(port: Device<'a>, vlan: u16, flags: VlanFlags) -> Self {
        Self { port, first: vlan, last: vlan, flags, on_bridge: false, delete: false }
    }

    /// Deletes one VLAN from a port.
    #[must_use]
    pub const fn delete(port: Device<'a>, vlan: u16) -> Self {
        let flags = VlanFlags::empty();
        Self { port, first: vlan, last: vlan, flags, on_bridge: false, delete: true }
    }

    /// Extends it to a range of VLANs.
    #[must_use]
    pub const fn to(mut self, last: u16) -> Self {
        self.last = last;
        self
    }

    /// The device is the bridge itself.
    #[must_use]
    pub const fn on_bridge(mut self) -> Self {
        self.on_bridge = true;
        self
    }

    fn encode_vlans(&self, body: &mut Body<'_>) {
        if self.first == 0 || self.last < self.first || self.last > VLAN_LIMIT {
            body.fail("VLANs are 1 to 4094, the first not above the last");
        }
        let flags = self.flags & (VlanFlags::PVID | VlanFlags::UNTAGGED);
        let mut vlan = |flags: VlanFlags, id: u16| {
            let info = [flags.bits().to_ne_bytes(), id.to_ne_bytes()];
            body.attribute(IFLA_BRIDGE_VLAN_INFO, info.as_flattened());
        };
        if self.first == self.last {
            vlan(flags, self.first);
        } else {
            vlan(flags | VlanFlags::RANGE_BEGIN, self.first);
            vlan(flags | VlanFlags::RANGE_END, self.last);
        }
    }
}

impl fmt::Display for ChangeVlans<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.first)?;
        if self.last != self.first {
            write!(formatter, "-{}", self.last)?;
        }
        write!(formatter, " of {}", self.port)
    }
}

impl Change for ChangeVlans<'_> {
    fn operation(&self) -> &'static str {
        if self.delete { "deleting VLAN" } else { "adding VLAN" }
    }

    fn encode(&self, requests: &mut Requests) {
        let kind = if self.delete { RTM_DELLINK } else { RTM_SETLINK };
        requests.push(kind, ACKNOWLEDGED, |body| {
            let index = self.port.required(body);
            encode_header(body, AF_BRIDGE, index, 0, 0);
            body.nest(IFLA_AF_SPEC, |spec| {
                if self.on_bridge {
                    spec.u16(IFLA_BRIDGE_FLAGS, BRIDGE_FLAGS_SELF);
                }
                self.encode_vlans(spec);
            });
        });
    }
}

/// A VLAN of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortVlan {
    /// The port's index, or the bridge's for its own.
    pub port: u32,
    /// The VLAN.
    pub id: u16,
    /// How it's treated.
    pub flags: VlanFlags,
}

impl RouteSocket {
    /// The VLANs of all ports and bridges. Empty where the kernel has no
    /// bridge VLAN filtering.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn port_vlans(&mut self) -> Result<Vec<PortVlan>, Error> {
        let lists = self.socket.dump(
            Subject::new("listing", &"VLANs of bridge ports"),
            RTM_GETLINK,
            |body| {
                encode_header(body, AF_BRIDGE, 0, 0, 0);
                body.u32(IFLA_EXT_MASK, LIST_VLANS);
            },
            |reply| match reply.kind {
                RTM_NEWLINK => decode_vlans(reply.payload).map(Some),
                _ => Ok(None),
            },
        )?;
        Ok(lists.into_iter().flatten().collect())
    }
}

/// The VLANs in one `RTM_NEWLINK` message of the bridge family, behind its
/// netlink header.
///
/// # Errors
/// The message breaks the format of `linux/if_bridge.h`.
pub fn decode_vlans(message: &[u8]) -> Result<Vec<PortVlan>, Malformed> {
    let port = crate::attribute::read_u32(message, 4)
        .ok_or(Malformed("a link message is shorter than its header"))?;
    let mut vlans = Vec::new();
    let Some(spec) = Attributes::after(message, LINK_HEADER)?.find_kind(IFLA_AF_SPEC)? else {
        return Ok(vlans);
    };
    for attribute in spec.nested() {
        let attribute = attribute?;
        if attribute.kind == IFLA_BRIDGE_VLAN_INFO {
            let [f0, f1, v0, v1] = attribute.array::<4>()?;
            let flags = VlanFlags::from_bits_retain(u16::from_ne_bytes([f0, f1]));
            vlans.push(PortVlan { port, id: u16::from_ne_bytes([v0, v1]), flags });
        }
    }
    Ok(vlans)
}
