//! Links as the kernel shows them: by name, by index, or all of them.

use bitflags::bitflags;

use crate::attribute::{Attribute, Attributes, read_u16, read_u32};
use crate::error::{Error, Malformed, Subject};
use crate::message::Body;
use crate::reply::Reply;
use crate::route::RouteSocket;
use crate::route::bridge::PortSettings;
use crate::route::device::{Device, MacAddress, NAME_LIMIT};
use crate::route::link_kind::{
    IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_INFO_SLAVE_DATA, IFLA_INFO_SLAVE_KIND, LinkKind,
};

pub(crate) const RTM_NEWLINK: u16 = 16;
pub(crate) const RTM_DELLINK: u16 = 17;
pub(crate) const RTM_GETLINK: u16 = 18;
pub(crate) const RTM_SETLINK: u16 = 19;

pub(crate) const IFLA_ADDRESS: u16 = 1;
pub(crate) const IFLA_IFNAME: u16 = 3;
pub(crate) const IFLA_MTU: u16 = 4;
pub(crate) const IFLA_LINK: u16 = 5;
pub(crate) const IFLA_MASTER: u16 = 10;
pub(crate) const IFLA_TXQLEN: u16 = 13;
const IFLA_OPERSTATE: u16 = 16;
pub(crate) const IFLA_LINKINFO: u16 = 18;
pub(crate) const IFLA_IFALIAS: u16 = 20;
pub(crate) const IFLA_NET_NS_FD: u16 = 28;
pub(crate) const IFLA_EXT_MASK: u16 = 29;
const IFLA_PROMISCUITY: u16 = 30;
pub(crate) const IFLA_NUM_TX_QUEUES: u16 = 31;
pub(crate) const IFLA_NUM_RX_QUEUES: u16 = 32;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_TARGET_NETNSID: u16 = 46;
const IFLA_MIN_MTU: u16 = 50;
const IFLA_MAX_MTU: u16 = 51;
const IFLA_ALLMULTI: u16 = 61;

/// Leaves the counters out of answers (`RTEXT_FILTER_SKIP_STATS`).
const SKIP_STATISTICS: u32 = 8;
/// `sizeof(struct ifinfomsg)`.
pub(crate) const LINK_HEADER: usize = 16;

bitflags! {
    /// A link's flags (`IFF_*`, linux/if.h).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct LinkFlags: u32 {
        /// Switched on by the administrator.
        const UP = 0x1;
        /// Has a broadcast address.
        const BROADCAST = 0x2;
        /// A loopback.
        const LOOPBACK = 0x8;
        /// Operational, as far as the driver knows.
        const RUNNING = 0x40;
        /// No address resolution.
        const NOARP = 0x80;
        /// Asked to receive everything. The kernel shows only what users asked
        /// for here; [`Link::promiscuity`] counts all reasons.
        const PROMISCUOUS = 0x100;
        /// Asked to receive all multicast.
        const ALL_MULTICAST = 0x200;
        /// Enslaved.
        const SLAVE = 0x800;
        /// Speaks multicast.
        const MULTICAST = 0x1000;
        /// Carrier present.
        const LOWER_UP = 0x1_0000;
        const _ = !0;
    }
}

/// Whether a link can pass packets (RFC 2863, `IF_OPER_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationalState {
    /// The driver doesn't say, as loopback and some virtual links.
    Unknown,
    /// A component is missing.
    NotPresent,
    /// Can't.
    Down,
    /// Waits for the link below.
    LowerLayerDown,
    /// Under test.
    Testing,
    /// Waits for an event, such as authentication.
    Dormant,
    /// Can.
    Up,
}

impl OperationalState {
    fn from_number(number: u8) -> Self {
        match number {
            1 => Self::NotPresent,
            2 => Self::Down,
            3 => Self::LowerLayerDown,
            4 => Self::Testing,
            5 => Self::Dormant,
            6 => Self::Up,
            _ => Self::Unknown,
        }
    }

    /// The name that `ip link` and the kernel's documentation use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::NotPresent => "notpresent",
            Self::Down => "down",
            Self::LowerLayerDown => "lowerlayerdown",
            Self::Testing => "testing",
            Self::Dormant => "dormant",
            Self::Up => "up",
        }
    }
}

