//! Clients of the socket: accepted, listened to, answered, dropped.

use podwire_plugin::OwnerMark;
use podwire_spec::Error;
use podwire_spec::error::ErrorCode;
use podwire_spec::id::NetworkName;

use super::Daemon;
use super::connection::{Connection, Incoming};
use super::lease::Lease;
use super::poll::{Token, now};
use crate::key::Key;
use crate::machine::Millis;
use crate::protocol::{Call, Reply};

/// Clients at the same time; more are turned away.
const MOST_CLIENTS: usize = 400;
/// How long a client may take to say what it wants, and to take its answer.
const CLIENT_TIME: Millis = 5000;
/// Clients accepted before others get their turn.
const CLIENTS_A_TURN: usize = 64;

impl Daemon {
    pub(super) fn accept(&mut self) {
        for _ in 0..CLIENTS_A_TURN {
            let stream = match self.listener.accept() {
                Ok(Some(stream)) => stream,
                Ok(None) => return,
                Err(error) => {
                    log::error!("accepting a client: {error}");
                    return;
                }
            };
            if self.connections.len() >= MOST_CLIENTS {
                self.tools.metrics.dropped_clients += 1;
                log::warn!("turned a client away: {MOST_CLIENTS} are being served");
                continue;
            }
            let number = self.number();
            let watched = Connection::new(stream).and_then(|connection| {
                self.poll.watch(&connection, Token::Connection(number))?;
                Ok(connection)
            });
            match watched {
                Ok(connection) => {
                    self.connections.insert(number, connection);
                    self.agenda.insert((now() + CLIENT_TIME, Token::Connection(number)));
                }
                Err(error) => log::error!("accepting a client: {error}"),
            }
        }
    }

    /// A client has something to say, or takes more of its answer.
    pub(super) fn talk(&mut self, number: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if connection.has_output() && connection.write().is_err() {
            self.hang_up(number);
            return;
        }
        match connection.read() {
            Incoming::Nothing => {
                let is_over = connection.is_over();
                if is_over {
                    self.hang_up(number);
                } else {
                    self.await_room(number);
                }
            }
            Incoming::Over => self.hang_up(number),
            Incoming::Metrics => {
                let text = self.tools.metrics.render(self.gauge());
                if let Some(connection) = self.connections.get_mut(&number) {
                    connection.page(&text);
                }
                self.close_or_await(number);
            }
            Incoming::Call(call) => {
                // From here on the call's own deadline holds.
                self.set_client_deadline(number, None);
                if let Some(reply) = self.execute(number, call) {
                    self.answer(number, &reply);
                }
            }
        }
    }

    /// Answers a call, and ends the connection when all is written.
    pub(super) fn answer(&mut self, number: u64, reply: &Reply) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        connection.reply(reply);
        self.close_or_await(number);
    }

    fn close_or_await(&mut self, number: u64) {
        if self.connections.get(&number).is_some_and(Connection::is_over) {
            self.hang_up(number);
        } else {
            self.set_client_deadline(number, Some(now() + CLIENT_TIME));
            self.await_room(number);
        }
    }

    fn await_room(&mut self, number: u64) {
        let Some(connection) = self.connections.get(&number) else { return };
        if connection.has_output()
            && self.poll.watch_room(connection, Token::Connection(number)).is_err()
        {
            self.hang_up(number);
        }
    }

    /// A client's time is up.
    pub(super) fn drop_client(&mut self, number: u64) {
        // It may have been the daemon that was slow: what the client has said by
        // now counts.
        self.talk(number);
        let is_slow = |connection: &Connection| !connection.is_waiting();
        if self.connections.get(&number).is_some_and(is_slow) {
            self.tools.metrics.dropped_clients += 1;
            log::warn!("dropped a client that was too slow");
            self.hang_up(number);
        }
    }

    fn set_client_deadline(&mut self, number: u64, deadline: Option<Millis>) {
        self.agenda.retain(|(_, token)| *token != Token::Connection(number));
        if let Some(deadline) = deadline {
            self.agenda.insert((deadline, Token::Connection(number)));
        }
    }

    fn hang_up(&mut self, number: u64) {
        self.set_client_deadline(number, None);
        let Some(connection) = self.connections.remove(&number) else { return };
        if connection.is_waiting() {
            self.abandon(number);
        }
    }

    fn execute(&mut self, number: u64, call: Call) -> Option<Reply> {
        let outcome = match call {
            Call::Status => Ok(Some(Reply::Done)),
            Call::Allocate(allocate) => self.allocate(number, *allocate),
            Call::Look(key) => self.look(&key).map(Some),
            Call::Release(key) => self.release(&key).map(|()| Some(Reply::Done)),
            Call::Collect { network, valid } => {
                self.collect(&network, &valid).map(|()| Some(Reply::Done))
            }
        };
        match outcome {
            Ok(reply) => reply,
            Err(error) => Some(refusal(&error)),
        }
    }

    fn look(&self, key: &Key) -> Result<Reply, Error> {
        let lease = self.numbers.get(&key.mark()?).and_then(|number| self.leases.get(number));
        Ok(lease.map_or(Reply::Unknown, lease_reply))
    }

    /// Gives a lease back. None is fine: DEL may come twice, and for an ADD that
    /// never got so far.
    pub(super) fn release(&mut self, key: &Key) -> Result<(), Error> {
        let mark = key.mark()?;
        if let Some(number) = self.numbers.get(&mark).copied() {
            self.release_number(number, "the attachment was removed meanwhile");
        }
        Ok(())
    }

    pub(super) fn release_number(&mut self, number: u64, why: &str) {
        if let Some(lease) = self.leases.get_mut(&number) {
            lease.give_back(&mut self.tools);
            self.finish(number, why);
        }
    }

    /// Gives back what belongs to a network and to no attachment that lives.
    fn collect(&mut self, network: &str, valid: &[String]) -> Result<(), Error> {
        let network = NetworkName::parse(network)?;
        let half = OwnerMark::network_half(&network);
        let valid: std::collections::BTreeSet<&str> = valid.iter().map(String::as_str).collect();
        let stale: Vec<u64> = self
            .numbers
            .iter()
            .filter(|(mark, _)| mark.network == half)
            .filter(|(mark, _)| !valid.contains(attachment_half(mark).as_str()))
            .map(|(_, number)| *number)
            .collect();
        for number in stale {
            self.release_number(number, "collected: no attachment that lives has it");
        }
        Ok(())
    }
}

/// The half of a mark that tells attachments of one network apart, as text.
pub fn attachment_half(mark: &OwnerMark) -> String {
    mark.attachment.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// The lease as a reply.
pub(super) fn lease_reply(lease: &Lease) -> Reply {
    match lease.machine.terms() {
        Some((terms, _)) => Reply::Lease(Box::new(terms.clone())),
        None => Reply::Unknown,
    }
}

/// A failed search for a lease as a reply.
pub(super) fn failure(why: &str) -> Reply {
    refusal(&Error::new(ErrorCode::TryAgainLater, why).with_details(
        "look whether a DHCP server serves the interface's segment; -resendtimeout sets how long \
         it is looked for",
    ))
}

fn refusal(error: &Error) -> Reply {
    Reply::Failed {
        code: error.code.number(),
        message: error.msg.clone(),
        details: error.details.clone(),
    }
}
