//! Queueing disciplines and classes.

use std::fmt;

use super::rate::{Tbf, ratespec, ticks};
use super::{HEADER, Handle, Header, TCA_KIND, TCA_OPTIONS, decode_options};
use crate::attribute::{Attributes, read_u32};
use crate::error::{Error, Malformed, Subject};
use crate::message::{Body, Flags, Requests};
use crate::route::RouteSocket;
use crate::route::change::{ACKNOWLEDGED, Change};
use crate::route::device::Device;

const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
const RTM_GETQDISC: u16 = 38;
const RTM_NEWTCLASS: u16 = 40;
const RTM_GETTCLASS: u16 = 42;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_DIRECT_QLEN: u16 = 5;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
/// Version of the htb that the kernel speaks (`HTB_VER`).
const HTB_VERSION: u32 = 3;
/// Packets without a class that may wait in an htb. The kernel would take the
/// link's queue length, which may be 0: then it drops them all.
const DIRECT_QUEUE: u32 = 1000;
/// Bounds of what a class may send in its turn, in bytes: a full frame, and
/// what the kernel complains of when it is more.
const QUANTUM: (u64, u64) = (1_514, 200_000);

/// A queueing discipline's kind and settings.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum QdiscKind {
    /// One token bucket.
    Tbf(Tbf),
    /// A tree of token buckets; packets that no filter places go to the class
    /// of this minor number.
    Htb {
        /// Minor number of the default class, 0 for unshaped.
        default_class: u32,
    },
    /// A queue that drops what doesn't fit.
    Bfifo {
        /// Bytes that may wait.
        limit: u32,
    },
    /// The place of filters for packets that come in.
    Ingress,
    /// Any other kind, by the kernel's name for it.
    Other(String),
}

impl QdiscKind {
    /// The kernel's name for the kind.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Tbf(_) => "tbf",
            Self::Htb { .. } => "htb",
            Self::Bfifo { .. } => "bfifo",
            Self::Ingress => "ingress",
            Self::Other(name) => name,
        }
    }

    fn encode(&self, body: &mut Body<'_>) {
        body.string(TCA_KIND, self.name());
        match self {
            Self::Tbf(settings) => body.nest(TCA_OPTIONS, |options| settings.encode(options)),
            Self::Htb { default_class } => body.nest(TCA_OPTIONS, |options| {
                // struct tc_htb_glob: version, rate to quantum, default, debug,
                // counter.
                let fields = [HTB_VERSION, 10, *default_class, 0, 0];
                options.attribute(TCA_HTB_INIT, fields.map(u32::to_ne_bytes).as_flattened());
                options.u32(TCA_HTB_DIRECT_QLEN, DIRECT_QUEUE);
            }),
            // struct tc_fifo_qopt.
            Self::Bfifo { limit } => body.attribute(TCA_OPTIONS, &limit.to_ne_bytes()),
            Self::Ingress | Self::Other(_) => {}
        }
    }

    fn decode(name: String, options: Attributes<'_>) -> Result<Self, Malformed> {
        Ok(match name.as_str() {
            "tbf" => Self::Tbf(Tbf::decode(options)?),
            "htb" => {
                let glob = options.find_kind(TCA_HTB_INIT)?;
                let glob = glob.ok_or(Malformed("an htb without parameters"))?.array::<12>()?;
                Self::Htb { default_class: read_u32(&glob, 8).unwrap_or(0) }
            }
            "ingress" => Self::Ingress,
            _ => Self::Other(name),
        })
    }
}

/// A queueing discipline of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qdisc {
    /// The link's index.
    pub link: u32,
    /// Its name.
    pub handle: Handle,
    /// Its place.
    pub parent: Handle,
    /// Its kind and settings.
    pub kind: QdiscKind,
}

impl Qdisc {
    /// Reads an `RTM_NEWQDISC` message behind its netlink header.
    ///
    /// # Errors
    /// The message breaks the format of `linux/pkt_sched.h`.
    pub fn decode(message: &[u8]) -> Result<Self, Malformed> {
        let (header, attributes) = Header::decode(message)?;
        let (name, options) = decode_options(attributes)?;
        let kind = QdiscKind::decode(name, options)?;
        Ok(Self { link: header.link, handle: header.handle, parent: header.parent, kind })
    }
}