/// A link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its number, unique in its namespace at a time.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its flags.
    pub flags: LinkFlags,
    /// Hardware type (`ARPHRD_*`, `linux/if_arp.h`); 1 is Ethernet, 772 loopback.
    pub hardware: u16,
    /// Its Ethernet address; `None` for links that have none or another kind.
    pub mac: Option<MacAddress>,
    /// Largest packet, in bytes.
    pub mtu: u32,
    /// Bounds of the MTU, where the driver has them; 0 for none.
    pub mtu_range: (u32, u32),
    /// Whether it can pass packets.
    pub operational_state: OperationalState,
    /// Length of its transmit queue, in packets.
    pub transmit_queue_length: u32,
    /// The bridge or other master that it's enslaved to.
    pub master: Option<u32>,
    /// Index of the peer (veth) or parent (macvlan, ipvlan, vlan), in the
    /// namespace that [`parent_namespace`](Self::parent_namespace) tells.
    pub parent: Option<u32>,
    /// The parent's namespace as this namespace numbers it (`IFLA_LINK_NETNSID`);
    /// `None`: this one. -1: one that has no number here.
    pub parent_namespace: Option<i32>,
    /// The administrator's note (`IFLA_IFALIAS`).
    pub alias: Option<String>,
    /// How many reasons there are to receive everything.
    pub promiscuity: u32,
    /// How many reasons there are to receive all multicast; `None` before 6.0,
    /// where only [`LinkFlags::ALL_MULTICAST`] tells.
    pub all_multicast: Option<u32>,
    /// The kind of a virtual link; `None` for a physical one and loopback.
    pub kind: Option<LinkKind>,
    /// Its settings as a port, when the master is a bridge.
    pub bridge_port: Option<PortSettings>,
}

impl Link {
    /// The link as requests name it.
    #[must_use]
    pub fn device(&self) -> Device<'_> {
        Device::new(self.index, &self.name)
    }

    /// Whether it's switched on.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.flags.contains(LinkFlags::UP)
    }

    /// Whether it receives all multicast, for whatever reason is known.
    #[must_use]
    pub fn is_all_multicast(&self) -> bool {
        self.all_multicast.is_some_and(|count| count > 0)
            || self.flags.contains(LinkFlags::ALL_MULTICAST)
    }

    /// The kernel's name of the kind; empty for a physical link.
    #[must_use]
    pub fn kind_name(&self) -> &str {
        self.kind.as_ref().map_or("", LinkKind::name)
    }

    /// Whether it's a bridge.
    #[must_use]
    pub fn is_bridge(&self) -> bool {
        matches!(self.kind, Some(LinkKind::Bridge(_)))
    }

    /// Whether it's one end of a veth pair.
    #[must_use]
    pub fn is_veth(&self) -> bool {
        matches!(self.kind, Some(LinkKind::Veth))
    }

    /// Reads an `RTM_NEWLINK` or `RTM_DELLINK` message behind its netlink
    /// header.
    ///
    /// # Errors
    /// The message breaks the format of linux/rtnetlink.h.
    pub fn decode(message: &[u8]) -> Result<Self, Malformed> {
        let short = Malformed("a link message is shorter than its header");
        let mut link = Self {
            index: read_u32(message, 4).ok_or(short)?,
            name: String::new(),
            flags: LinkFlags::from_bits_retain(read_u32(message, 8).ok_or(short)?),
            hardware: read_u16(message, 2).ok_or(short)?,
            mac: None,
            mtu: 0,
            mtu_range: (0, 0),
            operational_state: OperationalState::Unknown,
            transmit_queue_length: 0,
            master: None,
            parent: None,
            parent_namespace: None,
            alias: None,
            promiscuity: 0,
            all_multicast: None,
            kind: None,
            bridge_port: None,
        };
        for attribute in Attributes::after(message, LINK_HEADER)? {
            link.take(attribute?)?;
        }
        if link.index == 0 {
            return Err(Malformed("a link without an index"));
        }
        Ok(link)
    }

    fn take(&mut self, attribute: Attribute<'_>) -> Result<(), Malformed> {
        match attribute.kind {
            IFLA_ADDRESS => {
                self.mac = <[u8; 6]>::try_from(attribute.payload).ok().map(MacAddress);
            }
            IFLA_IFNAME => self.name = attribute.string(),
            IFLA_MTU => self.mtu = attribute.u32()?,
            IFLA_MIN_MTU => self.mtu_range.0 = attribute.u32()?,
            IFLA_MAX_MTU => self.mtu_range.1 = attribute.u32()?,
            IFLA_LINK => self.parent = Some(attribute.u32()?).filter(|index| *index != 0),
            IFLA_MASTER => self.master = Some(attribute.u32()?).filter(|index| *index != 0),
            IFLA_TXQLEN => self.transmit_queue_length = attribute.u32()?,
            IFLA_OPERSTATE => {
                self.operational_state = OperationalState::from_number(attribute.u8()?);
            }
            IFLA_IFALIAS => self.alias = Some(attribute.string()).filter(|text| !text.is_empty()),
            IFLA_PROMISCUITY => self.promiscuity = attribute.u32()?,
            IFLA_ALLMULTI => self.all_multicast = Some(attribute.u32()?),
            IFLA_LINK_NETNSID => self.parent_namespace = Some(attribute.i32()?),
            IFLA_LINKINFO => self.take_kind(attribute.nested())?,
            _ => {}
        }
        Ok(())
    }

    fn take_kind(&mut self, info: Attributes<'_>) -> Result<(), Malformed> {
        let mut kind = None;
        let mut data = Attributes::new(&[]);
        let mut port_of_bridge = false;
        for attribute in info {
            let attribute = attribute?;
            match attribute.kind {
                IFLA_INFO_KIND => kind = Some(attribute.string()),
                IFLA_INFO_DATA => data = attribute.nested(),
                IFLA_INFO_SLAVE_KIND => port_of_bridge = attribute.string() == "bridge",
                // The kernel writes the kind before its data.
                IFLA_INFO_SLAVE_DATA if port_of_bridge => {
                    self.bridge_port = Some(PortSettings::decode(attribute.nested())?);
                }
                _ => {}
            }
        }
        self.kind = kind.map(|kind| LinkKind::decode(kind, data));
        Ok(())
    }
}

