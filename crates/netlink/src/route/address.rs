//! Addresses of links (`struct ifaddrmsg`, `linux/if_addr.h`).

use std::fmt;
use std::net::IpAddr;

use bitflags::bitflags;
use ipnet::IpNet;

use crate::attribute::{Attributes, read_u32};
use crate::error::{Error, Malformed, Subject};
use crate::message::{Body, Flags, Requests};
use crate::route::RouteSocket;
use crate::route::change::{ACKNOWLEDGED, Change};
use crate::route::device::Device;
use crate::route::family::{Family, Scope};

const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_GETADDR: u16 = 22;

const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_LABEL: u16 = 3;
const IFA_BROADCAST: u16 = 4;
const IFA_CACHEINFO: u16 = 6;
const IFA_FLAGS: u16 = 8;

/// `sizeof(struct ifaddrmsg)`.
const HEADER: usize = 8;
/// A lifetime without end (`INFINITY_LIFE_TIME`).
pub const FOREVER: u32 = u32::MAX;

bitflags! {
    /// Flags of an address (`IFA_F_*`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct AddressFlags: u32 {
        /// IPv4: another address of the subnet came first.
        const SECONDARY = 0x01;
        /// Not checked for duplicates.
        const NO_DAD = 0x02;
        /// Usable while the duplicate check runs.
        const OPTIMISTIC = 0x04;
        /// The check found a duplicate: the address is unusable.
        const DAD_FAILED = 0x08;
        /// Past its preferred lifetime.
        const DEPRECATED = 0x20;
        /// The duplicate check is under way.
        const TENTATIVE = 0x40;
        /// Without a lifetime.
        const PERMANENT = 0x80;
        /// No route to the subnet comes with it.
        const NO_PREFIX_ROUTE = 0x200;
        const _ = !0;
    }
}

/// An address of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The link's index.
    pub link: u32,
    /// The address with its prefix length.
    pub address: IpNet,
    /// The other end's address, on a link where it was given one.
    pub peer: Option<IpAddr>,
    /// The broadcast address (IPv4).
    pub broadcast: Option<IpAddr>,
    /// Its flags.
    pub flags: AddressFlags,
    /// Where it's valid.
    pub scope: Scope,
    /// Its label (IPv4), the link's name unless given.
    pub label: Option<String>,
    /// Seconds left until it goes; [`FOREVER`] for never.
    pub valid: u32,
    /// Seconds left until it's deprecated; [`FOREVER`] for never.
    pub preferred: u32,
}

impl Address {
    /// Whether the duplicate check is still under way.
    #[must_use]
    pub fn is_tentative(&self) -> bool {
        self.flags.contains(AddressFlags::TENTATIVE) && !self.is_duplicate()
    }

    /// Whether the duplicate check found another owner.
    #[must_use]
    pub fn is_duplicate(&self) -> bool {
        self.flags.contains(AddressFlags::DAD_FAILED)
    }

    /// Reads an `RTM_NEWADDR` or `RTM_DELADDR` message behind its netlink
    /// header; `None` for a family other than IPv4 and IPv6.
    ///
    /// # Errors
    /// The message breaks the format of `linux/if_addr.h`.
    pub fn decode(message: &[u8]) -> Result<Option<Self>, Malformed> {
        let (Some([family, prefix, flags, scope]), Some(link)) =
            (message.first_chunk().copied(), read_u32(message, 4))
        else {
            return Err(Malformed("an address message is shorter than its header"));
        };
        if Family::from_number(family).is_none() {
            return Ok(None);
        }
        let (mut address, mut local, mut broadcast, mut label) = (None, None, None, None);
        let mut flags = AddressFlags::from_bits_retain(u32::from(flags));
        let (mut preferred, mut valid) = (FOREVER, FOREVER);
        for attribute in Attributes::after(message, HEADER)? {
            let attribute = attribute?;
            match attribute.kind {
                IFA_ADDRESS => address = Some(attribute.ip()?),
                IFA_LOCAL => local = Some(attribute.ip()?),
                IFA_BROADCAST => broadcast = Some(attribute.ip()?),
                IFA_LABEL => label = Some(attribute.string()),
                IFA_FLAGS => flags = AddressFlags::from_bits_retain(attribute.u32()?),
                IFA_CACHEINFO => {
                    let info = attribute.array::<8>()?;
                    preferred = read_u32(&info, 0).unwrap_or(FOREVER);
                    valid = read_u32(&info, 4).unwrap_or(FOREVER);
                }
                _ => {}
            }
        }
        // IFA_LOCAL is the address where both are given, IFA_ADDRESS the peer.
        let own = local.or(address).ok_or(Malformed("an address message without an address"))?;
        let peer = address.filter(|address| *address != own);
        let address = IpNet::new(own, prefix)
            .map_err(|_| Malformed("an address with a prefix longer than its family has"))?;
        let scope = Scope(scope);
        Ok(Some(Self { link, address, peer, broadcast, flags, scope, label, valid, preferred }))
    }
}

/// Adds an address to a link; refused when it's there (`EEXIST`).
#[derive(Debug, Clone, Copy)]
pub struct AddAddress<'a> {
    device: Device<'a>,
    address: IpNet,
    peer: Option<IpAddr>,
    flags: AddressFlags,
    scope: Scope,
    label: Option<&'a str>,
    broadcast: bool,
    lifetimes: Option<(u32, u32)>,
    replace: bool,
}

