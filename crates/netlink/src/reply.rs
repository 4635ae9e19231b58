//! Reading what the kernel answers: the messages of a datagram, and its
//! verdicts (`linux/netlink.h`).

use rustix::io::Errno;

use crate::attribute::{Attributes, align, read_u16, read_u32};
use crate::error::{Malformed, Refusal};
use crate::message::{Flags, HEADER};

/// `NLMSG_ERROR` and `NLMSG_DONE` (linux/netlink.h).
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// Kinds below are netlink's own (`NLMSG_MIN_TYPE`).
pub(crate) const FIRST_PROTOCOL_KIND: u16 = 16;
/// Attributes of an extended acknowledgement.
const NLMSGERR_ATTR_MSG: u16 = 1;
const NLMSGERR_ATTR_OFFS: u16 = 2;

/// One message from the kernel.
#[derive(Debug, Clone, Copy)]
pub struct Reply<'a> {
    /// `nlmsg_type`.
    pub kind: u16,
    /// `nlmsg_flags`.
    pub flags: Flags,
    /// `nlmsg_seq`: the number of the request it answers, 0 for a notification.
    pub sequence: u32,
    /// What follows the netlink header.
    pub payload: &'a [u8],
}

impl Reply<'_> {
    /// The kernel's verdict when this is one, and `None` otherwise.
    ///
    /// # Errors
    /// It is one and too short.
    pub fn verdict(&self) -> Result<Option<Result<(), Refusal>>, Malformed> {
        match self.kind {
            ERROR => {
                let code = read_u32(self.payload, 0)
                    .ok_or(Malformed("an acknowledgement without an error number"))?;
                // struct nlmsgerr: the number, the request's header, and the
                // rest of the request unless capped.
                let mut skip = 4 + HEADER;
                if !self.flags.contains(Flags::CAPPED) {
                    let length = read_u32(self.payload, 4)
                        .ok_or(Malformed("an acknowledgement without its request's header"))?;
                    let length = usize::try_from(length).unwrap_or(usize::MAX);
                    skip = align(4_usize.saturating_add(length.max(HEADER)));
                }
                Ok(Some(self.judge(code.cast_signed(), skip)))
            }
            DONE => {
                let code = read_u32(self.payload, 0).unwrap_or(0);
                Ok(Some(self.judge(code.cast_signed(), 4)))
            }
            _ => Ok(None),
        }
    }

    fn judge(&self, code: i32, attributes_at: usize) -> Result<(), Refusal> {
        if code >= 0 {
            return Ok(());
        }
        let mut refusal = Refusal {
            errno: Errno::from_raw_os_error(code.checked_neg().unwrap_or(libc::EINVAL).min(4095)),
            message: None,
            offset: None,
        };
        if self.flags.contains(Flags::ACK_ATTRIBUTES) {
            let attributes = self.payload.get(attributes_at..).unwrap_or_default();
            // The explanation is a courtesy: what can't be read is left out.
            for attribute in Attributes::new(attributes).map_while(Result::ok) {
                match attribute.kind {
                    NLMSGERR_ATTR_MSG => refusal.message = Some(attribute.string().into()),
                    NLMSGERR_ATTR_OFFS => refusal.offset = attribute.u32().ok(),
                    _ => {}
                }
            }
        }
        Err(refusal)
    }
}

/// The messages of a datagram. Ends after the first malformed one.
#[derive(Debug, Clone)]
pub struct Replies<'a> {
    rest: &'a [u8],
}

impl<'a> Replies<'a> {
    /// The messages that start at the first byte.
    #[must_use]
    pub fn new(datagram: &'a [u8]) -> Self {
        Self { rest: datagram }
    }
}

impl<'a> Iterator for Replies<'a> {
    type Item = Result<Reply<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let whole = std::mem::take(&mut self.rest);
        if whole.is_empty() {
            return None;
        }
        let length = read_u32(whole, 0).and_then(|length| usize::try_from(length).ok());
        let (Some(length), Some(kind), Some(flags), Some(sequence)) =
            (length, read_u16(whole, 4), read_u16(whole, 6), read_u32(whole, 8))
        else {
            return Some(Err(Malformed("a message is shorter than its netlink header")));
        };
        let Some(payload) = whole.get(HEADER..length) else {
            return Some(Err(Malformed("a message's length points outside its datagram")));
        };
        self.rest = whole.get(align(length)..).unwrap_or_default();
        Some(Ok(Reply { kind, flags: Flags::from_bits_retain(flags), sequence, payload }))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::message::Requests;

