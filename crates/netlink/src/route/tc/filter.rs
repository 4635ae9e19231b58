//! Filters that pick packets (u32) and send them to another link or class.

use std::fmt;

use ipnet::IpNet;

use super::{Handle, Header, TCA_KIND, TCA_OPTIONS, decode_options};
use crate::attribute::{Attributes, read_u32};
use crate::error::{Error, Malformed, Subject};
use crate::message::{Body, Flags, Requests};
use crate::route::RouteSocket;
use crate::route::change::{ACKNOWLEDGED, Change};
use crate::route::device::Device;

const RTM_NEWTFILTER: u16 = 44;
const RTM_DELTFILTER: u16 = 45;
const RTM_GETTFILTER: u16 = 46;

const TCA_U32_CLASSID: u16 = 1;
const TCA_U32_SEL: u16 = 5;
const TCA_U32_ACT: u16 = 7;
/// `sizeof(struct tc_u32_sel)` without its keys.
const SELECTOR: usize = 16;
/// `sizeof(struct tc_u32_key)`.
const KEY: usize = 16;
const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_OPTIONS: u16 = 2;
const TCA_MIRRED_PARMS: u16 = 2;
/// The filter ends the walk at its match (`TC_U32_TERMINAL`).
const TERMINAL: u8 = 1;
/// The packet is the other link's now (`TC_ACT_STOLEN`).
const STOLEN: u32 = 4;
/// Out of the other link (`TCA_EGRESS_REDIR`).
const EGRESS_REDIRECT: u32 = 1;
/// Every protocol (`ETH_P_ALL`), `ETH_P_IP` and `ETH_P_IPV6`.
const ALL: u16 = 3;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// Offsets of the addresses in the IP header: source and destination.
const IPV4_OFFSETS: (u32, u32) = (12, 16);
const IPV6_OFFSETS: (u32, u32) = (8, 24);

/// Which packets a filter picks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// All, of every protocol.
    Everything,
    /// Those from addresses of a prefix.
    Source(IpNet),
    /// Those to addresses of a prefix.
    Destination(IpNet),
}

impl Match {
    fn protocol(self) -> u16 {
        match self {
            Self::Everything => ALL,
            Self::Source(IpNet::V4(_)) | Self::Destination(IpNet::V4(_)) => IPV4,
            Self::Source(IpNet::V6(_)) | Self::Destination(IpNet::V6(_)) => IPV6,
        }
    }

    /// Keys of `struct tc_u32_key`: mask and value (network byte order),
    /// offset.
    fn keys(self) -> Vec<([u8; 4], [u8; 4], u32)> {
        let (net, source) = match self {
            Self::Everything => return vec![([0; 4], [0; 4], 0)],
            Self::Source(net) => (net, true),
            Self::Destination(net) => (net, false),
        };
        let (value, mask, offsets) = match net {
            IpNet::V4(net) => {
                (net.network().octets().to_vec(), net.netmask().octets().to_vec(), IPV4_OFFSETS)
            }
            IpNet::V6(net) => {
                (net.network().octets().to_vec(), net.netmask().octets().to_vec(), IPV6_OFFSETS)
            }
        };
        let start = if source { offsets.0 } else { offsets.1 };
        let words = mask.as_chunks::<4>().0.iter().zip(value.as_chunks::<4>().0);
        let keys = words.zip((start..).step_by(4));
        let mut keys: Vec<_> = keys.map(|((mask, value), at)| (*mask, *value, at)).collect();
        // Words without a bit to compare match anything; one must stay.
        keys.retain(|(mask, _, at)| *mask != [0; 4] || *at == start);
        keys
    }
}

/// What a filter does with the packets it picks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// Sends them out of another link instead.
    RedirectTo(Device<'a>),
    /// Puts them into a class.
    Class(Handle),
}

