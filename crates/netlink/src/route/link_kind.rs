//! What kind of virtual link a link is, and the settings of its kind
//! (`IFLA_LINKINFO`, `linux/if_link.h`).

use crate::attribute::{Attribute, Attributes};
use crate::error::Malformed;

pub(crate) const IFLA_INFO_KIND: u16 = 1;
pub(crate) const IFLA_INFO_DATA: u16 = 2;
pub(crate) const IFLA_INFO_SLAVE_KIND: u16 = 4;
pub(crate) const IFLA_INFO_SLAVE_DATA: u16 = 5;
pub(crate) const IFLA_BR_VLAN_FILTERING: u16 = 7;
pub(crate) const IFLA_BR_VLAN_DEFAULT_PVID: u16 = 39;
pub(crate) const IFLA_MACVLAN_MODE: u16 = 1;
pub(crate) const IFLA_MACVLAN_BC_QUEUE_LEN: u16 = 7;
pub(crate) const IFLA_IPVLAN_MODE: u16 = 1;
pub(crate) const IFLA_IPVLAN_FLAGS: u16 = 2;
pub(crate) const IFLA_VLAN_ID: u16 = 1;
pub(crate) const IFLA_VLAN_PROTOCOL: u16 = 5;
pub(crate) const IFLA_VRF_TABLE: u16 = 1;
const IFLA_TUN_OWNER: u16 = 1;
const IFLA_TUN_GROUP: u16 = 2;
const IFLA_TUN_TYPE: u16 = 3;
const IFLA_TUN_PI: u16 = 4;
const IFLA_TUN_MULTI_QUEUE: u16 = 7;
/// `IFF_TAP` (`linux/if_tun.h`).
const IFF_TAP: u8 = 2;

/// The kind of a virtual link.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkKind {
    /// One end of a pair.
    Veth,
    /// A software bridge.
    Bridge(BridgeSettings),
    /// A MAC address of its own on a parent.
    Macvlan {
        /// How siblings reach each other.
        mode: MacvlanMode,
        /// Room for broadcast packets (`IFLA_MACVLAN_BC_QUEUE_LEN`, since 5.11).
        broadcast_queue_length: Option<u32>,
    },
    /// IP addresses of its own on a parent.
    Ipvlan {
        /// The layer that decides where packets go.
        mode: IpvlanMode,
        /// How siblings reach each other.
        isolation: IpvlanIsolation,
    },
    /// A VLAN of a parent.
    Vlan {
        /// The VLAN, 0 to 4095.
        id: u16,
        /// The tag's protocol.
        protocol: VlanProtocol,
    },
    /// A routing domain.
    Vrf {
        /// Its routing table.
        table: u32,
    },
    /// A link that drops what it's given.
    Dummy,
    /// An intermediate device that shapes what is redirected to it.
    Ifb,
    /// A link whose other end is a program (TUN, TAP).
    Tun(TunSettings),
    /// Any other kind, by the kernel's name for it.
    Other(String),
}

/// Settings of a bridge that matter to its users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BridgeSettings {
    /// Whether ports are told apart by VLAN. A kernel without bridge VLAN
    /// filtering shows false too.
    pub vlan_filtering: Option<bool>,
    /// The VLAN that new ports join, untagged; 0 for none. `None` where the
    /// kernel has no bridge VLAN filtering.
    pub default_pvid: Option<u16>,
}

/// How the macvlans of a parent reach each other (`enum macvlan_mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MacvlanMode {
    /// Not at all.
    Private,
    /// Through an external switch.
    Vepa,
    /// Directly.
    Bridge,
    /// One macvlan takes the parent over.
    Passthru,
    /// By lists of source addresses, which this crate doesn't set up.
    Source,
}

impl MacvlanMode {
    /// The kernel's number.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Private => 1,
            Self::Vepa => 2,
            Self::Bridge => 4,
            Self::Passthru => 8,
            Self::Source => 16,
        }
    }

    fn from_number(number: u32) -> Result<Self, Malformed> {
        [Self::Private, Self::Vepa, Self::Bridge, Self::Passthru, Self::Source]
            .into_iter()
            .find(|mode| mode.number() == number)
            .ok_or(Malformed("an unknown macvlan mode"))
    }
}

/// The layer at which an ipvlan works (`enum ipvlan_mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpvlanMode {
    /// Ethernet within the link, ARP answered by it.
    L2,
    /// Routing by the parent's namespace, no broadcast.
    L3,
    /// As L3, with netfilter and symmetric routing.
    L3s,
}

impl IpvlanMode {
    /// The kernel's number.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::L2 => 0,
            Self::L3 => 1,
            Self::L3s => 2,
        }
    }

    fn from_number(number: u16) -> Result<Self, Malformed> {
        [Self::L2, Self::L3, Self::L3s]
            .into_iter()
            .find(|mode| mode.number() == number)
            .ok_or(Malformed("an unknown ipvlan mode"))
    }
}

/// How the ipvlans of a parent reach each other (`IPVLAN_F_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IpvlanIsolation {
    /// Directly.
    #[default]
    Bridge,
    /// Not at all.
    Private,
    /// Through an external switch.
    Vepa,
}

impl IpvlanIsolation {
    /// The kernel's flags.
    #[must_use]
    pub const fn flags(self) -> u16 {
        match self {
            Self::Bridge => 0,
            Self::Private => 1,
            Self::Vepa => 2,
        }
    }

