//! Traffic control: queueing disciplines, classes and filters (`struct tcmsg`,
//! `linux/rtnetlink.h`), those that shape containers' traffic.

pub mod filter;
pub mod qdisc;
pub mod rate;

pub use filter::{AddRedirect, DeleteFilter, Filter};
pub use qdisc::{AddClass, AddQdisc, Class, DeleteQdisc, Qdisc, QdiscKind};
pub use rate::{Tbf, ticks};

use std::fmt;

use crate::attribute::{Attributes, read_u32};
use crate::error::Malformed;
use crate::message::Body;

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
/// `sizeof(struct tcmsg)`.
const HEADER: usize = 20;

/// Names a qdisc, a class or a place: `major:minor` (`TC_H_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub u32);

impl Handle {
    /// None: for a qdisc, let the kernel choose.
    pub const NONE: Self = Self(0);
    /// The place of a link's outermost qdisc.
    pub const ROOT: Self = Self(u32::MAX);
    /// The place of a link's ingress qdisc.
    pub const INGRESS: Self = Self(0xffff_fff1);

    /// A handle from its two numbers.
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Self((major as u32) << 16 | minor as u32)
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ROOT => formatter.write_str("root"),
            Self::INGRESS => formatter.write_str("ingress"),
            Self(number) => {
                write!(formatter, "{:x}:", number >> 16)?;
                match number & 0xffff {
                    0 => Ok(()),
                    minor => write!(formatter, "{minor:x}"),
                }
            }
        }
    }
}

/// The fixed part of a message.
#[derive(Debug, Clone, Copy)]
struct Header {
    link: u32,
    handle: Handle,
    parent: Handle,
    info: u32,
}

impl Header {
    fn encode(&self, body: &mut Body<'_>) {
        let fields = [0, self.link, self.handle.0, self.parent.0, self.info];
        body.raw(fields.map(u32::to_ne_bytes).as_flattened());
    }

    fn decode(message: &[u8]) -> Result<(Self, Attributes<'_>), Malformed> {
        let attributes = Attributes::after(message, HEADER)?;
        let field = |offset| {
            read_u32(message, offset).ok_or(Malformed("a tc message is shorter than its header"))
        };
        let (handle, parent) = (Handle(field(8)?), Handle(field(12)?));
        Ok((Self { link: field(4)?, handle, parent, info: field(16)? }, attributes))
    }
}

/// The kind and options of a message.
fn decode_options(attributes: Attributes<'_>) -> Result<(String, Attributes<'_>), Malformed> {
    let (mut kind, mut options) = (String::new(), Attributes::new(&[]));
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.kind {
            TCA_KIND => kind = attribute.string(),
            TCA_OPTIONS => options = attribute.nested(),
            _ => {}
        }
    }
    Ok((kind, options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_written_as_tc_writes_them() {
        assert_eq!(Handle::new(1, 0).to_string(), "1:");
        assert_eq!(Handle::new(0xffff, 0x1a).to_string(), "ffff:1a");
        assert_eq!(Handle::ROOT.to_string(), "root");
    }
}
