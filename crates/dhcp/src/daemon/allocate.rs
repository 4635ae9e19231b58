//! ADD: the lease that is held already, or the search for a new one.

use podwire_spec::Error;
use podwire_spec::error::ErrorCode;

use super::interface::{Inspected, Whereabouts};
use super::lease::Lease;
use super::poll::now;
use super::{Daemon, seed, serve};
use crate::machine::{Identity, Machine, Millis};
use crate::message::code;
use crate::protocol::{Allocate, Client, Reply};
use crate::record::{FORM, Phase, Record};

/// What the daemon keeps of the caller's time for its own answer.
const MARGIN: Millis = 1000;
/// The hardware type of Ethernet in front of a client identifier.
const ETHERNET: u8 = 1;
/// No configuration asks for or provides more.
const MOST_OPTIONS: usize = 255;

impl Daemon {
    /// The lease for an attachment; `None` while it's being looked for.
    pub(super) fn allocate(
        &mut self,
        connection: u64,
        call: Allocate,
    ) -> Result<Option<Reply>, Error> {
        let mark = call.key.mark()?;
        judge(&call)?;
        // A DEL that found no daemon came before this ADD, and is done.
        self.tools.store.forget_wish(&mark).map_err(|error| Error::io(error.to_string()))?;
        let found = self.tools.host.inspect(&call.netns, &call.key.ifname)?;
        let moment = now();
        let give_up = moment + self.patience(call.patience);
        let (mut wanted, mut replaced) = (None, false);
        if let Some(number) = self.numbers.get(&mark).copied()
            && let Some(lease) = self.leases.get_mut(&number)
        {
            let place = &lease.record.place;
            let same = place.index == found.place.index
                && place.inode == found.place.inode
                && place.cookie == found.place.cookie;
            if same {
                if lease.machine.terms().is_some() {
                    return Ok(Some(serve::lease_reply(lease)));
                }
                lease.waiting.push(connection);
                return Ok(None);
            }
            // Made anew since: the same client, so the same address may be had.
            wanted = lease.machine.terms().map(|(terms, _)| terms.address);
            if let Whereabouts::There { .. } = self.tools.host.find(&lease.record) {
                return Err(Error::new(
                    ErrorCode::ALREADY_EXISTS,
                    format!("{} has a lease for another interface that still exists", call.key),
                )
                .with_details("detach the container first (DEL)"));
            }
            replaced = true;
            self.finish(number, "the interface was made anew");
        }
        let identity = self.identity(&call, &found);
        let record = Record {
            form: FORM,
            key: call.key,
            place: found.place,
            host: found.host,
            identity: identity.clone(),
            server_hardware: None,
            priority: call.priority,
            phase: Phase::New,
        };
        let timing = self.timing();
        let machine = Machine::acquire(identity, timing, seed(), wanted, moment, Some(give_up));
        let mut lease = Lease::new(mark, record, machine, replaced);
        lease.waiting.push(connection);
        let number = self.keep(lease);
        if let Some(lease) = self.leases.get_mut(&number) {
            let outcome = lease.wake(&mut self.tools, moment);
            self.settle(number, &outcome);
        }
        Ok(None)
    }

    /// The client has gone before its lease came: it won't be used.
    pub(super) fn abandon(&mut self, connection: u64) {
        let mut abandoned = None;
        for (number, lease) in &mut self.leases {
            let before = lease.waiting.len();
            lease.waiting.retain(|waiting| *waiting != connection);
            if before > 0
                && lease.waiting.is_empty()
                && matches!(lease.record.phase, Phase::New | Phase::Requested { .. })
            {
                abandoned = Some(*number);
            }
        }
        if let Some(number) = abandoned {
            self.release_number(number, "the plugin that asked for a lease has gone");
        }
    }

    fn patience(&self, callers: Millis) -> Millis {
        let own = Millis::try_from(self.settings.resend_timeout.as_millis()).unwrap_or(Millis::MAX);
        own.min(callers.saturating_sub(MARGIN)).max(1)
    }

    fn identity(&self, call: &Allocate, found: &Inspected) -> Identity {
        let client = match &call.client {
            Client::Identifier(bytes) => bytes.clone(),
            Client::Hardware => {
                let mut bytes = vec![ETHERNET];
                bytes.extend(found.hardware);
                bytes
            }
        };
        Identity {
            hardware: found.hardware,
            client,
            requested: call.requested.clone(),
            provided: call.provided.clone(),
            // Siblings of one hardware address are told apart by their IP
            // address, which isn't there yet: only a broadcast reaches them all.
            broadcast: call.broadcast || self.settings.broadcast || found.shares_hardware,
        }
    }
}

/// Refuses what can't be sent.
fn judge(call: &Allocate) -> Result<(), Error> {
    let refused = |why: String| Err(Error::config(why));
    if !call.netns.starts_with('/') || call.netns.contains('\0') {
        return refused(format!("the namespace's path {:?} isn't absolute", call.netns));
    }
    if let Client::Identifier(bytes) = &call.client
        && !(2..=255).contains(&bytes.len())
    {
        return refused("a client identifier has 2 to 255 bytes (RFC 2132, 9.14)".to_owned());
    }
    if call.requested.len() > MOST_OPTIONS || call.provided.len() > MOST_OPTIONS {
        return refused(format!("more than {MOST_OPTIONS} options"));
    }
    for (option, value) in &call.provided {
        if code::is_protocol(*option) || value.len() > 255 {
            return refused(format!("option {option} can't be provided"));
        }
    }
    Ok(())
}
