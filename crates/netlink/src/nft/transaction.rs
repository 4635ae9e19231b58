//! Committing batches: one transaction, errors mapped back to the operations.

use std::ops::ControlFlow;
use std::time::Instant;

use rustix::io::Errno;

use super::batch::{Batch, Operation, SUBSYSTEM, kind};
use super::socket::{no_nftables, present};
use super::{Element, NftSocket, decode, diagnose};
use crate::attribute::{Attribute, Attributes};
use crate::error::{Cause, ERESTART, Error, Refusal, Subject};
use crate::exchange::Event;
use crate::message::{Body, Flags, HEADER, Requests};

/// `NFNL_MSG_BATCH_BEGIN`, `NFNL_MSG_BATCH_END`, and the generation in the former
/// (linux/netfilter/nfnetlink.h).
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const BATCH_GENERATION: u16 = 1;
/// `struct nfgenmsg` of both: no family, and nftables for the subsystem, in network byte order.
const BATCH_HEADER: [u8; 4] = [0, 0, 0, 10];
/// `NFT_MSG_DESTROYTABLE` and the following come so far behind `NFT_MSG_DELTABLE` and the
/// following, in this order (Linux 6.3).
const DESTROY_KINDS: [(u16, u16); 5] = [
    (kind::DELETE_TABLE, 26),
    (kind::DELETE_CHAIN, 27),
    (kind::DELETE_RULE, 28),
    (kind::DELETE_SET, 29),
    (kind::DELETE_ELEMENT, 30),
];
/// How often a transaction that depends on what was looked up before is tried, while others
/// change the tables.
const LOOKUP_TRIES: usize = 16;

/// Why a transaction failed: at which operation, if at one.
struct Failure {
    operation: Option<usize>,
    cause: Cause,
}

/// What becomes of one operation of a batch.
enum Plan {
    /// Send it as it is, as this kind of message.
    Send(u16),
    /// Leave it out.
    Skip,
    /// Send only these elements (positions in its list).
    Elements(Vec<usize>),
}

impl NftSocket {
    /// Does all of the batch's operations, or none.
    ///
    /// # Errors
    /// The first operation that the kernel refused, with its reason.
    /// [`Error::is_restart`] after [`Batch::require_generation`] when the tables have changed.
    pub fn commit(&mut self, batch: &Batch) -> Result<(), Error> {
        if batch.is_empty() {
            return Ok(());
        }
        let destroying = batch.operations.iter().any(|operation| operation.destroy);
        if !destroying || self.destroy != Some(false) {
            let plans = batch.operations.iter().map(|operation| Plan::Send(native(operation)));
            let failure = match self.send(batch, plans.collect(), batch.generation) {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            };
            // Such kernels know no such message (EINVAL); and those that do still want the table,
            // and for elements the set, to be there (ENOENT).
            let unsupported = failure.operation(batch).is_some_and(|operation| operation.destroy)
                && matches!(failure.errno(), Some(Errno::INVAL | Errno::NOENT | Errno::OPNOTSUPP));
            if !unsupported {
                return Err(failure.describe(batch));
            }
            if failure.errno() != Some(Errno::NOENT) {
                self.destroy = Some(false);
            }
        }
        self.commit_looking_first(batch)
    }

    /// Replaces deletions of what may not exist by deletions of what does.
    fn commit_looking_first(&mut self, batch: &Batch) -> Result<(), Error> {
        let mut tries = 0;
        loop {
            let generation = match batch.generation {
                0 => self.generation()?,
                required => required,
            };
            let mut plans = Vec::with_capacity(batch.operations.len());
            for operation in &batch.operations {
                plans.push(self.plan(batch, operation)?);
            }
            let Err(failure) = self.send(batch, plans, generation) else { return Ok(()) };
            tries += 1;
            let overtaken = failure.errno() == Some(ERESTART);
            if !overtaken || batch.generation != 0 || tries == LOOKUP_TRIES {
                return Err(failure.describe(batch));
            }
        }
    }