/// Adds a queueing discipline to a link.
#[derive(Debug, Clone)]
pub struct AddQdisc<'a> {
    device: Device<'a>,
    parent: Handle,
    handle: Handle,
    kind: QdiscKind,
    replace: bool,
}

impl<'a> AddQdisc<'a> {
    /// The outermost one; refused (`EEXIST`) where there is one of the same
    /// handle that isn't the kernel's default.
    #[must_use]
    pub const fn root(device: Device<'a>, handle: Handle, kind: QdiscKind) -> Self {
        Self { device, parent: Handle::ROOT, handle, kind, replace: false }
    }

    /// The one for packets that come in, `ffff:`.
    #[must_use]
    pub const fn ingress(device: Device<'a>) -> Self {
        let (parent, handle) = (Handle::INGRESS, Handle::new(0xffff, 0));
        Self { device, parent, handle, kind: QdiscKind::Ingress, replace: false }
    }

    /// One in a class of another.
    #[must_use]
    pub const fn below(device: Device<'a>, class: Handle, handle: Handle, kind: QdiscKind) -> Self {
        Self { device, parent: class, handle, kind, replace: false }
    }

    /// In place of what is there, or with its settings changed where kind and
    /// handle are the same.
    #[must_use]
    pub const fn replace(mut self) -> Self {
        self.replace = true;
        self
    }
}

impl fmt::Display for AddQdisc<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} on {}", self.kind.name(), self.handle, self.device)
    }
}

impl Change for AddQdisc<'_> {
    fn operation(&self) -> &'static str {
        if self.replace { "setting qdisc" } else { "adding qdisc" }
    }

    fn encode(&self, requests: &mut Requests) {
        let existing = if self.replace { Flags::REPLACE } else { Flags::EXCLUSIVE };
        requests.push(RTM_NEWQDISC, ACKNOWLEDGED | Flags::CREATE | existing, |body| {
            let link = self.device.required(body);
            Header { link, handle: self.handle, parent: self.parent, info: 0 }.encode(body);
            self.kind.encode(body);
        });
    }
}

/// Deletes the qdisc at a place of a link, with everything below it.
#[derive(Debug, Clone, Copy)]
pub struct DeleteQdisc<'a> {
    /// The link.
    pub device: Device<'a>,
    /// The place: [`Handle::ROOT`] or [`Handle::INGRESS`].
    pub parent: Handle,
}

impl fmt::Display for DeleteQdisc<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of {}", self.parent, self.device)
    }
}

impl Change for DeleteQdisc<'_> {
    fn operation(&self) -> &'static str {
        "deleting qdisc"
    }

    fn encode(&self, requests: &mut Requests) {
        requests.push(RTM_DELQDISC, ACKNOWLEDGED, |body| {
            let link = self.device.required(body);
            let handle = Handle::NONE;
            Header { link, handle, parent: self.parent, info: 0 }.encode(body);
        });
    }
}

/// Adds a class of an htb.
#[derive(Debug, Clone, Copy)]
pub struct AddClass<'a> {
    /// The link.
    pub device: Device<'a>,
    /// The htb, or the class above.
    pub parent: Handle,
    /// The class's name.
    pub handle: Handle,
    /// Assured rate, in bytes a second.
    pub rate: u64,
    /// Highest rate, in bytes a second.
    pub ceiling: u64,
    /// Bytes that may go at once above the assured rate.
    pub burst: u32,
    /// Bytes that may go at once above the highest rate.
    pub ceiling_burst: u32,
}

impl fmt::Display for AddClass<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} on {}", self.handle, self.device)
    }
}

