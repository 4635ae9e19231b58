//! One lease in the daemon: its machine, its record on the disk, its socket and
//! who waits for it.

use podwire_netlink::route::Device;
use podwire_netlink::route::routes::Route;
use podwire_plugin::OwnerMark;
use podwire_sys::file::Durability;

use super::apply::{self, Applied};
use super::exchange::{Exchange, NoExchange};
use super::interface::{Host, Whereabouts};
use super::release::{self, From};
use crate::machine::{Action, Agreement, Loss, Machine, Millis, Way};
use crate::message::{Kind, Message, code};
use crate::metrics::Metrics;
use crate::record::{Phase, Record};
use crate::store::Store;
use crate::terms::Terms;

/// How long an answer is waited for with an open socket.
const ANSWER_TIME: Millis = 15_000;

/// What the daemon has at hand for its leases.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) host: Host,
    pub(super) store: Store,
    pub(super) metrics: Metrics,
}

/// A lease, or the search for one.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) mark: OwnerMark,
    pub(super) record: Record,
    pub(super) machine: Machine,
    pub(super) exchange: Option<Exchange>,
    /// Whether the daemon watches it.
    pub(super) watched: bool,
    /// The calls that wait for it, by their connections.
    pub(super) waiting: Vec<u64>,
    /// When it is to be woken, as the daemon has planned it.
    pub(super) planned: Option<Millis>,
    /// Whether it is on the disk.
    written: bool,
    /// When the socket is closed though no answer came, so that it doesn't keep
    /// a namespace alive that everyone else has left.
    close_at: Option<Millis>,
    /// Whether the last packet could not be sent.
    troubled: bool,
    /// Routes that went with an address that was lost.
    lost_routes: Vec<Route>,
}

/// What became of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It goes on.
    Continues,
    /// It is held; whoever waits is to be told.
    Held,
    /// It ended, and why. Nothing of it is left.
    Ended(String),
}

impl Lease {
    pub(super) fn new(mark: OwnerMark, record: Record, machine: Machine, written: bool) -> Self {
        Self {
            mark,
            record,
            machine,
            exchange: None,
            watched: false,
            waiting: Vec::new(),
            planned: None,
            written,
            close_at: None,
            troubled: false,
            lost_routes: Vec::new(),
        }
    }

    /// Does what is due.
    pub(super) fn wake(&mut self, tools: &mut Tools, now: Millis) -> Outcome {
        if self.close_at.is_some_and(|at| at <= now) {
            self.close_at = None;
            self.exchange = None;
        }
        let actions = self.machine.wake(now);
        let sends = !actions.is_empty();
        let outcome = self.perform(tools, actions, None);
        if sends && self.exchange.is_some() {
            self.close_at = Some(now + ANSWER_TIME);
        }
        outcome
    }

    /// Takes what arrived on the segment or at the address.
    pub(super) fn receive(
        &mut self,
        tools: &mut Tools,
        message: &Message,
        hardware: Option<[u8; 6]>,
        now: Millis,
    ) -> Outcome {
        let actions = self.machine.receive(message, now);
        if actions.is_empty() {
            tools.metrics.ignored += 1;
        }
        if message.kind == Kind::Nak && !actions.is_empty() {
            tools.metrics.refused += 1;
        }
        self.perform(tools, actions, hardware)
    }

    fn perform(
        &mut self,
        tools: &mut Tools,
        actions: Vec<Action>,
        hardware: Option<[u8; 6]>,
    ) -> Outcome {
        let mut outcome = Outcome::Continues;
        for action in actions {
            match action {
                Action::Broadcast { message, source } => {
                    self.note_request(tools, &message);
                    let own = self.record.identity.hardware;
                    let sent =
                        self.exchange(tools).map(|socket| socket.broadcast(own, source, &message));
                    if let Some(ended) = self.sent(tools, sent) {
                        return ended;
                    }
                }
                Action::Unicast { message, server, .. } => {
                    let sent = self.exchange(tools).map(|socket| socket.unicast(server, &message));
                    if let Some(ended) = self.sent(tools, sent) {
                        return ended;
                    }
                }
                Action::Bound(agreement) => match self.agree(tools, agreement, hardware) {
                    Ok(()) => outcome = Outcome::Held,
                    Err(why) => {
                        self.forget(tools);
                        return Outcome::Ended(why);
                    }
                },
                Action::Lost { terms, reason } => {
                    if let Some(ended) = self.lose(tools, &terms, reason) {
                        return ended;
                    }
                }
                Action::GaveUp { reason } => {
                    tools.metrics.gave_up += 1;
                    self.forget(tools);
                    return Outcome::Ended(format!("no lease for {}: {reason}", self.record.key));
                }
            }
        }
        if self.exchange.as_ref().is_some_and(|socket| !socket.serves(self.machine.listening())) {
            self.exchange = None;
        }
        outcome
    }

