//! Conversations over a [`Socket`]: a request and its acknowledgement, a
//! request and its answer, a listing, a batch.

use std::ops::ControlFlow;
use std::time::Instant;

use crate::error::{Cause, Error, Malformed, Refusal, Subject};
use crate::message::{Body, Flags, Requests};
use crate::reply::{FIRST_PROTOCOL_KIND, Replies, Reply};
use crate::socket::{Received, Socket};

/// How often a listing that was overtaken by changes is begun anew.
const LISTING_TRIES: usize = 32;

/// What a conversation sees while it waits for its answers.
#[derive(Debug, Clone, Copy)]
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
        let mut verdicts = Verdicts::new(first, requests.len());
        if verdicts.missing > 0 {
            self.converse(until, |event| verdicts.take(event))?;
        }
        Ok(verdicts.each.into_iter().flatten().collect())
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
        let mut listing = Listing::new(self.transmit(requests)?);
        self.converse(until, |event| listing.take(event, decode))?;
        listing.finish()
    }
}

/// The verdicts on requests sent together, as they come in.
struct Verdicts {
    first: u32,
    each: Vec<Option<Result<(), Refusal>>>,
    missing: usize,
}

impl Verdicts {
    fn new(first: u32, count: usize) -> Self {
        Self { first, each: vec![None; count], missing: count }
    }