    /// Looks whether what an operation deletes is there.
    fn plan(&mut self, batch: &Batch, operation: &Operation) -> Result<Plan, Error> {
        let send = Plan::Send(operation.kind);
        if !operation.destroy {
            return Ok(send);
        }
        let Some(body) = operation.body(batch) else { return Ok(send) };
        let subject = Subject::new("looking before deleting", &operation.object);
        // Each kind of deletion comes right behind the question for the same object.
        let get = operation.kind - 1;
        if operation.kind != kind::DELETE_ELEMENT {
            let found = self.socket.fetch(
                subject,
                SUBSYSTEM | get,
                |message| message.raw(body),
                |_| Ok(()),
            );
            return Ok(if present(found)?.is_some() { send } else { Plan::Skip });
        }
        let mut existing = Vec::new();
        for (index, item) in elements_of(body).enumerate() {
            let wanted = decode::element(&item)
                .map_err(|malformed| subject.error(Cause::Malformed(malformed)))?;
            let found = self.socket.fetch(
                subject,
                SUBSYSTEM | get,
                |message| with_elements(message, body, [item]),
                |reply| decode::elements(reply.payload),
            );
            // The question also finds a range that merely covers the key.
            let same = |element: &Element| {
                element.key == wanted.key && element.interval_end == wanted.interval_end
            };
            if present(found)?.is_some_and(|found| found.iter().any(same)) {
                existing.push(index);
            }
        }
        Ok(if existing.is_empty() { Plan::Skip } else { Plan::Elements(existing) })
    }

    fn send(&mut self, batch: &Batch, plans: Vec<Plan>, generation: u32) -> Result<(), Failure> {
        if let Some(fault) = batch.encoded.fault() {
            return Err(Cause::Unrepresentable(fault).into());
        }
        let mut requests = Requests::new();
        requests.push(BATCH_BEGIN, Flags::REQUEST, |body| {
            body.raw(&BATCH_HEADER);
            // Zero is no generation and goes with any.
            body.u32_be(BATCH_GENERATION, generation);
        });
        let sent: Vec<_> =
            plans.into_iter().enumerate().filter(|(_, plan)| !matches!(plan, Plan::Skip)).collect();
        let Some(last) = sent.len().checked_sub(1) else { return Ok(()) };
        for (position, (index, plan)) in sent.iter().enumerate() {
            let Some(operation) = batch.operations.get(*index) else { continue };
            let Some(message) = operation.body(batch) else { continue };
            let mut flags = operation.flags | Flags::REQUEST;
            // Answers come in the order of the operations, so the last one's tells that all is
            // said; without it, success would be silence.
            flags.set(Flags::ACK, position == last);
            match plan {
                Plan::Send(kind) => {
                    requests.push(SUBSYSTEM | kind, flags, |body| body.raw(message));
                }
                Plan::Elements(chosen) => {
                    requests.push(SUBSYSTEM | operation.kind, flags, |body| {
                        let items = elements_of(message).enumerate();
                        let items = items.filter(|(index, _)| chosen.contains(index));
                        with_elements(body, message, items.map(|(_, item)| item));
                    });
                }
                Plan::Skip => {}
            }
        }
        requests.push(BATCH_END, Flags::REQUEST, |body| body.raw(&BATCH_HEADER));
        self.transact(&mut requests, last + 1).map_err(|failure| {
            let operation = failure.operation.and_then(|position| sent.get(position));
            Failure { operation: operation.map(|(index, _)| *index), cause: failure.cause }
        })
    }

