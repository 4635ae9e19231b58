//! Conversations over a [`Socket`]: a request and its acknowledgement, a
//! request and its answer, a listing, a batch.

use std::ops::ControlFlow;
use std::time::Instant;

use rustix::io::Errno;

use crate::attribute::{Attributes, align, read_u16, read_u32};
use crate::error::{Cause, Error, Malformed, Refusal, Subject};
use crate::message::{Body, Flags, HEADER, Requests};
use crate::socket::{Received, Socket};

/// `NLMSG_ERROR` and `NLMSG_DONE` (linux/netlink.h).
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// Kinds below are netlink's own (`NLMSG_MIN_TYPE`).
const FIRST_PROTOCOL_KIND: u16 = 16;
/// Attributes of an extended acknowledgement.
const NLMSGERR_ATTR_MSG: u16 = 1;
const NLMSGERR_ATTR_OFFS: u16 = 2;
/// How often a listing that was overtaken by changes is begun anew.
const LISTING_TRIES: usize = 32;

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
    /// The kernel's verdict when this is one.
    pub(crate) fn verdict(&self) -> Result<Option<Result<(), Refusal>>, Malformed> {
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
pub(crate) struct Replies<'a> {
    rest: &'a [u8],
}

impl<'a> Replies<'a> {
    pub(crate) fn new(datagram: &'a [u8]) -> Self {
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

/// What a conversation sees while it waits for its answers.
pub(crate) enum Event<'a> {
    /// A message of the kernel's, whatever its sequence number.
    Reply(Reply<'a>),
    /// One or more messages were lost.
    Lost,
}

impl Socket {
    /// Hands every message to `visit` until it breaks or the deadline passes.
    pub(crate) fn converse<T>(
        &mut self,
        until: Instant,
        mut visit: impl FnMut(Event<'_>) -> Result<ControlFlow<T>, Cause>,
    ) -> Result<T, Cause> {
        loop {
            match self.receive(until)? {
                Received::Lost => {
                    if let ControlFlow::Break(value) = visit(Event::Lost)? {
                        return Ok(value);
                    }
                }
                Received::Datagram => {
                    for reply in Replies::new(self.datagram()) {
                        let reply = reply.map_err(Cause::Malformed)?;
                        if let ControlFlow::Break(value) = visit(Event::Reply(reply))? {
                            return Ok(value);
                        }
                    }
                }
            }
        }
    }

    /// Sends one request and waits for its acknowledgement.
    ///
    /// # Errors
    /// The kernel's refusal, or no readable answer in time.
    pub fn request(
        &mut self,
        subject: Subject<'_>,
        kind: u16,
        flags: Flags,
        fill: impl FnOnce(&mut Body<'_>),
    ) -> Result<(), Error> {
        let mut requests = Requests::new();
        requests.push(kind, flags | Flags::REQUEST | Flags::ACK, fill);
        let mut verdicts = self.transact(&mut requests).map_err(|cause| subject.error(cause))?;
        match verdicts.pop() {
            Some(Err(refusal)) => Err(subject.error(Cause::Kernel(refusal))),
            _ => Ok(()),
        }
    }

    /// Sends requests that all ask for an acknowledgement, in one system call,
    /// and returns the verdict on each, in order.
    ///
    /// A refused request doesn't stop the ones behind it.
    pub(crate) fn transact(
        &mut self,
        requests: &mut Requests,
    ) -> Result<Vec<Result<(), Refusal>>, Cause> {
        let until = Instant::now() + self.deadline();
        let first = self.transmit(requests)?;
        let mut verdicts: Vec<Option<Result<(), Refusal>>> = vec![None; requests.len()];
        let mut missing = verdicts.len();
        if missing == 0 {
            return Ok(Vec::new());
        }
        self.converse(until, |event| {
            let Event::Reply(reply) = event else { return Err(Cause::Overrun) };
            let index = usize::try_from(reply.sequence.wrapping_sub(first)).unwrap_or(usize::MAX);
            // Others are answers to an exchange that was given up.
            if let Some(slot) = verdicts.get_mut(index)
                && let Some(verdict) = reply.verdict().map_err(Cause::Malformed)?
                && slot.is_none()
            {
                *slot = Some(verdict);
                missing -= 1;
            }
            Ok(if missing == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(verdicts.into_iter().flatten().collect())
    }

    /// Sends one question and decodes its single answer.
    ///
    /// # Errors
    /// The kernel's refusal, or no readable answer in time.
    pub fn fetch<T>(
        &mut self,
        subject: Subject<'_>,
        kind: u16,
        fill: impl FnOnce(&mut Body<'_>),
        decode: impl Fn(&Reply<'_>) -> Result<T, Malformed>,
    ) -> Result<T, Error> {
        let mut requests = Requests::new();
        requests.push(kind, Flags::REQUEST, fill);
        let until = Instant::now() + self.deadline();
        // Lost once: the answer didn't fit, and there is room for it now.
        for _ in 0..2 {
            match self.fetch_once(&mut requests, until, &decode) {
                Ok(Some(value)) => return Ok(value),
                Ok(None) => {}
                Err(cause) => return Err(subject.error(cause)),
            }
        }
        Err(subject.error(Cause::Overrun))
    }

    fn fetch_once<T>(
        &mut self,
        requests: &mut Requests,
        until: Instant,
        decode: &impl Fn(&Reply<'_>) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Cause> {
        let sequence = self.transmit(requests)?;
        self.converse(until, |event| {
            let Event::Reply(reply) = event else { return Ok(ControlFlow::Break(None)) };
            if reply.sequence != sequence {
                return Ok(ControlFlow::Continue(()));
            }
            match reply.verdict().map_err(Cause::Malformed)? {
                Some(Err(refusal)) => Err(Cause::Kernel(refusal)),
                Some(Ok(())) => {
                    Err(Cause::Malformed(Malformed("an acknowledgement in place of an answer")))
                }
                None if reply.kind < FIRST_PROTOCOL_KIND => Ok(ControlFlow::Continue(())),
                None => decode(&reply)
                    .map(|value| ControlFlow::Break(Some(value)))
                    .map_err(Cause::Malformed),
            }
        })
    }

    /// Lists everything that matches a request; `decode` returns `None` for
    /// entries to leave out.
    ///
    /// A listing that the kernel marks as overtaken by a change is repeated,
    /// so the result is one that the kernel vouches for.
    ///
    /// # Errors
    /// The kernel's refusal, or no whole listing in time.
    pub fn dump<T>(
        &mut self,
        subject: Subject<'_>,
        kind: u16,
        fill: impl FnOnce(&mut Body<'_>),
        mut decode: impl FnMut(&Reply<'_>) -> Result<Option<T>, Malformed>,
    ) -> Result<Vec<T>, Error> {
        let mut requests = Requests::new();
        requests.push(kind, Flags::REQUEST | Flags::DUMP, fill);
        let until = Instant::now() + self.deadline();
        for _ in 0..LISTING_TRIES {
            match self.dump_once(&mut requests, until, &mut decode) {
                Ok(Some(entries)) => return Ok(entries),
                Ok(None) => {}
                Err(cause) => return Err(subject.error(cause)),
            }
        }
        Err(subject.error(Cause::Interrupted))
    }

    /// One listing; `None` when it was overtaken or incomplete.
    ///
    /// It reads to the end in any case: the kernel refuses the next listing
    /// on this socket while one is under way.
    fn dump_once<T>(
        &mut self,
        requests: &mut Requests,
        until: Instant,
        decode: &mut impl FnMut(&Reply<'_>) -> Result<Option<T>, Malformed>,
    ) -> Result<Option<Vec<T>>, Cause> {
        let sequence = self.transmit(requests)?;
        let mut entries = Vec::new();
        let mut whole = true;
        let mut fault = None;
        self.converse(until, |event| {
            let reply = match event {
                Event::Reply(reply) if reply.sequence == sequence => reply,
                Event::Reply(_) => return Ok(ControlFlow::Continue(())),
                Event::Lost => {
                    whole = false;
                    return Ok(ControlFlow::Continue(()));
                }
            };
            whole &= !reply.flags.contains(Flags::DUMP_INTERRUPTED);
            match reply.verdict().map_err(Cause::Malformed)? {
                Some(Err(refusal)) => return Err(Cause::Kernel(refusal)),
                Some(Ok(())) => return Ok(ControlFlow::Break(())),
                None if reply.kind < FIRST_PROTOCOL_KIND => {}
                None => match decode(&reply) {
                    Ok(Some(entry)) => entries.push(entry),
                    Ok(None) => {}
                    Err(malformed) => fault = Some(malformed),
                },
            }
            Ok(ControlFlow::Continue(()))
        })?;
        match fault {
            _ if !whole => Ok(None),
            Some(malformed) => Err(Cause::Malformed(malformed)),
            None => Ok(Some(entries)),
        }
    }
}
