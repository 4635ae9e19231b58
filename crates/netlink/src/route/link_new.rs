//! Making links.

use std::fmt;
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Instant;

use crate::error::{Cause, Error, Malformed, Subject};
use crate::exchange::Event;
use crate::message::{Body, Flags, Requests};
use crate::route::RouteSocket;
use crate::route::change::{ACKNOWLEDGED, Change};
use crate::route::device::{Device, MacAddress, encode_name};
use crate::route::link::{
    IFLA_ADDRESS, IFLA_LINK, IFLA_LINKINFO, IFLA_MASTER, IFLA_MTU, IFLA_NET_NS_FD,
    IFLA_NUM_RX_QUEUES, IFLA_NUM_TX_QUEUES, IFLA_TXQLEN, Link, RTM_GETLINK, RTM_NEWLINK,
    encode_header, encode_question,
};
use crate::route::link_change::DeleteLink;
use crate::route::link_kind::{
    IFLA_BR_VLAN_DEFAULT_PVID, IFLA_BR_VLAN_FILTERING, IFLA_INFO_DATA, IFLA_INFO_KIND,
    IFLA_IPVLAN_FLAGS, IFLA_IPVLAN_MODE, IFLA_MACVLAN_BC_QUEUE_LEN, IFLA_MACVLAN_MODE,
    IFLA_VLAN_ID, IFLA_VLAN_PROTOCOL, IFLA_VRF_TABLE, IpvlanIsolation, IpvlanMode, MacvlanMode,
    VlanProtocol,
};

/// `VETH_INFO_PEER` (linux/veth.h).
const VETH_INFO_PEER: u16 = 1;
/// `IFF_UP`.
const UP: u32 = 1;

/// The kind of a link to make.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum NewKind<'a> {
    /// A pair; the other end is described by the peer.
    Veth(End<'a>),
    /// A bridge. `None` leaves a setting to the kernel.
    Bridge {
        /// Tell ports apart by VLAN.
        vlan_filtering: Option<bool>,
        /// The VLAN that new ports join, untagged; 0 for none.
        default_pvid: Option<u16>,
    },
    /// A macvlan of [`NewLink::parent`].
    Macvlan {
        /// How siblings reach each other.
        mode: MacvlanMode,
        /// Room for broadcast packets; `None` for the kernel's 1000.
        broadcast_queue_length: Option<u32>,
    },
    /// An ipvlan of [`NewLink::parent`].
    Ipvlan {
        /// The layer that decides where packets go.
        mode: IpvlanMode,
        /// How siblings reach each other.
        isolation: IpvlanIsolation,
    },
    /// A VLAN of [`NewLink::parent`].
    Vlan {
        /// The VLAN, 0 to 4094.
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
    /// An intermediate device for shaping.
    Ifb,
}

impl NewKind<'_> {
    /// The kernel's name for the kind.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Veth(_) => "veth",
            Self::Bridge { .. } => "bridge",
            Self::Macvlan { .. } => "macvlan",
            Self::Ipvlan { .. } => "ipvlan",
            Self::Vlan { .. } => "vlan",
            Self::Vrf { .. } => "vrf",
            Self::Dummy => "dummy",
            Self::Ifb => "ifb",
        }
    }

    fn encode(&self, info: &mut Body<'_>) {
        info.string(IFLA_INFO_KIND, self.name());
        match self {
            Self::Dummy | Self::Ifb | Self::Bridge { vlan_filtering: None, default_pvid: None } => {
            }
            Self::Veth(peer) => info.nest(IFLA_INFO_DATA, |data| {
                data.nest(VETH_INFO_PEER, |body| {
                    encode_header(body, 0, 0, 0, 0);
                    peer.encode(body);
                });
            }),
            Self::Bridge { vlan_filtering, default_pvid } => info.nest(IFLA_INFO_DATA, |data| {
                if let Some(on) = vlan_filtering {
                    data.u8(IFLA_BR_VLAN_FILTERING, u8::from(*on));
                }
                if let Some(vlan) = default_pvid {
                    data.u16(IFLA_BR_VLAN_DEFAULT_PVID, *vlan);
                }
            }),
            Self::Macvlan { mode, broadcast_queue_length } => info.nest(IFLA_INFO_DATA, |data| {
                data.u32(IFLA_MACVLAN_MODE, mode.number());
                if let Some(length) = broadcast_queue_length {
                    data.u32(IFLA_MACVLAN_BC_QUEUE_LEN, *length);
                }
            }),
            Self::Ipvlan { mode, isolation } => info.nest(IFLA_INFO_DATA, |data| {
                data.u16(IFLA_IPVLAN_MODE, mode.number());
                data.u16(IFLA_IPVLAN_FLAGS, isolation.flags());
            }),
            Self::Vlan { id, protocol } => info.nest(IFLA_INFO_DATA, |data| {
                if *id > 4095 {
                    data.fail("a VLAN id above 4095");
                }
                data.u16(IFLA_VLAN_ID, *id);
                data.u16_be(IFLA_VLAN_PROTOCOL, protocol.ether_type());
            }),
            Self::Vrf { table } => {
                info.nest(IFLA_INFO_DATA, |data| data.u32(IFLA_VRF_TABLE, *table));
            }
        }
    }
}

