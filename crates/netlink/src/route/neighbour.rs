//! Neighbours: the addresses that links have resolved (`linux/neighbour.h`).

use std::fmt;
use std::net::IpAddr;

use bitflags::bitflags;

use crate::attribute::{Attributes, read_u16, read_u32};
use crate::error::{Error, Malformed, Subject};
use crate::message::{Body, Flags, Requests};
use crate::route::RouteSocket;
use crate::route::change::{ACKNOWLEDGED, Change};
use crate::route::device::{Device, MacAddress};
use crate::route::family::Family;

const RTM_NEWNEIGH: u16 = 28;
const RTM_DELNEIGH: u16 = 29;
const RTM_GETNEIGH: u16 = 30;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NDA_IFINDEX: u16 = 8;
/// `sizeof(struct ndmsg)`.
const HEADER: usize = 12;

bitflags! {
    /// How far a neighbour is known (`NUD_*`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct NeighbourState: u16 {
        /// Being asked for.
        const INCOMPLETE = 0x01;
        /// Known.
        const REACHABLE = 0x02;
        /// Known, not heard from for a while.
        const STALE = 0x04;
        /// Waiting before it's asked again.
        const DELAY = 0x08;
        /// Being asked again.
        const PROBE = 0x10;
        /// Didn't answer.
        const FAILED = 0x20;
        /// Needs no resolution.
        const NO_ARP = 0x40;
        /// Set by the administrator.
        const PERMANENT = 0x80;
        const _ = !0;
    }
}

/// A neighbour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    /// The link's index.
    pub link: u32,
    /// Its IP address.
    pub address: IpAddr,
    /// Its Ethernet address, where it's known.
    pub mac: Option<MacAddress>,
    /// How far it's known.
    pub state: NeighbourState,
}

impl Neighbour {
    /// Reads an `RTM_NEWNEIGH` or `RTM_DELNEIGH` message behind its netlink
    /// header; `None` for a family other than IPv4 and IPv6.
    ///
    /// # Errors
    /// The message breaks the format of `linux/neighbour.h`.
    pub fn decode(message: &[u8]) -> Result<Option<Self>, Malformed> {
        let (Some(family), Some(link), Some(state), true) =
            (message.first(), read_u32(message, 4), read_u16(message, 8), message.len() >= HEADER)
        else {
            return Err(Malformed("a neighbour message is shorter than its header"));
        };
        if Family::from_number(*family).is_none() {
            return Ok(None);
        }
        let (mut address, mut mac) = (None, None);
        for attribute in Attributes::after(message, HEADER)? {
            let attribute = attribute?;
            match attribute.kind {
                NDA_DST => address = Some(attribute.ip()?),
                NDA_LLADDR => mac = <[u8; 6]>::try_from(attribute.payload).ok().map(MacAddress),
                _ => {}
            }
        }
        let address = address.ok_or(Malformed("a neighbour without an address"))?;
        let state = NeighbourState::from_bits_retain(state);
        Ok(Some(Self { link, address, mac, state }))
    }
}

/// Sets a permanent neighbour, in place of what is known.
#[derive(Debug, Clone, Copy)]
pub struct SetNeighbour<'a> {
    /// The link.
    pub device: Device<'a>,
    /// The neighbour's IP address.
    pub address: IpAddr,
    /// The neighbour's Ethernet address.
    pub mac: MacAddress,
}

/// Deletes a neighbour.
#[derive(Debug, Clone, Copy)]
pub struct DeleteNeighbour<'a> {
    /// The link.
    pub device: Device<'a>,
    /// The neighbour's IP address.
    pub address: IpAddr,
}

impl fmt::Display for SetNeighbour<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at {} on {}", self.address, self.mac, self.device)
    }
}

impl fmt::Display for DeleteNeighbour<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} on {}", self.address, self.device)
    }
}

impl Change for SetNeighbour<'_> {
    fn operation(&self) -> &'static str {
        "setting neighbour"
    }

    fn encode(&self, requests: &mut Requests) {
        let flags = ACKNOWLEDGED | Flags::CREATE | Flags::REPLACE;
        requests.push(RTM_NEWNEIGH, flags, |body| {
            encode_header(body, self.device, self.address, NeighbourState::PERMANENT);
            body.attribute(NDA_LLADDR, &self.mac.0);
        });
    }
}

impl Change for DeleteNeighbour<'_> {
    fn operation(&self) -> &'static str {
        "deleting neighbour"
    }

    fn encode(&self, requests: &mut Requests) {
        requests.push(RTM_DELNEIGH, ACKNOWLEDGED, |body| {
            encode_header(body, self.device, self.address, NeighbourState::empty());
        });
    }
}

/// `struct ndmsg` and the address.
fn encode_header(body: &mut Body<'_>, device: Device<'_>, address: IpAddr, state: NeighbourState) {
    let mut header = [0; HEADER];
    header[0] = Family::of(address).number();
    header[4..8].copy_from_slice(&device.required(body).to_ne_bytes());
    header[8..10].copy_from_slice(&state.bits().to_ne_bytes());
    body.raw(&header);
    body.ip(NDA_DST, address);
}

impl RouteSocket {
    /// The neighbours of a link.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn neighbours_of(&mut self, device: Device<'_>) -> Result<Vec<Neighbour>, Error> {
        self.socket.dump(
            Subject::new("listing neighbours of", &device),
            RTM_GETNEIGH,
            |body| {
                let index = device.required(body);
                body.raw(&[0; HEADER]);
                body.u32(NDA_IFINDEX, index);
            },
            |reply| match reply.kind {
                RTM_NEWNEIGH => Ok(Neighbour::decode(reply.payload)?
                    .filter(|neighbour| Some(neighbour.link) == device.index())),
                _ => Ok(None),
            },
        )
    }
}