/// `struct ifinfomsg`.
pub(crate) fn encode_header(body: &mut Body<'_>, family: u8, index: u32, flags: u32, mask: u32) {
    let mut header = [0; LINK_HEADER];
    let fields = [index.to_ne_bytes(), flags.to_ne_bytes(), mask.to_ne_bytes()];
    header[0] = family;
    header[4..].copy_from_slice(fields.as_flattened());
    body.raw(&header);
}

impl RouteSocket {
    /// The link of a name, or `None`; nothing has a name that no link can have, as some
    /// results of other plugins hold: empty, too long, with a NUL in it.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn link_by_name(&mut self, name: &str) -> Result<Option<Link>, Error> {
        if name.is_empty() || name.len() > NAME_LIMIT || name.contains('\0') {
            return Ok(None);
        }
        self.link(Device::named(name))
    }

    /// The link of an index, or `None`.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn link_by_index(&mut self, index: u32) -> Result<Option<Link>, Error> {
        self.link(Device::new(index, ""))
    }

    fn link(&mut self, device: Device<'_>) -> Result<Option<Link>, Error> {
        let subject = Subject::new("looking up link", &device);
        let found = self.socket.fetch(
            subject,
            RTM_GETLINK,
            |body| encode_question(body, device),
            |reply| Link::decode(reply.payload),
        );
        match found {
            Ok(link) => Ok(Some(link)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the namespace of this number ([`Link::parent_namespace`]) can
    /// still be entered by somebody. The kernel takes its time with the links
    /// of one that can't, and looks nothing up in it meanwhile.
    ///
    /// # Errors
    /// The exchange failed; or we may not look into that namespace, which says
    /// nothing about it.
    pub fn is_namespace_alive(&mut self, number: i32) -> Result<bool, Error> {
        if number < 0 {
            return Ok(false);
        }
        // Its loopback.
        let device = Device::new(1, "");
        let found = self.socket.fetch(
            Subject::new("looking into the namespace of", &device),
            RTM_GETLINK,
            |body| {
                encode_question(body, device);
                body.u32(IFLA_TARGET_NETNSID, number.cast_unsigned());
            },
            |reply| Link::decode(reply.payload),
        );
        match found {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(true),
            // rtnl_get_net_ns_capable() finds only namespaces that are in use.
            Err(error) if error.is_invalid() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// All links.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn links(&mut self) -> Result<Vec<Link>, Error> {
        self.list_links("", "links", |_| true)
    }

    /// All links of a kind, by the kernel's name for it: `veth`, `bridge`.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn links_of_kind(&mut self, kind: &str) -> Result<Vec<Link>, Error> {
        self.list_links(kind, kind, |link| link.kind_name() == kind)
    }

    fn list_links(
        &mut self,
        kind: &str,
        what: &str,
        keep: impl Fn(&Link) -> bool,
    ) -> Result<Vec<Link>, Error> {
        self.socket.dump(
            Subject::new("listing", &what),
            RTM_GETLINK,
            |body| {
                encode_header(body, 0, 0, 0, 0);
                body.u32(IFLA_EXT_MASK, SKIP_STATISTICS);
                if !kind.is_empty() {
                    // The kernel ignores a kind that it doesn't have.
                    body.nest(IFLA_LINKINFO, |info| info.string(IFLA_INFO_KIND, kind));
                }
            },
            |reply| decode_entry(reply).map(|link| link.filter(&keep)),
        )
    }
}

pub(crate) fn encode_question(body: &mut Body<'_>, device: Device<'_>) {
    encode_header(body, 0, device.index().unwrap_or(0), 0, 0);
    device.encode_name(body);
    body.u32(IFLA_EXT_MASK, SKIP_STATISTICS);
}

fn decode_entry(reply: &Reply<'_>) -> Result<Option<Link>, Malformed> {
    if reply.kind == RTM_NEWLINK { Link::decode(reply.payload).map(Some) } else { Ok(None) }
}