    /// A message of the kernel's, for tests.
    pub(crate) fn message(kind: u16, flags: Flags, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let mut requests = Requests::new();
        requests.push(kind, flags, |body| body.raw(payload));
        requests.number(sequence);
        requests.bytes().to_vec()
    }

    /// The only message of a datagram.
    pub(crate) fn only(datagram: &[u8]) -> Reply<'_> {
        Replies::new(datagram).next().unwrap().unwrap()
    }

    fn acknowledgement(flags: Flags, code: i32, rest: &[u8]) -> Vec<u8> {
        let mut payload = code.to_ne_bytes().to_vec();
        payload.extend_from_slice(rest);
        message(ERROR, flags, 1, &payload)
    }

    #[test]
    fn the_kernels_text_is_found_behind_a_capped_and_a_whole_request() {
        let mut text = Requests::new();
        text.push(0, Flags::empty(), |body| {
            body.string(NLMSGERR_ATTR_MSG, "no room");
            body.u32(NLMSGERR_ATTR_OFFS, 20);
        });
        let text = &text.bytes()[HEADER..];
        let request = message(16, Flags::REQUEST, 1, &[7; 12]);
        for (flags, echoed) in [
            (Flags::CAPPED | Flags::ACK_ATTRIBUTES, &request[..HEADER]),
            (Flags::ACK_ATTRIBUTES, &request[..]),
        ] {
            let datagram = acknowledgement(flags, -28, &[echoed, text].concat());
            let refusal = only(&datagram).verdict().unwrap().unwrap().unwrap_err();
            assert_eq!(refusal.errno, Errno::NOSPC);
            assert_eq!(refusal.message.as_deref(), Some("no room"));
            assert_eq!(refusal.offset, Some(20));
        }
    }

    #[test]
    fn verdicts_without_text_or_with_nonsense_are_verdicts() {
        let request = message(16, Flags::REQUEST, 1, &[]);
        let fine = acknowledgement(Flags::CAPPED, 0, &request);
        assert_eq!(only(&fine).verdict(), Ok(Some(Ok(()))));
        let mut lying = request.clone();
        lying[..4].copy_from_slice(&u32::MAX.to_ne_bytes());
        for (code, errno) in [(-1, 1), (i32::MIN, libc::EINVAL), (-100_000, 4095)] {
            let datagram = acknowledgement(Flags::ACK_ATTRIBUTES, code, &lying);
            let refusal = only(&datagram).verdict().unwrap().unwrap().unwrap_err();
            assert_eq!(refusal.errno.raw_os_error(), errno);
            assert_eq!(refusal.message, None);
        }
        assert!(only(&message(ERROR, Flags::empty(), 1, &[])).verdict().is_err());
        assert!(only(&message(ERROR, Flags::empty(), 1, &[0; 4])).verdict().is_err());
    }

    #[test]
    fn a_listing_may_end_with_an_error() {
        let datagram = message(DONE, Flags::MULTI, 1, &(-libc::ENOENT).to_ne_bytes());
        assert!(only(&datagram).verdict().unwrap().unwrap().is_err());
        assert_eq!(only(&message(DONE, Flags::MULTI, 1, &[])).verdict(), Ok(Some(Ok(()))));
    }

    #[test]
    fn hostile_lengths_end_a_datagram() {
        for length in [0_u32, 1, 15, 17, 33, u32::MAX] {
            let mut datagram = message(16, Flags::empty(), 1, &[0; 16]);
            datagram.truncate(32);
            datagram[..4].copy_from_slice(&length.to_ne_bytes());
            let replies: Vec<_> = Replies::new(&datagram).collect();
            assert!(replies.len() <= 2, "length {length}");
            let whole = length == 17;
            assert_eq!(replies[0].is_ok(), whole, "length {length}");
        }
        assert!(Replies::new(&[1; 15]).next().unwrap().is_err());
    }
}
