//! One lease's life as a function of time and messages (RFC 2131, section
//! 4.4): no sockets, no clock. The daemon hands in what arrived and what time
//! it is, and does what comes out.

mod request;
#[cfg(test)]
mod tests;
mod timing;

use std::net::Ipv4Addr;

use crate::message::{Direction, Kind, Message, code};
use crate::terms::{FOREVER, Terms};

pub use request::Identity;
pub use timing::Timing;

/// Milliseconds since the machine started, sleep included.
pub type Millis = u64;

/// What the machine wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send this to everyone on the segment, from `source`.
    Broadcast {
        /// The message.
        message: Message,
        /// The address to send from; unspecified while there is none.
        source: Ipv4Addr,
    },
    /// Send this to the server that gave the lease, from the leased address.
    Unicast {
        /// The message.
        message: Message,
        /// The leased address.
        source: Ipv4Addr,
        /// The server.
        server: Ipv4Addr,
    },
    /// A server agreed.
    Bound(Agreement),
    /// The address may not be used any more; a new one is being asked for.
    Lost {
        /// What was agreed last.
        terms: Terms,
        /// Why.
        reason: Loss,
    },
    /// No lease was to be had in the time given.
    GaveUp {
        /// What happened, for the caller.
        reason: String,
    },
}

/// An agreement with a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreement {
    /// The terms.
    pub terms: Terms,
    /// When the lease began: when it was asked for.
    pub since: Millis,
    /// What was agreed before, if this goes on with it or takes its place.
    pub before: Option<Terms>,
    /// How it came about.
    pub by: Way,
}

/// How an agreement came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By an offer, or by asking for an address known before.
    Acquired,
    /// By the server that had given it.
    Renewed,
    /// By whichever server answered.
    Rebound,
}

/// Why an address may not be used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The lease ran out.
    Expired,
    /// A server refused to go on.
    Refused,
}

/// Where answers arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listening {
    /// Nothing is expected.
    Nowhere,
    /// On the segment, whatever address they are for.
    Segment,
    /// At the leased address.
    Address {
        /// The leased address.
        address: Ipv4Addr,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// Between two rounds of looking for a server.
    Waiting,
    /// Servers were asked for offers.
    Selecting,
    /// An offer was taken.
    Requesting { address: Ipv4Addr, server: Ipv4Addr },
    /// A known address was asked for again (INIT-REBOOT).
    Confirming { address: Ipv4Addr },
    /// Nothing to do until T1.
    Bound,
    /// The lease's server was asked to go on.
    Renewing,
    /// Any server was asked to go on.
    Rebinding,
    /// It ended without a lease.
    Ended,
}

/// One lease.
#[derive(Debug)]
pub struct Machine {
    identity: Identity,
    timing: Timing,
    state: State,
    /// Of the messages that are answered now.
    transaction: u32,
    random: u64,
    /// When the exchange began, for `secs` and as the lease's beginning.
    began: Millis,
    /// When the lease begins if the answer comes: when the first message was
    /// sent that it may be an answer to.
    asked_at: Millis,
    /// How many of this round.
    sent: u32,
    rounds: u32,
    due: Option<Millis>,
    /// Without a lease by then it ends.
    give_up_at: Option<Millis>,
    terms: Option<(Terms, Millis)>,
    /// An address to ask for.
    wanted: Option<Ipv4Addr>,
    /// What was wrong with the last offer that was not taken.
    complaint: Option<String>,
}

impl Machine {
    /// A machine that looks for a lease from now on, and ends without one
    /// at `give_up_at`. `wanted` is an address known from before.
    pub fn acquire(
        identity: Identity,
        timing: Timing,
        seed: u64,
        wanted: Option<Ipv4Addr>,
        now: Millis,
        give_up_at: Option<Millis>,
    ) -> Self {
        let mut machine = Self::new(identity, timing, seed, now);
        machine.wanted = wanted;
        machine.give_up_at = give_up_at;
        if let Some(address) = wanted {
            machine.state = State::Confirming { address };
        }
        machine
    }

    /// A machine that goes on with a lease that was agreed before.
    pub fn resume(
        identity: Identity,
        timing: Timing,
        seed: u64,
        terms: Terms,
        since: Millis,
        now: Millis,
    ) -> Self {
        let mut machine = Self::new(identity, timing, seed, now);
        machine.state = State::Bound;
        machine.due = at(since, terms.renewal);
        machine.terms = Some((terms, since));
        machine
    }

    fn new(identity: Identity, timing: Timing, seed: u64, now: Millis) -> Self {
        Self {
            identity,
            timing,
            state: State::Selecting,
            transaction: 0,
            random: seed | 1,
            began: now,
            asked_at: now,
            sent: 0,
            rounds: 0,
            due: Some(now),
            give_up_at: None,
            terms: None,
            wanted: None,
            complaint: None,
        }
    }

    /// When [`Machine::wake`] wants to be called next; never if nothing is due.
    pub fn due(&self) -> Option<Millis> {
        match (self.due, self.give_up_at) {
            (Some(due), Some(end)) => Some(due.min(end)),
            (due, end) => due.or(end),
        }
    }

