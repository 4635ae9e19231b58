//! Reading netlink attributes (`struct nlattr`, linux/netlink.h), bounded by
//! the bytes they came in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::Malformed;

/// Bits of `nla_type` that name the attribute (`NLA_TYPE_MASK`).
const TYPE_MASK: u16 = 0x3fff;
/// `sizeof(struct nlattr)`.
const HEADER: usize = 4;

/// Rounds up to the four bytes that netlink aligns everything to.
#[must_use]
pub const fn align(length: usize) -> usize {
    length.saturating_add(3) & !3
}

/// The attributes in a run of bytes.
///
/// Yields [`Malformed`] once and then ends where a length points outside the
/// bytes; it always ends, whatever the bytes are.
#[derive(Debug, Clone)]
pub struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// The attributes that start at the first byte.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The attributes behind a message's fixed header of `header` bytes.
    ///
    /// # Errors
    /// The message is shorter than its header.
    pub fn after(message: &'a [u8], header: usize) -> Result<Self, Malformed> {
        let rest = message.get(align(header)..);
        // A message of only the unaligned header has no attributes.
        match rest {
            Some(rest) => Ok(Self { rest }),
            None if message.len() >= header => Ok(Self { rest: &[] }),
            None => Err(Malformed("a message is shorter than its fixed header")),
        }
    }

    /// The first attribute of a kind, or `None`.
    ///
    /// # Errors
    /// The attributes before it are malformed.
    pub fn find_kind(self, kind: u16) -> Result<Option<Attribute<'a>>, Malformed> {
        for attribute in self {
            let attribute = attribute?;
            if attribute.kind == kind {
                return Ok(Some(attribute));
            }
        }
        Ok(None)
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        // Up to three bytes of padding may trail.
        if self.rest.len() < HEADER {
            self.rest = &[];
            return None;
        }
        let whole = self.rest;
        self.rest = &[];
        let length = usize::from(read_u16(whole, 0)?);
        let kind = read_u16(whole, 2)?;
        let Some(payload) = whole.get(HEADER..length) else {
            return Some(Err(Malformed("an attribute's length points outside its message")));
        };
        self.rest = whole.get(align(length)..).unwrap_or_default();
        Some(Ok(Attribute { kind: kind & TYPE_MASK, payload }))
    }
}

/// One attribute of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// The kind, without the nested and byte order flags.
    pub kind: u16,
    /// The value's bytes.
    pub payload: &'a [u8],
}

impl<'a> Attribute<'a> {
    /// The attributes nested in this one.
    #[must_use]
    pub fn nested(&self) -> Attributes<'a> {
        Attributes::new(self.payload)
    }

    /// A byte.
    pub fn u8(&self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// 16 bits in the machine's byte order.
    pub fn u16(&self) -> Result<u16, Malformed> {
        self.array().map(u16::from_ne_bytes)
    }

    /// 32 bits in the machine's byte order.
    pub fn u32(&self) -> Result<u32, Malformed> {
        self.array().map(u32::from_ne_bytes)
    }

    /// 32 signed bits in the machine's byte order.
    pub fn i32(&self) -> Result<i32, Malformed> {
        self.array().map(i32::from_ne_bytes)
    }

    /// 64 bits in the machine's byte order.
    pub fn u64(&self) -> Result<u64, Malformed> {
        self.array().map(u64::from_ne_bytes)
    }

    /// 16 bits in network byte order.
    pub fn u16_be(&self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    /// 32 bits in network byte order.
    pub fn u32_be(&self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// 64 bits in network byte order.
    pub fn u64_be(&self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// A string up to its first NUL; bytes that aren't UTF-8 are replaced.
    #[must_use]
    pub fn string(&self) -> String {
        let end = self.payload.iter().position(|byte| *byte == 0).unwrap_or(self.payload.len());
        let text = self.payload.get(..end).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// An address, told by its length.
    pub fn ip(&self) -> Result<IpAddr, Malformed> {
        if let Ok(octets) = <[u8; 4]>::try_from(self.payload) {
            return Ok(Ipv4Addr::from(octets).into());
        }
        match <[u8; 16]>::try_from(self.payload) {
            Ok(octets) => Ok(Ipv6Addr::from(octets).into()),
            Err(_) => Err(Malformed("an address is neither 4 nor 16 bytes long")),
        }
    }

    /// The first `N` bytes; longer values are allowed, as newer kernels append.
    pub fn array<const N: usize>(&self) -> Result<[u8; N], Malformed> {
        self.payload
            .first_chunk::<N>()
            .copied()
            .ok_or(Malformed("an attribute's value is shorter than its kind asks"))
    }
}

/// 16 bits at an offset, in the machine's byte order.
#[must_use]
pub fn read_u16(bytes: &[u8], offset: usize) -> Option<u16> {
    bytes.get(offset..)?.first_chunk().copied().map(u16::from_ne_bytes)
}

/// 32 bits at an offset, in the machine's byte order.
#[must_use]
pub fn read_u32(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(length: u16, kind: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&length.to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn attributes_are_read_with_padding_and_flags_masked() {
        let mut bytes = attribute(5, 3, &[7, 0, 0, 0]);
        bytes.extend(attribute(8, 0x8000 | 4, &9_u32.to_ne_bytes()));
        let read: Vec<_> = Attributes::new(&bytes).map(Result::unwrap).collect();
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].kind, read[0].u8()), (3, Ok(7)));
        assert_eq!((read[1].kind, read[1].u32()), (4, Ok(9)));
    }

    #[test]
    fn hostile_lengths_end_the_walk() {
        for length in [0, 1, 3, 9, 0xffff] {
            let bytes = attribute(length, 1, &[0; 4]);
            let read: Vec<_> = Attributes::new(&bytes).collect();
            assert_eq!(read.len(), 1, "length {length}");
            assert!(read[0].is_err(), "length {length}");
        }
        assert_eq!(Attributes::new(&[1, 2, 3]).count(), 0);
    }

    #[test]
    fn short_values_are_refused() {
        let short = Attribute { kind: 1, payload: &[1, 2] };
        assert!(short.u32().is_err() && short.ip().is_err() && short.u64_be().is_err());
        assert_eq!(short.u16_be(), Ok(0x0102));
        assert!(Attributes::after(&[0; 3], 4).is_err());
    }
}
