//! What a new daemon does with the leases of the one before it.
//!
//! A lease of this boot goes on where it was: what it knows is no older than
//! the last agreement, so no server has to be asked before its time. A lease of
//! an earlier boot has no container any more and is given back.

use super::interface::Whereabouts;
use super::lease::Lease;
use super::poll::now;
use super::{Daemon, seed};
use crate::machine::Machine;
use crate::record::{Phase, Record};
use podwire_plugin::OwnerMark;

impl Daemon {
    pub(super) fn resume(&mut self) -> Result<(), String> {
        let found = self.tools.store.load().map_err(|error| error.to_string())?;
        for fault in &found.set_aside {
            log::error!("not a lease: {fault}");
        }
        for (mark, record) in found.good {
            self.resume_one(mark, record);
        }
        let wishes = self.tools.store.load_wishes().map_err(|error| error.to_string())?;
        for fault in &wishes.set_aside {
            log::error!("not a wish: {fault}");
        }
        for (mark, key) in wishes.good {
            log::info!("{key}: giving back what was asked for while no daemon ran");
            if let Err(error) = self.release(&key) {
                log::error!("{key}: {error}");
            }
            if let Err(error) = self.tools.store.forget_wish(&mark) {
                log::error!("{key}: {error}");
            }
        }
        Ok(())
    }

    fn resume_one(&mut self, mark: OwnerMark, record: Record) {
        let (identity, timing, moment) = (record.identity.clone(), self.timing(), now());
        let of_this_boot = record.place.boot == self.tools.host.boot;
        let machine = match &record.phase {
            Phase::Held { terms, since } => {
                let (terms, since) = (terms.clone(), if of_this_boot { *since } else { moment });
                Machine::resume(identity, timing, seed(), terms, since, moment)
            }
            Phase::Lost { address } => {
                Machine::acquire(identity, timing, seed(), Some(*address), moment, None)
            }
            Phase::New | Phase::Requested { .. } => {
                Machine::acquire(identity, timing, seed(), None, moment, None)
            }
        };
        let goes_on = matches!(record.phase, Phase::Held { .. } | Phase::Lost { .. });
        let mut lease = Lease::new(mark, record, machine, true);
        if !of_this_boot {
            log::info!("{}: of an earlier boot, given back", lease.record.key);
            lease.give_back(&mut self.tools);
        } else if matches!(self.tools.host.find(&lease.record), Whereabouts::Gone) {
            log::info!("{}: the interface has gone, given back", lease.record.key);
            lease.give_back(&mut self.tools);
        } else if goes_on {
            self.keep(lease);
        } else {
            // The ADD that asked for it has failed with its daemon.
            lease.give_back(&mut self.tools);
        }
    }
}