    fn from_flags(flags: u16) -> Self {
        match flags & 3 {
            1 => Self::Private,
            2 | 3 => Self::Vepa,
            _ => Self::Bridge,
        }
    }
}

/// The protocol of a VLAN's tag (`linux/if_ether.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VlanProtocol {
    /// 802.1Q.
    #[default]
    Customer,
    /// 802.1ad, the outer tag of two.
    Service,
}

impl VlanProtocol {
    /// The Ethernet type.
    #[must_use]
    pub const fn ether_type(self) -> u16 {
        match self {
            Self::Customer => 0x8100,
            Self::Service => 0x88a8,
        }
    }
}

/// Settings of a TUN or TAP link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TunSettings {
    /// It carries Ethernet frames (TAP), not IP packets (TUN).
    pub tap: bool,
    /// The user who may attach to it, if one is set.
    pub owner: Option<u32>,
    /// The group that may attach to it, if one is set.
    pub group: Option<u32>,
    /// Packets come with information in front (`IFF_NO_PI` is off).
    pub packet_information: bool,
    /// Several programs may attach a queue each.
    pub multi_queue: bool,
}

impl LinkKind {
    /// The kernel's name for the kind.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Veth => "veth",
            Self::Bridge(_) => "bridge",
            Self::Macvlan { .. } => "macvlan",
            Self::Ipvlan { .. } => "ipvlan",
            Self::Vlan { .. } => "vlan",
            Self::Vrf { .. } => "vrf",
            Self::Dummy => "dummy",
            Self::Ifb => "ifb",
            Self::Tun(_) => "tun",
            Self::Other(name) => name,
        }
    }

    /// Reads a kind's settings. Those that this crate can't make sense of, such
    /// as a mode of a newer kernel, must not hide the link: it's `Other` then.
    pub(crate) fn decode(name: String, data: Attributes<'_>) -> Self {
        Self::decode_settings(&name, data).unwrap_or(Self::Other(name))
    }

    fn decode_settings(name: &str, data: Attributes<'_>) -> Result<Self, Malformed> {
        Ok(match name {
            "veth" => Self::Veth,
            "dummy" => Self::Dummy,
            "ifb" => Self::Ifb,
            "bridge" => Self::Bridge(decode_bridge(data)?),
            "macvlan" => decode_macvlan(data)?,
            "ipvlan" => decode_ipvlan(data)?,
            "vlan" => decode_vlan(data)?,
            "tun" => Self::Tun(decode_tun(data)?),
            "vrf" => Self::Vrf { table: required(data, IFLA_VRF_TABLE)?.u32()? },
            other => Self::Other(other.to_owned()),
        })
    }
}

fn required(data: Attributes<'_>, kind: u16) -> Result<Attribute<'_>, Malformed> {
    data.find_kind(kind)?.ok_or(Malformed("a link lacks a setting that its kind always has"))
}

fn decode_bridge(data: Attributes<'_>) -> Result<BridgeSettings, Malformed> {
    let mut settings = BridgeSettings::default();
    for attribute in data {
        let attribute = attribute?;
        match attribute.kind {
            IFLA_BR_VLAN_FILTERING => settings.vlan_filtering = Some(attribute.u8()? != 0),
            IFLA_BR_VLAN_DEFAULT_PVID => settings.default_pvid = Some(attribute.u16()?),
            _ => {}
        }
    }
    Ok(settings)
}

fn decode_macvlan(data: Attributes<'_>) -> Result<LinkKind, Malformed> {
    let mode = MacvlanMode::from_number(required(data.clone(), IFLA_MACVLAN_MODE)?.u32()?)?;
    let length = data.find_kind(IFLA_MACVLAN_BC_QUEUE_LEN)?;
    let broadcast_queue_length = length.map(|length| length.u32()).transpose()?;
    Ok(LinkKind::Macvlan { mode, broadcast_queue_length })
}

fn decode_ipvlan(data: Attributes<'_>) -> Result<LinkKind, Malformed> {
    let mode = IpvlanMode::from_number(required(data.clone(), IFLA_IPVLAN_MODE)?.u16()?)?;
    let flags = data.find_kind(IFLA_IPVLAN_FLAGS)?.map(|flags| flags.u16()).transpose()?;
    Ok(LinkKind::Ipvlan { mode, isolation: IpvlanIsolation::from_flags(flags.unwrap_or(0)) })
}

fn decode_tun(data: Attributes<'_>) -> Result<TunSettings, Malformed> {
    let mut settings = TunSettings::default();
    for attribute in data {
        let attribute = attribute?;
        match attribute.kind {
            IFLA_TUN_OWNER => settings.owner = Some(attribute.u32()?),
            IFLA_TUN_GROUP => settings.group = Some(attribute.u32()?),
            IFLA_TUN_TYPE => settings.tap = attribute.u8()? == IFF_TAP,
            IFLA_TUN_PI => settings.packet_information = attribute.u8()? != 0,
            IFLA_TUN_MULTI_QUEUE => settings.multi_queue = attribute.u8()? != 0,
            _ => {}
        }
    }
    Ok(settings)
}

fn decode_vlan(data: Attributes<'_>) -> Result<LinkKind, Malformed> {
    let id = required(data.clone(), IFLA_VLAN_ID)?.u16()?;
    let protocol = match data.find_kind(IFLA_VLAN_PROTOCOL)? {
        Some(protocol) if protocol.u16_be()? == VlanProtocol::Service.ether_type() => {
            VlanProtocol::Service
        }
        _ => VlanProtocol::Customer,
    };
    Ok(LinkKind::Vlan { id, protocol })
}