    fn take(&mut self, event: Event<'_>) -> Result<ControlFlow<()>, Cause> {
        let Event::Reply(reply) = event else { return Err(Cause::Overrun) };
        let index = reply.sequence.wrapping_sub(self.first);
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        // Others are answers to an exchange that was given up.
        if let Some(slot) = self.each.get_mut(index)
            && let Some(verdict) = reply.verdict().map_err(Cause::Malformed)?
            && slot.is_none()
        {
            *slot = Some(verdict);
            self.missing -= 1;
        }
        Ok(if self.missing == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

/// A listing, as it comes in.
struct Listing<T> {
    sequence: u32,
    entries: Vec<T>,
    whole: bool,
    fault: Option<Malformed>,
}

impl<T> Listing<T> {
    fn new(sequence: u32) -> Self {
        Self { sequence, entries: Vec::new(), whole: true, fault: None }
    }

    fn take(
        &mut self,
        event: Event<'_>,
        decode: &mut impl FnMut(&Reply<'_>) -> Result<Option<T>, Malformed>,
    ) -> Result<ControlFlow<()>, Cause> {
        let reply = match event {
            Event::Reply(reply) if reply.sequence == self.sequence => reply,
            Event::Reply(_) => return Ok(ControlFlow::Continue(())),
            Event::Lost => {
                self.whole = false;
                return Ok(ControlFlow::Continue(()));
            }
        };
        self.whole &= !reply.flags.contains(Flags::DUMP_INTERRUPTED);
        match reply.verdict().map_err(Cause::Malformed)? {
            Some(Err(refusal)) => return Err(Cause::Kernel(refusal)),
            Some(Ok(())) => return Ok(ControlFlow::Break(())),
            None if reply.kind < FIRST_PROTOCOL_KIND => {}
            None => match decode(&reply) {
                Ok(Some(entry)) => self.entries.push(entry),
                Ok(None) => {}
                Err(malformed) => self.fault = Some(malformed),
            },
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The entries; `None` when the listing was overtaken or incomplete.
    fn finish(self) -> Result<Option<Vec<T>>, Cause> {
        match self.fault {
            _ if !self.whole => Ok(None),
            Some(malformed) => Err(Cause::Malformed(malformed)),
            None => Ok(Some(self.entries)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::tests::{message, only};
    use crate::socket::Protocol;

    const DONE: u16 = 3;
    const ENTRY: u16 = 16;

    /// Feeds messages (kind, flags, sequence) to a listing of number 7.
    fn list(messages: &[(u16, Flags, u32)]) -> (bool, Result<Option<Vec<u16>>, Cause>) {
        let mut listing = Listing::new(7);
        let mut ended = false;
        for (kind, flags, sequence) in messages {
            let bytes = message(*kind, *flags, *sequence, &[0; 4]);
            let taken = listing.take(Event::Reply(only(&bytes)), &mut |reply| {
                if reply.kind == 99 { Err(Malformed("99")) } else { Ok(Some(reply.kind)) }
            });
            match taken {
                Ok(flow) => ended |= flow.is_break(),
                Err(cause) => return (true, Err(cause)),
            }
        }
        (ended, listing.finish())
    }

    #[test]
    fn a_listing_keeps_its_own_messages_until_done() {
        let none = Flags::empty();
        let messages = [(ENTRY, none, 7), (ENTRY, none, 6), (17, none, 7), (1, none, 7)];
        assert_eq!(list(&messages), (false, Ok(Some(vec![16, 17]))));
        assert_eq!(list(&[(ENTRY, none, 7), (DONE, none, 7)]), (true, Ok(Some(vec![16]))));
        assert!(!list(&[(DONE, none, 6)]).0);
    }

    #[test]
    fn an_overtaken_listing_is_read_to_its_end_and_not_believed() {
        let none = Flags::empty();
        for mark in [ENTRY, DONE] {
            let messages = [(ENTRY, none, 7), (mark, Flags::DUMP_INTERRUPTED, 7), (DONE, none, 7)];
            assert_eq!(list(&messages), (true, Ok(None)));
        }
        // Even where it has an unreadable entry.
        let messages = [(99, Flags::DUMP_INTERRUPTED, 7), (ENTRY, none, 7), (DONE, none, 7)];
        assert_eq!(list(&messages), (true, Ok(None)));
        let messages = [(99, none, 7), (ENTRY, none, 7), (DONE, none, 7)];
        assert_eq!(list(&messages), (true, Err(Cause::Malformed(Malformed("99")))));
    }

    #[test]
    fn a_lost_message_makes_a_listing_incomplete() {
        let mut listing = Listing::<()>::new(7);
        let flow = listing.take(Event::Lost, &mut |_| Ok(None)).unwrap();
        assert!(flow.is_continue());
        assert_eq!(listing.finish(), Ok(None));
    }

    #[test]
    fn verdicts_are_matched_by_number_and_counted_once() {
        let mut verdicts = Verdicts::new(u32::MAX, 2);
        let acknowledge = |sequence| message(2, Flags::CAPPED, sequence, &[0; 20]);
        for (sequence, done) in [(u32::MAX - 1, false), (0, false), (0, false), (u32::MAX, true)] {
            let bytes = acknowledge(sequence);
            let flow = verdicts.take(Event::Reply(only(&bytes))).unwrap();
            assert_eq!(flow.is_break(), done, "{sequence}");
        }
        assert_eq!(verdicts.take(Event::Lost), Err(Cause::Overrun));
    }

    #[test]
    fn silence_ends_with_the_deadline() {
        let mut socket = Socket::open(Protocol::Route).unwrap();
        let until = Instant::now() + std::time::Duration::from_millis(20);
        let ended = socket.converse(until, |_| Ok(ControlFlow::Break(())));
        assert!(matches!(ended, Err(Cause::Deadline(_))));
        assert!(Instant::now() >= until);
    }

    #[test]
    fn acknowledgements_without_room_are_an_overrun_and_the_socket_goes_on() {
        let mut socket = Socket::open(Protocol::Route).unwrap();
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 1).unwrap();
        let mut requests = Requests::new();
        for _ in 0..20 {
            // RTM_DELLINK of a link that can't be.
            requests.push(17, Flags::REQUEST | Flags::ACK, |body| {
                body.raw(&[0; 16]);
                body.string(3, "no-such-link-77");
            });
        }
        assert_eq!(socket.transact(&mut requests), Err(Cause::Overrun));
        // What still comes in belongs to numbers that are past.
        let subject = Subject::new("listing", &"links");
        let links = socket.dump(subject, 18, |body| body.raw(&[0; 16]), |_| Ok(Some(())));
        assert!(!links.unwrap().is_empty());
    }
}
