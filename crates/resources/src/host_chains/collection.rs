//! Garbage collection in the host's chains.
//!
//! Rules that the Go plugin made for an address name no owner, so who could
//! miss them can't be known: they stay until their container's DEL, or until
//! the address is given to a new one. The isolation of a bridge goes when the
//! bridge has no port left and nobody asks for it, whoever made it.

use std::collections::BTreeSet;

use podwire_plugin::{Belongs, Collection, Difference, Made, OwnerMark, Plan, Resource, Valid};
use podwire_spec::error::Error;

use super::accepts::{self, CHAIN, VERSIONS};
use super::members::{self, Kind};
use super::rule::Seen;
use super::{filter, isolation};
use crate::kernel::{Kernel, refused};

/// What attachments have in the host's chains.
pub struct HostChains;

impl Collection<Kernel> for HostChains {
    fn describe(&self) -> String {
        "firewall rules".to_owned()
    }

    fn stale(&self, kernel: &mut Kernel, valid: &Valid) -> Result<Plan<Kernel>, Error> {
        let mut stale = BTreeSet::new();
        let mut unowned = 0;
        for version in VERSIONS {
            for view in filter::everything(kernel, version, &[CHAIN])? {
                let owners = view.rules.iter().filter_map(Seen::owner);
                stale.extend(owners.filter(|owner| valid.is_stale(owner)));
                let of_nobody = |seen: &&Seen| {
                    seen.chain == CHAIN && seen.owner().is_none() && seen.jumps_to().is_none()
                };
                unowned += view.rules.iter().filter(of_nobody).count();
            }
        }
        if unowned > 0 {
            log::info!(
                "{unowned} rules in {CHAIN} name no owner and stay: they go with the DEL of the \
                 container whose address they are for, or when another gets it"
            );
        }
        if let Ok(members) = members::all(kernel.nft()?, Kind::Bridges).map_err(refused) {
            let owners = members.iter().map(|member| member.owner);
            stale.extend(owners.filter(|owner| valid.is_stale(owner)));
        }
        Ok(vec![Box::new(Stale(stale))])
    }
}

/// The owners that are no more: all their rules go in one transaction.
struct Stale(BTreeSet<OwnerMark>);

impl Resource<Kernel> for Stale {
    fn describe(&self) -> String {
        format!("firewall rules of {} dead attachments", self.0.len())
    }

    fn belongs(&self) -> Belongs {
        Belongs::Attachment
    }

    fn make(&mut self, _: &mut Kernel) -> Result<Made, Error> {
        Ok(Made::Found)
    }

    fn check(&self, _: &mut Kernel) -> Result<Vec<Difference>, Error> {
        Ok(Vec::new())
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        let is_dead = |owner: &OwnerMark| self.0.contains(owner);
        // What keeps the one from going must not keep the other.
        let accepts =
            if self.0.is_empty() { Ok(()) } else { accepts::remove(kernel, &is_dead, &[]) };
        isolation::release(kernel, &is_dead, &[], None).and(accepts)
    }
}