impl Change for AddClass<'_> {
    fn operation(&self) -> &'static str {
        "adding class"
    }

    fn encode(&self, requests: &mut Requests) {
        let flags = ACKNOWLEDGED | Flags::CREATE | Flags::EXCLUSIVE;
        requests.push(RTM_NEWTCLASS, flags, |body| {
            let link = self.device.required(body);
            Header { link, handle: self.handle, parent: self.parent, info: 0 }.encode(body);
            body.string(TCA_KIND, "htb");
            body.nest(TCA_OPTIONS, |options| {
                if self.rate == 0 || self.ceiling == 0 {
                    options.fail("a rate of 0");
                }
                // struct tc_htb_opt: rate, ceiling, buffer, ceiling buffer,
                // quantum, level, priority.
                let times = [
                    ticks(u64::from(self.burst), self.rate),
                    ticks(u64::from(self.ceiling_burst), self.ceiling),
                    u32::try_from((self.rate / 10).clamp(QUANTUM.0, QUANTUM.1)).unwrap_or_default(),
                    0,
                    0,
                ];
                let mut parameters = Vec::with_capacity(44);
                parameters.extend_from_slice(&ratespec(self.rate));
                parameters.extend_from_slice(&ratespec(self.ceiling));
                parameters.extend_from_slice(times.map(u32::to_ne_bytes).as_flattened());
                options.attribute(TCA_HTB_PARMS, &parameters);
                for (kind, rate) in [(TCA_HTB_RATE64, self.rate), (TCA_HTB_CEIL64, self.ceiling)] {
                    if rate > u64::from(u32::MAX) {
                        options.u64(kind, rate);
                    }
                }
            });
        });
    }
}

/// A class of an htb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// The class's name.
    pub handle: Handle,
    /// The htb (as root), or the class above.
    pub parent: Handle,
    /// Assured rate, in bytes a second.
    pub rate: u64,
    /// Highest rate, in bytes a second.
    pub ceiling: u64,
    /// Depth of the bucket for the assured rate, in ticks.
    pub buffer: u32,
}

impl Class {
    /// Reads an `RTM_NEWTCLASS` message behind its netlink header; `None` for a
    /// class of another kind than htb.
    ///
    /// # Errors
    /// The message breaks the format of `linux/pkt_sched.h`.
    pub fn decode(message: &[u8]) -> Result<Option<Self>, Malformed> {
        let (header, attributes) = Header::decode(message)?;
        let (kind, options) = decode_options(attributes)?;
        if kind != "htb" {
            return Ok(None);
        }
        let (handle, parent) = (header.handle, header.parent);
        let mut class = Self { handle, parent, rate: 0, ceiling: 0, buffer: 0 };
        let (mut rate64, mut ceiling64) = (None, None);
        for attribute in options {
            let attribute = attribute?;
            match attribute.kind {
                TCA_HTB_PARMS => {
                    let parameters = attribute.array::<28>()?;
                    let field = |offset| read_u32(&parameters, offset).unwrap_or(0);
                    class.rate = u64::from(field(8));
                    class.ceiling = u64::from(field(20));
                    class.buffer = field(24);
                }
                TCA_HTB_RATE64 => rate64 = Some(attribute.u64()?),
                TCA_HTB_CEIL64 => ceiling64 = Some(attribute.u64()?),
                _ => {}
            }
        }
        class.rate = rate64.unwrap_or(class.rate);
        class.ceiling = ceiling64.unwrap_or(class.ceiling);
        Ok(Some(class))
    }
}

impl RouteSocket {
    /// The qdiscs of a link, the kernel's defaults included.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn qdiscs_of(&mut self, device: Device<'_>) -> Result<Vec<Qdisc>, Error> {
        let wanted = device.index();
        // The kernel lists those of all links, whatever is asked.
        self.socket.dump(
            Subject::new("listing qdiscs of", &device),
            RTM_GETQDISC,
            |body| body.raw(&[0; HEADER]),
            |reply| match reply.kind {
                RTM_NEWQDISC => {
                    Ok(Some(Qdisc::decode(reply.payload)?).filter(|q| Some(q.link) == wanted))
                }
                _ => Ok(None),
            },
        )
    }

    /// The htb classes of a link.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn classes_of(&mut self, device: Device<'_>) -> Result<Vec<Class>, Error> {
        self.socket.dump(
            Subject::new("listing classes of", &device),
            RTM_GETTCLASS,
            |body| {
                let (link, handle, parent) = (device.required(body), Handle::NONE, Handle::NONE);
                Header { link, handle, parent, info: 0 }.encode(body);
            },
            |reply| match reply.kind {
                RTM_NEWTCLASS => Class::decode(reply.payload),
                _ => Ok(None),
            },
        )
    }
}