    /// Sends a whole transaction, and returns the failure by the operation's position in it.
    fn transact(&mut self, requests: &mut Requests, operations: usize) -> Result<(), Failure> {
        let until = Instant::now() + self.socket.deadline();
        let first = self.socket.transmit(requests)?;
        let mut refused: Option<(usize, Refusal)> = None;
        let ended = self.socket.converse(until, |event| {
            let Event::Reply(reply) = event else {
                return if refused.is_some() {
                    Ok(ControlFlow::Break(()))
                } else {
                    Err(Cause::Overrun)
                };
            };
            let position =
                usize::try_from(reply.sequence.wrapping_sub(first)).unwrap_or(usize::MAX);
            if position > operations {
                // Of an earlier exchange that was given up.
                return Ok(ControlFlow::Continue(()));
            }
            let Some(verdict) = reply.verdict().map_err(Cause::Malformed)? else {
                return Ok(ControlFlow::Continue(()));
            };
            let failed = verdict.is_err();
            if let (Err(refusal), None) = (verdict, &refused) {
                refused = Some((position, refusal));
            }
            // A refusal of the beginning is one of the whole, and nothing need follow it.
            let over = position == operations || (position == 0 && failed);
            Ok(if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        match (refused, ended) {
            (Some((0, refusal)), _) => Err(match refusal.errno {
                Errno::OPNOTSUPP => no_nftables().into(),
                _ => Cause::Kernel(refusal).into(),
            }),
            (Some((position, refusal)), _) => {
                Err(Failure { operation: Some(position - 1), cause: Cause::Kernel(refusal) })
            }
            (None, Err(cause)) => Err(cause.into()),
            (None, Ok(())) => Ok(()),
        }
    }
}

impl Operation {
    /// What follows the netlink header.
    fn body<'b>(&self, batch: &'b Batch) -> Option<&'b [u8]> {
        batch.encoded.bytes().get(self.range.clone())?.get(HEADER..)
    }
}

impl Failure {
    fn operation<'b>(&self, batch: &'b Batch) -> Option<&'b Operation> {
        batch.operations.get(self.operation?)
    }

    fn errno(&self) -> Option<Errno> {
        match &self.cause {
            Cause::Kernel(refusal) => Some(refusal.errno),
            _ => None,
        }
    }

    fn describe(self, batch: &Batch) -> Error {
        match (self.operation(batch), self.cause) {
            (Some(operation), Cause::Kernel(refusal)) => {
                let message = batch.encoded.bytes().get(operation.range.clone());
                let cause = diagnose::cause(refusal, operation.kind, message.unwrap_or_default());
                Subject::new(operation.doing, &operation.object).error(cause)
            }
            (_, cause) => Subject::new("committing to nftables", &"").error(cause),
        }
    }
}

impl From<Cause> for Failure {
    fn from(cause: Cause) -> Self {
        Self { operation: None, cause }
    }
}

/// The kind of message that an operation is on a kernel that has them all.
fn native(operation: &Operation) -> u16 {
    let destroy = DESTROY_KINDS.iter().find(|(delete, _)| *delete == operation.kind);
    match destroy {
        Some((_, destroy)) if operation.destroy => *destroy,
        _ => operation.kind,
    }
}

/// The elements listed in a message that was encoded here.
fn elements_of(body: &[u8]) -> impl Iterator<Item = Attribute<'_>> {
    let attributes = Attributes::new(body.get(decode::NFGENMSG..).unwrap_or_default());
    let list = attributes.find_kind(3).ok().flatten();
    list.map(|list| list.nested()).into_iter().flatten().map_while(Result::ok)
}

/// Repeats a message with other elements.
fn with_elements<'a>(
    message: &mut Body<'_>,
    body: &[u8],
    elements: impl IntoIterator<Item = Attribute<'a>>,
) {
    message.raw(body.get(..decode::NFGENMSG).unwrap_or_default());
    for attribute in Attributes::new(body.get(decode::NFGENMSG..).unwrap_or_default()) {
        match attribute {
            Ok(attribute) if attribute.kind != 3 => {
                message.attribute(attribute.kind, attribute.payload);
            }
            _ => break,
        }
    }
    // The flag for nesting was masked on reading.
    message.nest(3, |body| {
        for element in elements {
            body.nest_unflagged(1 | 0x8000, |body| body.raw(element.payload));
        }
    });
}