    /// Where answers arrive now.
    pub fn listening(&self) -> Listening {
        match (&self.state, &self.terms) {
            (State::Renewing, Some((terms, _))) => Listening::Address { address: terms.address },
            (State::Waiting | State::Bound | State::Ended, _) => Listening::Nowhere,
            _ => Listening::Segment,
        }
    }

    /// The agreement that holds now, and when it began.
    pub fn terms(&self) -> Option<(&Terms, Millis)> {
        self.terms.as_ref().map(|(terms, since)| (terms, *since))
    }

    /// Does what is due by `now`.
    pub fn wake(&mut self, now: Millis) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.due().is_none_or(|due| due > now) {
            return actions;
        }
        if self.give_up_at.is_some_and(|end| end <= now) {
            self.give_up(&mut actions);
            return actions;
        }
        // What held until now decides first: a lease that ended is lost
        // whatever else was planned.
        if let Some((terms, since)) = &self.terms {
            if at(*since, terms.lease).is_some_and(|end| end <= now) {
                self.lose(Loss::Expired, now, &mut actions);
            } else if at(*since, terms.rebinding).is_some_and(|end| end <= now) {
                if self.state != State::Rebinding {
                    self.begin(State::Rebinding, now);
                }
            } else if self.state == State::Bound {
                self.begin(State::Renewing, now);
            }
        }
        self.transmit(now, &mut actions);
        actions
    }

    /// Takes a message that arrived. One that isn't an answer to what was asked
    /// changes nothing.
    pub fn receive(&mut self, message: &Message, now: Millis) -> Vec<Action> {
        let mut actions = Vec::new();
        let answers = message.direction == Direction::Reply
            && message.transaction == self.transaction
            && message.hardware == self.identity.hardware
            && self.listening() != Listening::Nowhere;
        if !answers {
            return actions;
        }
        match (self.state.clone(), message.kind) {
            (State::Selecting, Kind::Offer) => self.consider(message, now, &mut actions),
            (State::Requesting { address, server }, Kind::Ack) => {
                // Only what was asked for, and only of whom it was asked.
                let from = message.options.address(code::SERVER_IDENTIFIER);
                if message.yours == address && from.is_none_or(|from| from == server) {
                    self.agree(message, Way::Acquired, now, &mut actions);
                }
            }
            (State::Requesting { server, .. }, Kind::Nak)
                if message.options.address(code::SERVER_IDENTIFIER) == Some(server) =>
            {
                self.refused(message, now, &mut actions);
            }
            (State::Confirming { address }, Kind::Ack) if message.yours == address => {
                self.agree(message, Way::Acquired, now, &mut actions);
            }
            (State::Renewing, Kind::Ack) => self.agree(message, Way::Renewed, now, &mut actions),
            (State::Rebinding, Kind::Ack) => self.agree(message, Way::Rebound, now, &mut actions),
            (State::Confirming { .. } | State::Renewing | State::Rebinding, Kind::Nak) => {
                self.refused(message, now, &mut actions);
            }
            _ => {}
        }
        actions
    }

    /// A message that gives the address back; none without a lease.
    pub fn release(&mut self) -> Option<Message> {
        let (terms, _) = self.terms.take()?;
        self.state = State::Ended;
        self.due = None;
        self.give_up_at = None;
        let transaction = self.draw();
        Some(self.identity.release(terms.address, terms.server, transaction))
    }

    fn consider(&mut self, offer: &Message, now: Millis, actions: &mut Vec<Action>) {
        match Terms::read(offer, None) {
            Ok(terms) => {
                self.state = State::Requesting { address: terms.address, server: terms.server };
                self.sent = 0;
                self.transmit(now, actions);
            }
            Err(reason) => {
                let server = offer.options.address(code::SERVER_IDENTIFIER);
                let server = server.map(|at| at.to_string()).unwrap_or_default();
                self.complaint =
                    Some(format!("an offer of server {server} can't be used: {reason}"));
            }
        }
    }

    fn agree(&mut self, ack: &Message, by: Way, now: Millis, actions: &mut Vec<Action>) {
        let before = self.terms.as_ref().map(|(terms, _)| terms);
        let terms = match Terms::read(ack, before) {
            Ok(terms) => terms,
            Err(reason) => {
                self.complaint = Some(format!("an acknowledgement can't be used: {reason}"));
                return;
            }
        };
        let since = self.asked_at;
        let before = self.terms.take().map(|(terms, _)| terms);
        self.state = State::Bound;
        // Not at once even where a server gives seconds: nobody may keep the
        // daemon busy.
        self.due = at(since, terms.renewal).map(|due| due.max(now + timing::LEAST));
        self.give_up_at = None;
        self.rounds = 0;
        self.wanted = Some(terms.address);
        self.terms = Some((terms.clone(), since));
        actions.push(Action::Bound(Agreement { terms, since, before, by }));
    }

    /// A server refused: the address isn't ours (any more).
    fn refused(&mut self, nak: &Message, now: Millis, actions: &mut Vec<Action>) {
        let said = nak.options.get(code::MESSAGE_TEXT).unwrap_or_default();
        let said: String =
            String::from_utf8_lossy(said).chars().filter(|c| !c.is_control()).take(100).collect();
        self.complaint = Some(format!("a server refused: {said}"));
        self.wanted = None;
        if self.terms.is_some() {
            self.lose(Loss::Refused, now, actions);
            self.transmit(now, actions);
        } else {
            self.rest(now);
        }
    }

    fn lose(&mut self, reason: Loss, now: Millis, actions: &mut Vec<Action>) {
        if let Some((terms, _)) = self.terms.take() {
            actions.push(Action::Lost { terms, reason });
        }
        self.rounds = 0;
        self.begin(State::Selecting, now);
    }

    /// Begins an exchange, whose first message is due at once.
    fn begin(&mut self, state: State, now: Millis) {
        self.state = state;
        self.began = now;
        self.sent = 0;
        self.transaction = 0;
        self.due = Some(now);
    }

    /// Pauses before the next round of looking for a server.
    fn rest(&mut self, now: Millis) {
        let draw = self.draw();
        self.state = State::Waiting;
        self.due = Some(now + self.timing.pause(self.rounds, draw));
        self.rounds = self.rounds.saturating_add(1);
    }

    fn give_up(&mut self, actions: &mut Vec<Action>) {
        self.state = State::Ended;
        self.due = None;
        self.give_up_at = None;
        let reason = self.complaint.take().unwrap_or_else(|| "no server answered".to_owned());
        actions.push(Action::GaveUp { reason });
    }

    /// Sends what the state asks for, and plans what comes next.
    fn transmit(&mut self, now: Millis, actions: &mut Vec<Action>) {
        match &self.state {
            State::Bound | State::Ended => return,
            State::Waiting => self.begin(State::Selecting, now),
            State::Selecting | State::Requesting { .. } | State::Confirming { .. } => {
                if self.sent >= Timing::tries(matches!(self.state, State::Selecting)) {
                    let confirmed_nothing = matches!(self.state, State::Confirming { .. });
                    if confirmed_nothing {
                        // It may be another network: look for its servers.
                        self.begin(State::Selecting, now);
                    } else {
                        self.rest(now);
                        return;
                    }
                }
            }
            // Each message is a transaction of its own, since they lie far
            // apart, and the lease begins with the one that is answered.
            State::Renewing | State::Rebinding => self.transaction = 0,
        }
        if self.transaction == 0 {
            self.transaction = self.draw();
        }
        let seconds = u16::try_from((now - self.began.min(now)) / 1000).unwrap_or(u16::MAX);
        let extends = matches!(self.state, State::Renewing | State::Rebinding);
        if self.sent == 0 || extends {
            self.asked_at = now;
        }
        let terms = self.terms.as_ref().map(|(terms, _)| terms);
        let identity = &self.identity;
        let (transaction, none) = (self.transaction, Ipv4Addr::UNSPECIFIED);
        let action = match (&self.state, terms) {
            (State::Requesting { address, server }, _) => Action::Broadcast {
                message: identity.request(transaction, seconds, *address, Some(*server)),
                source: none,
            },
            (State::Confirming { address }, _) => Action::Broadcast {
                message: identity.request(transaction, seconds, *address, None),
                source: none,
            },
            (State::Renewing, Some(terms)) => Action::Unicast {
                message: identity.extend(transaction, seconds, terms.address, false),
                source: terms.address,
                server: terms.server,
            },
            (State::Rebinding, Some(terms)) => Action::Broadcast {
                message: identity.extend(transaction, seconds, terms.address, true),
                source: terms.address,
            },
            _ => Action::Broadcast {
                message: identity.discover(transaction, seconds, self.wanted),
                source: none,
            },
        };
        actions.push(action);
        self.plan(now);
    }

    /// When to send again, or to give this step up.
    fn plan(&mut self, now: Millis) {
        let draw = self.draw();
        self.due = match (&self.state, &self.terms) {
            (State::Renewing, Some((terms, since))) => {
                Some(Timing::extend(now, at(*since, terms.rebinding)))
            }
            (State::Rebinding, Some((terms, since))) => {
                Some(Timing::extend(now, at(*since, terms.lease)))
            }
            _ => Some(now + self.timing.answer(self.sent, draw)),
        };
        self.sent += 1;
    }

    /// The next random number, never 0 (xorshift; what is guarded is only
    /// against mistakes: whoever sees the segment sees the transaction).
    fn draw(&mut self) -> u32 {
        loop {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            let high = u32::try_from(self.random >> 32).unwrap_or(0);
            if high != 0 {
                return high;
            }
        }
    }
}

/// `seconds` after a moment; never for a lease that doesn't end.
fn at(since: Millis, seconds: u32) -> Option<Millis> {
    (seconds != FOREVER).then(|| since + u64::from(seconds) * 1000)
}