/// Adds a u32 filter to a qdisc.
#[derive(Debug, Clone, Copy)]
pub struct AddRedirect<'a> {
    /// The link.
    pub device: Device<'a>,
    /// The qdisc: `ffff:` for packets that come in.
    pub parent: Handle,
    /// Its rank among the qdisc's filters, low first, from 1.
    pub priority: u16,
    /// Which packets.
    pub matching: Match,
    /// What becomes of them.
    pub verdict: Verdict<'a>,
}

impl fmt::Display for AddRedirect<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.matching {
            Match::Everything => formatter.write_str("for everything")?,
            Match::Source(net) => write!(formatter, "from {net}")?,
            Match::Destination(net) => write!(formatter, "to {net}")?,
        }
        match self.verdict {
            Verdict::RedirectTo(device) => write!(formatter, " redirected to {device}")?,
            Verdict::Class(class) => write!(formatter, " into class {class}")?,
        }
        write!(formatter, " on {} {}", self.device, self.parent)
    }
}

impl Change for AddRedirect<'_> {
    fn operation(&self) -> &'static str {
        "adding filter"
    }

    fn encode(&self, requests: &mut Requests) {
        let flags = ACKNOWLEDGED | Flags::CREATE | Flags::EXCLUSIVE;
        requests.push(RTM_NEWTFILTER, flags, |body| {
            let info = filter_info(self.priority, self.matching.protocol());
            let link = self.device.required(body);
            Header { link, handle: Handle::NONE, parent: self.parent, info }.encode(body);
            body.string(TCA_KIND, "u32");
            body.nest(TCA_OPTIONS, |options| {
                encode_selector(options, self.matching);
                match self.verdict {
                    Verdict::Class(class) => options.u32(TCA_U32_CLASSID, class.0),
                    Verdict::RedirectTo(to) => encode_redirect(options, to),
                }
            });
        });
    }
}

/// Priority and protocol as `tcm_info` has them.
fn filter_info(priority: u16, protocol: u16) -> u32 {
    u32::from(priority) << 16 | u32::from(protocol.to_be())
}

fn encode_selector(options: &mut Body<'_>, matching: Match) {
    let keys = encode_keys(matching);
    // struct tc_u32_sel: flags, shift, number of keys; the rest is for
    // headers of varying length.
    let mut selector = vec![0; SELECTOR];
    if let Some([flags, _, count]) = selector.first_chunk_mut() {
        *flags = TERMINAL;
        *count = u8::try_from(keys.len() / KEY).unwrap_or(u8::MAX);
    }
    selector.extend_from_slice(&keys);
    options.attribute(TCA_U32_SEL, &selector);
}

fn encode_keys(matching: Match) -> Vec<u8> {
    let mut text = Vec::new();
    for (mask, value, offset) in matching.keys() {
        text.extend_from_slice(&mask);
        text.extend_from_slice(&value);
        text.extend_from_slice(&offset.to_ne_bytes());
        text.extend_from_slice(&[0; 4]);
    }
    text
}

fn encode_redirect(options: &mut Body<'_>, to: Device<'_>) {
    // Actions are numbered from 1.
    options.nest(TCA_U32_ACT, |actions| {
        actions.nest(1, |action| {
            action.string(TCA_ACT_KIND, "mirred");
            action.nest(TCA_ACT_OPTIONS, |mirred| {
                // struct tc_mirred: index, capabilities, action, two counters,
                // direction, link.
                let link = to.required(mirred);
                let fields = [0, 0, STOLEN, 0, 0, EGRESS_REDIRECT, link];
                mirred.attribute(TCA_MIRRED_PARMS, fields.map(u32::to_ne_bytes).as_flattened());
            });
        });
    });
}

/// A filter of a qdisc.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// The link's index.
    pub link: u32,
    /// Its name within its kind and priority.
    pub handle: Handle,
    /// The qdisc.
    pub parent: Handle,
    /// Its rank.
    pub priority: u16,
    /// The Ethernet type that it's for; 3 for all.
    pub protocol: u16,
    /// The kernel's name for its kind.
    pub kind: String,
    /// The class that packets are put into.
    pub class: Option<Handle>,
    /// Index of the link that packets are sent out of instead.
    pub redirect: Option<u32>,
    /// What it compares: `struct tc_u32_key`s.
    keys: Vec<u8>,
}