/// One end of a link: what both ends of a veth pair, and every other link, can
/// be given at birth.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    name: &'a str,
    mac: Option<MacAddress>,
    mtu: Option<u32>,
    transmit_queue_length: Option<u32>,
    queues: Option<u32>,
    namespace: Option<BorrowedFd<'a>>,
}

impl<'a> End<'a> {
    /// An end of a name, everything else left to the kernel.
    #[must_use]
    pub const fn new(name: &'a str) -> Self {
        Self {
            name,
            mac: None,
            mtu: None,
            transmit_queue_length: None,
            queues: None,
            namespace: None,
        }
    }

    /// Its Ethernet address. Set it always: udev rewrites generated ones.
    #[must_use]
    pub const fn mac(mut self, mac: MacAddress) -> Self {
        self.mac = Some(mac);
        self
    }

    /// Largest packet, in bytes.
    #[must_use]
    pub const fn mtu(mut self, mtu: u32) -> Self {
        self.mtu = Some(mtu);
        self
    }

    /// Length of the transmit queue, in packets.
    #[must_use]
    pub const fn transmit_queue_length(mut self, length: u32) -> Self {
        self.transmit_queue_length = Some(length);
        self
    }

    /// Number of transmit and of receive queues.
    #[must_use]
    pub const fn queues(mut self, queues: u32) -> Self {
        self.queues = Some(queues);
        self
    }

    /// The network namespace to be born in; the socket's own unless set.
    #[must_use]
    pub const fn namespace(mut self, namespace: BorrowedFd<'a>) -> Self {
        self.namespace = Some(namespace);
        self
    }

    fn encode(&self, body: &mut Body<'_>) {
        encode_name(body, self.name);
        if let Some(mac) = self.mac {
            body.attribute(IFLA_ADDRESS, &mac.0);
        }
        if let Some(mtu) = self.mtu {
            body.u32(IFLA_MTU, mtu);
        }
        if let Some(length) = self.transmit_queue_length {
            body.u32(IFLA_TXQLEN, length);
        }
        if let Some(queues) = self.queues {
            body.u32(IFLA_NUM_TX_QUEUES, queues);
            body.u32(IFLA_NUM_RX_QUEUES, queues);
        }
        if let Some(namespace) = self.namespace {
            body.u32(IFLA_NET_NS_FD, namespace.as_raw_fd().cast_unsigned());
        }
    }
}

/// A link to make. The kernel refuses when the name is taken (`EEXIST`).
///
/// The kernel ignores an alias at this point: set it with
/// [`ChangeLink::alias`](crate::route::link_change::ChangeLink::alias) by the
/// index of the finished link.
#[derive(Debug, Clone)]
pub struct NewLink<'a> {
    end: End<'a>,
    kind: NewKind<'a>,
    master: Option<u32>,
    parent: Option<u32>,
    up: bool,
}