impl<'a> AddAddress<'a> {
    /// An address with its prefix length, for a device known by its index.
    #[must_use]
    pub const fn new(device: Device<'a>, address: IpNet) -> Self {
        Self {
            device,
            address,
            peer: None,
            flags: AddressFlags::empty(),
            scope: Scope::UNIVERSE,
            label: None,
            broadcast: false,
            lifetimes: None,
            replace: false,
        }
    }

    /// Skips the duplicate check (IPv6): for addresses that are unique by
    /// allocation, so that they can be used at once.
    #[must_use]
    pub fn no_dad(mut self) -> Self {
        self.flags |= AddressFlags::NO_DAD;
        self
    }

    /// Makes no route to the address's subnet.
    #[must_use]
    pub fn no_prefix_route(mut self) -> Self {
        self.flags |= AddressFlags::NO_PREFIX_ROUTE;
        self
    }

    /// Sets the subnet's broadcast address (IPv4 with a prefix below 31).
    #[must_use]
    pub const fn broadcast(mut self) -> Self {
        self.broadcast = true;
        self
    }

    /// The other end's address.
    #[must_use]
    pub const fn peer(mut self, peer: IpAddr) -> Self {
        self.peer = Some(peer);
        self
    }

    /// Where it's valid; everywhere unless set.
    #[must_use]
    pub const fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Its label (IPv4).
    #[must_use]
    pub const fn label(mut self, label: &'a str) -> Self {
        self.label = Some(label);
        self
    }

    /// Seconds until it's deprecated and until it goes; [`FOREVER`] for never.
    #[must_use]
    pub const fn lifetimes(mut self, preferred: u32, valid: u32) -> Self {
        self.lifetimes = Some((preferred, valid));
        self
    }

    /// Changes flags and lifetimes where the address is there already, rather
    /// than being refused.
    #[must_use]
    pub const fn replace(mut self) -> Self {
        self.replace = true;
        self
    }
}

impl fmt::Display for AddAddress<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} to {}", self.address, self.device)
    }
}

impl Change for AddAddress<'_> {
    fn operation(&self) -> &'static str {
        "adding address"
    }

    fn encode(&self, requests: &mut Requests) {
        let existing = if self.replace { Flags::REPLACE } else { Flags::EXCLUSIVE };
        requests.push(RTM_NEWADDR, ACKNOWLEDGED | Flags::CREATE | existing, |body| {
            let index = self.device.required(body);
            encode_address(body, self.address, self.peer, self.scope, index);
            if let (true, IpNet::V4(net)) = (self.broadcast, self.address)
                && net.prefix_len() < 31
            {
                body.ip(IFA_BROADCAST, net.broadcast().into());
            }
            if let Some(label) = self.label {
                body.string(IFA_LABEL, label);
            }
            if !self.flags.is_empty() {
                body.u32(IFA_FLAGS, self.flags.bits());
            }
            if let Some((preferred, valid)) = self.lifetimes {
                let fields = [preferred, valid, 0, 0].map(u32::to_ne_bytes);
                body.attribute(IFA_CACHEINFO, fields.as_flattened());
            }
        });
    }
}

/// Deletes an address of a link.
#[derive(Debug, Clone, Copy)]
pub struct DeleteAddress<'a> {
    /// The link.
    pub device: Device<'a>,
    /// The address with its prefix length.
    pub address: IpNet,
}

impl fmt::Display for DeleteAddress<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of {}", self.address, self.device)
    }
}

impl Change for DeleteAddress<'_> {
    fn operation(&self) -> &'static str {
        "deleting address"
    }

    fn encode(&self, requests: &mut Requests) {
        requests.push(RTM_DELADDR, ACKNOWLEDGED, |body| {
            let index = self.device.required(body);
            encode_address(body, self.address, None, Scope::UNIVERSE, index);
        });
    }
}

fn encode_address(
    body: &mut Body<'_>,
    address: IpNet,
    peer: Option<IpAddr>,
    scope: Scope,
    index: u32,
) {
    let family = Family::of(address.addr()).number();
    let [a, b, c, d] = index.to_ne_bytes();
    body.raw(&[family, address.prefix_len(), 0, scope.0, a, b, c, d]);
    body.ip(IFA_LOCAL, address.addr());
    match peer {
        Some(peer) if peer.is_ipv4() != address.addr().is_ipv4() => {
            body.fail("a peer address of another family than the address");
        }
        peer => body.ip(IFA_ADDRESS, peer.unwrap_or(address.addr())),
    }
}

impl RouteSocket {
    /// The addresses of one link.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn addresses_of(&mut self, device: Device<'_>) -> Result<Vec<Address>, Error> {
        let index = device.index().unwrap_or(0);
        self.list_addresses(Subject::new("listing addresses of", &device), index)
    }

    /// The addresses of all links.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn addresses(&mut self) -> Result<Vec<Address>, Error> {
        self.list_addresses(Subject::new("listing", &"addresses"), 0)
    }

    fn list_addresses(&mut self, subject: Subject<'_>, link: u32) -> Result<Vec<Address>, Error> {
        self.socket.dump(
            subject,
            RTM_GETADDR,
            |body| {
                // The kernel filters by link where it checks strictly.
                let [a, b, c, d] = link.to_ne_bytes();
                body.raw(&[0, 0, 0, 0, a, b, c, d]);
            },
            |reply| match reply.kind {
                RTM_NEWADDR => Ok(Address::decode(reply.payload)?
                    .filter(|address| link == 0 || address.link == link)),
                _ => Ok(None),
            },
        )
    }
}