impl Filter {
    /// Reads an `RTM_NEWTFILTER` message behind its netlink header; only u32
    /// filters have their class and redirection read.
    ///
    /// # Errors
    /// The message breaks the format of `linux/pkt_cls.h`.
    pub fn decode(message: &[u8]) -> Result<Self, Malformed> {
        let (header, attributes) = Header::decode(message)?;
        let (kind, options) = decode_options(attributes)?;
        let [p0, p1, low, high] = header.info.to_be_bytes();
        let mut filter = Self {
            link: header.link,
            handle: header.handle,
            parent: header.parent,
            priority: u16::from_be_bytes([p0, p1]),
            protocol: u16::from_be(u16::from_be_bytes([low, high])),
            kind,
            class: None,
            redirect: None,
            keys: Vec::new(),
        };
        if filter.kind == "u32" {
            for attribute in options {
                let attribute = attribute?;
                match attribute.kind {
                    TCA_U32_CLASSID => filter.class = Some(Handle(attribute.u32()?)),
                    TCA_U32_SEL => {
                        let keys = attribute.payload.get(SELECTOR..).unwrap_or_default();
                        keys.clone_into(&mut filter.keys);
                    }
                    TCA_U32_ACT => filter.redirect = decode_redirect(attribute.nested())?,
                    _ => {}
                }
            }
        }
        Ok(filter)
    }

    /// Whether it picks just these packets.
    #[must_use]
    pub fn picks(&self, matching: Match) -> bool {
        self.protocol == matching.protocol() && self.keys == encode_keys(matching)
    }
}

/// Where the first redirection among a filter's actions leads.
fn decode_redirect(actions: Attributes<'_>) -> Result<Option<u32>, Malformed> {
    for action in actions {
        let (kind, options) = decode_options(action?.nested())?;
        if kind != "mirred" {
            continue;
        }
        if let Some(parameters) = options.find_kind(TCA_MIRRED_PARMS)? {
            let parameters = parameters.array::<28>()?;
            if read_u32(&parameters, 20) == Some(EGRESS_REDIRECT) {
                return Ok(read_u32(&parameters, 24));
            }
        }
    }
    Ok(None)
}

/// Deletes all filters of a rank and protocol of a qdisc.
#[derive(Debug, Clone, Copy)]
pub struct DeleteFilter<'a> {
    /// The link.
    pub device: Device<'a>,
    /// The qdisc.
    pub parent: Handle,
    /// The rank.
    pub priority: u16,
    /// The Ethernet type, as listed; 3 for all.
    pub protocol: u16,
}

impl fmt::Display for DeleteFilter<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of {} {}", self.priority, self.device, self.parent)
    }
}

impl Change for DeleteFilter<'_> {
    fn operation(&self) -> &'static str {
        "deleting filters of priority"
    }

    fn encode(&self, requests: &mut Requests) {
        requests.push(RTM_DELTFILTER, ACKNOWLEDGED, |body| {
            let info = filter_info(self.priority, self.protocol);
            let link = self.device.required(body);
            Header { link, handle: Handle::NONE, parent: self.parent, info }.encode(body);
        });
    }
}

impl RouteSocket {
    /// The filters of a qdisc. Empty where the qdisc doesn't exist.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn filters_of(&mut self, device: Device<'_>, parent: Handle) -> Result<Vec<Filter>, Error> {
        self.socket.dump(
            Subject::new("listing filters of", &device),
            RTM_GETTFILTER,
            |body| {
                let link = device.required(body);
                Header { link, handle: Handle::NONE, parent, info: 0 }.encode(body);
            },
            |reply| match reply.kind {
                // The u32 kind lists its hash tables too, as filters without
                // options; those name no packets.
                RTM_NEWTFILTER => Ok(Some(Filter::decode(reply.payload)?)
                    .filter(|filter| filter.class.is_some() || filter.redirect.is_some())),
                _ => Ok(None),
            },
        )
    }
}
