//! Writing netlink messages (`struct nlmsghdr`, linux/netlink.h) into one
//! reusable buffer.

use std::net::IpAddr;

use bitflags::bitflags;

use crate::attribute::align;

/// `sizeof(struct nlmsghdr)`.
pub const HEADER: usize = 16;
/// `NLA_F_NESTED`.
const NESTED: u16 = 0x8000;
const ZEROS: [u8; 4] = [0; 4];

bitflags! {
    /// `nlmsg_flags` of a request or reply (linux/netlink.h).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Flags: u16 {
        /// Set on every request.
        const REQUEST = 0x1;
        /// One of several answers, ended by `NLMSG_DONE`.
        const MULTI = 0x2;
        /// Answer also when it went well.
        const ACK = 0x4;
        /// The listing was overtaken by a change.
        const DUMP_INTERRUPTED = 0x10;
        /// List everything (`NLM_F_ROOT | NLM_F_MATCH`).
        const DUMP = 0x300;
        /// Replace what exists (new requests).
        const REPLACE = 0x100;
        /// Fail when it exists (new requests).
        const EXCLUSIVE = 0x200;
        /// Create when it doesn't exist (new requests).
        const CREATE = 0x400;
        /// Add at the end of a list (new requests).
        const APPEND = 0x800;
        /// An acknowledgement without the request's payload.
        const CAPPED = 0x100;
        /// An acknowledgement with attributes behind it.
        const ACK_ATTRIBUTES = 0x200;
        const _ = !0;
    }
}

/// One or several requests, encoded back to back for one send.
///
/// ```
/// use podwire_netlink::message::{Flags, Requests};
///
/// let mut requests = Requests::new();
/// // RTM_GETLINK with an IFLA_IFNAME.
/// requests.push(18, Flags::REQUEST, |body| {
///     body.raw(&[0; 16]);
///     body.string(3, "eth0");
/// });
/// assert_eq!(requests.len(), 1);
/// ```
#[derive(Debug, Default, Clone)]
pub struct Requests {
    bytes: Vec<u8>,
    starts: Vec<usize>,
    fault: Option<&'static str>,
}

impl Requests {
    /// No requests yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the requests and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.starts.clear();
        self.fault = None;
    }

    /// Appends a request; `fill` writes what follows its netlink header.
    pub fn push(&mut self, kind: u16, flags: Flags, fill: impl FnOnce(&mut Body<'_>)) {
        let start = self.bytes.len();
        self.starts.push(start);
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(&flags.bits().to_ne_bytes());
        // Sequence number (set by the socket on sending) and port.
        self.bytes.extend_from_slice(&[0; 8]);
        fill(&mut Body { bytes: &mut self.bytes, fault: &mut self.fault });
        match u32::try_from(self.bytes.len() - start) {
            Ok(length) => patch(&mut self.bytes, start, length.to_ne_bytes()),
            Err(_) => self.fault = Some("a message longer than 4 GiB"),
        }
    }

    /// How many requests there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The encoded bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What could not be expressed, if anything: the requests must not be sent.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        self.fault
    }

    /// Numbers the requests `first`, `first + 1`, ... (wrapping).
    pub(crate) fn number(&mut self, first: u32) {
        let mut sequence = first;
        for start in &self.starts {
            patch(&mut self.bytes, start + 8, sequence.to_ne_bytes());
            sequence = sequence.wrapping_add(1);
        }
    }
}

/// The part of a message behind its netlink header.
#[derive(Debug)]
pub struct Body<'b> {
    bytes: &'b mut Vec<u8>,
    fault: &'b mut Option<&'static str>,
}