impl<'a> NewLink<'a> {
    /// A link of a kind.
    #[must_use]
    pub const fn new(end: End<'a>, kind: NewKind<'a>) -> Self {
        Self { end, kind, master: None, parent: None, up: false }
    }

    /// A veth pair: `end` is the one that later calls are about.
    #[must_use]
    pub const fn veth(end: End<'a>, peer: End<'a>) -> Self {
        Self::new(end, NewKind::Veth(peer))
    }

    /// The bridge or other master to be born into.
    #[must_use]
    pub const fn master(mut self, index: u32) -> Self {
        self.master = Some(index);
        self
    }

    /// The parent of a macvlan, ipvlan or VLAN: its index in the socket's
    /// namespace, wherever the link itself is born.
    #[must_use]
    pub const fn parent(mut self, index: u32) -> Self {
        self.parent = Some(index);
        self
    }

    /// Switched on at once. A veth's peer can't be.
    #[must_use]
    pub const fn up(mut self) -> Self {
        self.up = true;
        self
    }
}

impl fmt::Display for NewLink<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind.name(), self.end.name)?;
        match &self.kind {
            NewKind::Veth(peer) => write!(formatter, " with peer {}", peer.name),
            _ => Ok(()),
        }
    }
}

impl Change for NewLink<'_> {
    fn operation(&self) -> &'static str {
        "creating"
    }

    fn encode(&self, requests: &mut Requests) {
        requests.push(RTM_NEWLINK, ACKNOWLEDGED | Flags::CREATE | Flags::EXCLUSIVE, |body| {
            let flags = if self.up { UP } else { 0 };
            encode_header(body, 0, 0, flags, flags);
            self.end.encode(body);
            if let Some(index) = self.parent {
                body.u32(IFLA_LINK, index);
            }
            if let Some(index) = self.master {
                body.u32(IFLA_MASTER, index);
            }
            body.nest(IFLA_LINKINFO, |info| self.kind.encode(info));
        });
    }
}

impl RouteSocket {
    /// Makes a link and returns it as the kernel made it, in one send.
    ///
    /// For a link that isn't born in the socket's namespace, use
    /// [`apply`](Self::apply) and look it up there.
    ///
    /// # Errors
    /// The kernel's refusal, `is_exists` when the name is taken; or the link
    /// vanished at once.
    pub fn create_link(&mut self, new: &NewLink<'_>) -> Result<Link, Error> {
        let fail = |cause| Subject::new(new.operation(), new).error(cause);
        if new.end.namespace.is_some() {
            return Err(fail(Cause::Unrepresentable("the link is born in another namespace")));
        }
        let mut requests = Requests::new();
        new.encode(&mut requests);
        requests.push(RTM_GETLINK, Flags::REQUEST, |body| {
            encode_question(body, Device::named(new.end.name));
        });
        let until = Instant::now() + self.socket.deadline();
        let first = self.socket.transmit(&mut requests).map_err(fail)?;
        let second = first.wrapping_add(1);
        let mut made = false;
        let link = self.socket.converse(until, |event| {
            let Event::Reply(reply) = event else { return Err(Cause::Overrun) };
            let verdict = reply.verdict().map_err(Cause::Malformed)?;
            match verdict {
                Some(Err(refusal)) if reply.sequence == first || reply.sequence == second => {
                    Err(Cause::Kernel(refusal))
                }
                None if reply.sequence == second && reply.kind == RTM_NEWLINK => {
                    let link = Link::decode(reply.payload).map_err(Cause::Malformed)?;
                    Ok(ControlFlow::Break(link))
                }
                Some(Ok(())) if reply.sequence == second => {
                    Err(Cause::Malformed(Malformed("an acknowledgement in place of a link")))
                }
                verdict => {
                    made |= reply.sequence == first && matches!(verdict, Some(Ok(())));
                    Ok(ControlFlow::Continue(()))
                }
            }
        });
        if made && link.is_err() {
            // It is there, but the caller won't know: the kernel had no memory
            // for the second answer, say.
            let _ = self.apply(&DeleteLink(Device::named(new.end.name)));
        }
        link.map_err(fail)
    }
}