    /// When it wants to be woken next.
    pub(super) fn due(&self) -> Option<Millis> {
        let close_at = self.close_at.filter(|_| self.exchange.is_some());
        match (self.machine.due(), close_at) {
            (Some(due), Some(close_at)) => Some(due.min(close_at)),
            (due, close_at) => due.or(close_at),
        }
    }

    /// The socket for what is listened for now.
    fn exchange(&mut self, tools: &mut Tools) -> Result<&Exchange, NoExchange> {
        let listening = self.machine.listening();
        let open = match self.exchange.take() {
            Some(open) if open.serves(listening) => open,
            _ => {
                self.watched = false;
                Exchange::open(&mut tools.host, &self.record, listening)?
            }
        };
        Ok(self.exchange.insert(open))
    }

    /// Notes whether a packet went out; ends a lease whose interface has gone.
    fn sent(
        &mut self,
        tools: &mut Tools,
        sent: Result<std::io::Result<()>, NoExchange>,
    ) -> Option<Outcome> {
        let why = match sent {
            Ok(Ok(())) => {
                self.troubled = false;
                return None;
            }
            Ok(Err(error)) => {
                // Perhaps the interface went down or away: looked at anew with
                // the next packet.
                self.exchange = None;
                error.to_string()
            }
            Err(NoExchange::Trouble(why)) => why,
            Err(NoExchange::Gone) => {
                let why = format!("{}: the interface has gone", self.record.key);
                log::info!("{why}; giving its address back");
                self.give_back(tools);
                return Some(Outcome::Ended(why));
            }
        };
        tools.metrics.unsent += 1;
        if !self.troubled {
            log::warn!("{}: could not send, and goes on trying: {why}", self.record.key);
        }
        self.troubled = true;
        None
    }

    /// An offer that is being taken is written down first, so that an address
    /// which a server then gives to nobody's knowledge is given back later.
    fn note_request(&mut self, tools: &mut Tools, message: &Message) {
        let asked = (
            message.options.address(code::REQUESTED_ADDRESS),
            message.options.address(code::SERVER_IDENTIFIER),
        );
        let (Kind::Request, (Some(address), Some(server))) = (message.kind, asked) else { return };
        let phase = Phase::Requested { address, server };
        // While an address is looked for in the place of a lost one, the record
        // goes on to say so.
        if self.record.phase != phase && !matches!(self.record.phase, Phase::Lost { .. }) {
            self.record.phase = phase;
            // Without it only an address that nobody uses runs out by itself.
            if let Err(error) = self.write(tools, Durability::Volatile) {
                log::warn!("{}: {error}", self.record.key);
            }
        }
    }

    fn agree(
        &mut self,
        tools: &mut Tools,
        agreement: Agreement,
        hardware: Option<[u8; 6]>,
    ) -> Result<(), String> {
        let Agreement { terms, since, before, by } = agreement;
        match by {
            Way::Acquired => tools.metrics.acquired += 1,
            Way::Renewed => tools.metrics.renewed += 1,
            Way::Rebound => tools.metrics.rebound += 1,
        }
        if hardware.is_some() {
            self.record.server_hardware = hardware;
        }
        let again = matches!(self.record.phase, Phase::Lost { .. });
        self.record.phase = Phase::Held { terms: terms.clone(), since };
        let first = by == Way::Acquired;
        let durability = if first { Durability::Durable } else { Durability::Volatile };
        if let Err(error) = self.write(tools, durability) {
            log::error!("{}: the lease can't be kept: {error}", self.record.key);
            if first && before.is_none() && !again {
                // Nobody would remember it: better no address than one that is
                // never given back.
                self.give_back(tools);
                return Err(format!("the lease can't be kept: {error}"));
            }
        }
        let (key, address) = (&self.record.key, terms.address);
        let changed = before.as_ref().is_some_and(|before| !before.is_same_for_container(&terms));
        if first {
            let (server, lease) = (terms.server, terms.lease);
            log::info!("{key}: {address} from {server} for {lease} s");
        }
        if changed {
            tools.metrics.changed += 1;
            let was = before.as_ref().map(|before| before.address.to_string()).unwrap_or_default();
            log::warn!("{key}: server {} changed the lease of {was}: {address}", terms.server);
        }
        if changed || again {
            self.apply(tools, before.as_ref(), &terms);
        }
        Ok(())
    }