impl Body<'_> {
    /// Bytes as they are, padded to four: a fixed header such as `ifinfomsg`.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.pad(bytes.len());
    }

    /// Marks the request as one that can't be expressed; sending it fails
    /// with this text.
    pub fn fail(&mut self, fault: &'static str) {
        self.fault.get_or_insert(fault);
    }

    /// An attribute with a value of any kind.
    pub fn attribute(&mut self, kind: u16, value: &[u8]) {
        match u16::try_from(value.len() + 4) {
            Ok(length) => {
                self.bytes.extend_from_slice(&length.to_ne_bytes());
                self.bytes.extend_from_slice(&kind.to_ne_bytes());
                self.raw(value);
            }
            Err(_) => self.fail("an attribute longer than 64 KiB"),
        }
    }

    /// An attribute without a value.
    pub fn flag(&mut self, kind: u16) {
        self.attribute(kind, &[]);
    }

    /// A byte.
    pub fn u8(&mut self, kind: u16, value: u8) {
        self.attribute(kind, &[value]);
    }

    /// 16 bits in the machine's byte order.
    pub fn u16(&mut self, kind: u16, value: u16) {
        self.attribute(kind, &value.to_ne_bytes());
    }

    /// 32 bits in the machine's byte order.
    pub fn u32(&mut self, kind: u16, value: u32) {
        self.attribute(kind, &value.to_ne_bytes());
    }

    /// 64 bits in the machine's byte order.
    pub fn u64(&mut self, kind: u16, value: u64) {
        self.attribute(kind, &value.to_ne_bytes());
    }

    /// 16 bits in network byte order.
    pub fn u16_be(&mut self, kind: u16, value: u16) {
        self.attribute(kind, &value.to_be_bytes());
    }

    /// 32 bits in network byte order.
    pub fn u32_be(&mut self, kind: u16, value: u32) {
        self.attribute(kind, &value.to_be_bytes());
    }

    /// 64 bits in network byte order.
    pub fn u64_be(&mut self, kind: u16, value: u64) {
        self.attribute(kind, &value.to_be_bytes());
    }

    /// A string with its NUL.
    pub fn string(&mut self, kind: u16, value: &str) {
        if value.as_bytes().contains(&0) {
            return self.fail("a string with a NUL in it");
        }
        match u16::try_from(value.len() + 5) {
            Ok(length) => {
                self.bytes.extend_from_slice(&length.to_ne_bytes());
                self.bytes.extend_from_slice(&kind.to_ne_bytes());
                self.bytes.extend_from_slice(value.as_bytes());
                self.bytes.push(0);
                self.pad(value.len() + 1);
            }
            Err(_) => self.fail("a string longer than 64 KiB"),
        }
    }

    /// An IPv4 or IPv6 address.
    pub fn ip(&mut self, kind: u16, value: IpAddr) {
        match value {
            IpAddr::V4(address) => self.attribute(kind, &address.octets()),
            IpAddr::V6(address) => self.attribute(kind, &address.octets()),
        }
    }

    /// An attribute whose value is attributes, flagged `NLA_F_NESTED`.
    pub fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Body<'_>)) {
        self.nest_unflagged(kind | NESTED, fill);
    }

    /// As [`nest`](Self::nest), without the flag, for the old kinds that
    /// compare the type with the flag in it.
    pub fn nest_unflagged(&mut self, kind: u16, fill: impl FnOnce(&mut Body<'_>)) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 2]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        fill(&mut Body { bytes: &mut *self.bytes, fault: &mut *self.fault });
        match u16::try_from(self.bytes.len() - start) {
            Ok(length) => patch(self.bytes, start, length.to_ne_bytes()),
            Err(_) => self.fail("a nested attribute longer than 64 KiB"),
        }
    }

    /// Bytes written so far in the whole buffer, to keep a nest below its
    /// limit of 64 KiB.
    #[must_use]
    pub fn position(&self) -> usize {
        self.bytes.len()
    }

    fn pad(&mut self, length: usize) {
        let padding = align(length) - length;
        self.bytes.extend_from_slice(ZEROS.get(..padding).unwrap_or_default());
    }
}

/// Overwrites `N` bytes that were written before.
fn patch<const N: usize>(bytes: &mut [u8], offset: usize, value: [u8; N]) {
    if let Some(target) = bytes.get_mut(offset..offset + N) {
        target.copy_from_slice(&value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Attributes;

    #[test]
    fn lengths_are_patched_and_values_padded() {
        let mut requests = Requests::new();
        requests.push(16, Flags::REQUEST | Flags::ACK, |body| {
            body.raw(&[1; 16]);
            body.string(3, "br0");
            body.nest(18, |info| {
                info.string(1, "bridge");
                info.nest(2, |data| data.u8(7, 1));
            });
        });
        let bytes = requests.bytes().to_vec();
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(bytes[..4], u32::try_from(bytes.len()).unwrap().to_ne_bytes());
        let read: Vec<_> = Attributes::new(&bytes[32..]).map(Result::unwrap).collect();
        assert_eq!(read[0].string(), "br0");
        let info: Vec<_> = read[1].nested().map(Result::unwrap).collect();
        assert_eq!(info[0].string(), "bridge");
        assert_eq!(info[1].nested().next().unwrap().unwrap().u8(), Ok(1));
    }

    #[test]
    fn what_does_not_fit_is_a_fault_not_a_wrong_length() {
        let mut requests = Requests::new();
        requests.push(16, Flags::REQUEST, |body| {
            body.nest(1, |nest| (0..5000).for_each(|_| nest.attribute(2, &[0; 12])));
        });
        assert!(requests.fault().is_some());
        requests.clear();
        requests.push(16, Flags::REQUEST, |body| body.string(3, "a\0b"));
        assert!(requests.fault().is_some());
    }

    #[test]
    fn requests_are_numbered_in_order() {
        let mut requests = Requests::new();
        for _ in 0..3 {
            requests.push(16, Flags::REQUEST, |body| body.u32(1, 2));
        }
        requests.number(u32::MAX);
        let number = |start: usize| crate::attribute::read_u32(requests.bytes(), start + 8);
        assert_eq!([number(0), number(24), number(48)], [Some(u32::MAX), Some(0), Some(1)]);
    }
}