    /// Puts changed terms on the interface.
    fn apply(&mut self, tools: &mut Tools, before: Option<&Terms>, terms: &Terms) {
        let key = &self.record.key;
        let Whereabouts::There { netns, name } = tools.host.find(&self.record) else {
            log::warn!("{key}: the interface can't be reached to change its address");
            return;
        };
        let device = Device::new(self.record.place.index, &name);
        let routes = std::mem::take(&mut self.lost_routes);
        let priority = self.record.priority;
        let work = || apply::replace(device, before, terms, &routes, priority);
        match tools.host.inside(&netns, work) {
            Ok(Ok(Applied::Yes)) => log::warn!("{key}: {name} has {} now", terms.address),
            Ok(Ok(Applied::NotOurs)) => log::warn!(
                "{key}: {name} hasn't the old address, so it is left alone; attach the container \
                 again"
            ),
            Ok(Err(error)) => log::error!("{key}: {error}"),
            Err(error) => log::error!("{key}: {error}"),
        }
    }

    /// Takes an address off the interface that may not be used any more.
    fn lose(&mut self, tools: &mut Tools, terms: &Terms, reason: Loss) -> Option<Outcome> {
        if reason == Loss::Expired {
            tools.metrics.expired += 1;
        }
        let why = match reason {
            Loss::Expired => "it ran out",
            Loss::Refused => "the server refused to go on with it",
        };
        let key = self.record.key.clone();
        self.exchange = None;
        match tools.host.find(&self.record) {
            Whereabouts::There { netns, name } => {
                log::error!("{key}: lost {}: {why}; taken off {name}", terms.address);
                let device = Device::new(self.record.place.index, &name);
                match tools.host.inside(&netns, || apply::take_away(device, terms)) {
                    Ok(Ok(routes)) => self.lost_routes = routes,
                    Ok(Err(error)) => log::error!("{key}: {error}"),
                    Err(error) => log::error!("{key}: {error}"),
                }
                self.record.phase = Phase::Lost { address: terms.address };
                if let Err(error) = self.write(tools, Durability::Durable) {
                    log::error!("{key}: {error}");
                }
                None
            }
            Whereabouts::Gone | Whereabouts::Unknown { .. } => {
                // Nothing to take it off and nobody to look for another for.
                self.forget(tools);
                Some(Outcome::Ended(format!("{key}: {why}, and the interface can't be reached")))
            }
        }
    }

    /// Gives the address back and forgets the lease.
    pub(super) fn give_back(&mut self, tools: &mut Tools) {
        let message = match (&self.record.phase, self.machine.release()) {
            (_, Some(message)) => Some(message),
            // Whether the server agreed isn't known.
            (Phase::Requested { address, server }, None) => {
                Some(self.record.identity.release(*address, *server, 1))
            }
            _ => None,
        };
        let server = message.as_ref().and_then(|it| it.options.address(code::SERVER_IDENTIFIER));
        if let (Some(message), Some(server)) = (message, server) {
            self.exchange = None;
            let address = message.client;
            match release::release(&mut tools.host, &self.record, address, server, &message) {
                From::Container => tools.metrics.released_inside += 1,
                From::Host => tools.metrics.released_from_host += 1,
                From::Nowhere => tools.metrics.release_failed += 1,
            }
            log::info!("{}: gave {address} back to {server}", self.record.key);
        }
        self.forget(tools);
    }

    /// Forgets the lease, which then runs out at the server.
    fn forget(&mut self, tools: &mut Tools) {
        self.exchange = None;
        if self.written
            && let Err(error) = tools.store.remove(&self.mark)
        {
            log::error!("{}: {error}", self.record.key);
        }
        self.written = false;
    }

    fn write(
        &mut self,
        tools: &Tools,
        durability: Durability,
    ) -> Result<(), podwire_sys::PathError> {
        tools.store.write(&self.mark, &self.record, durability)?;
        self.written = true;
        Ok(())
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
