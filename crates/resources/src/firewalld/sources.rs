//! The sources of one attachment.

use std::collections::BTreeSet;
use std::net::IpAddr;

use podwire_plugin::{Belongs, Collection, Difference, Made, OwnerMark, Plan, Resource, Valid};
use podwire_spec::error::Error;
use podwire_spec::id::AttachmentKey;

use super::Firewalld;
use crate::host_chains::members::{self, Kind, Member, Share};
use crate::kernel::{Kernel, refused};
use crate::nft::{display_name, retrying, transaction};

/// What makes firewalld treat an attachment's addresses as a zone says.
#[derive(Debug, Clone)]
pub struct Sources {
    owner: OwnerMark,
    key: AttachmentKey,
    zone: String,
    addresses: Vec<IpAddr>,
}

impl Sources {
    /// The addresses of an attachment as sources of a zone. On DEL zone and
    /// addresses are needed only for what the Go plugin made.
    pub fn new(key: &AttachmentKey, zone: &str, addresses: Vec<IpAddr>) -> Self {
        let zone = zone.to_owned();
        Self { owner: OwnerMark::of(key), key: key.clone(), zone, addresses }
    }

    /// Writes down whose the sources are, before they are made.
    fn enrol(&self, kernel: &mut Kernel) -> Result<(), Error> {
        let wanted: Vec<_> = self
            .addresses
            .iter()
            .map(|address| Member {
                owner: self.owner,
                share: Share::Source(*address),
                word: self.zone.clone(),
            })
            .collect();
        let socket = kernel.nft()?;
        retrying(|| {
            transaction(socket, |socket, batch| {
                let all = members::all(socket, Kind::Sources)?;
                let own: Vec<_> = all.iter().filter(|one| one.owner == self.owner).collect();
                for member in own.iter().filter(|one| !wanted.contains(one)) {
                    members::push_removal(batch, member);
                }
                for member in wanted.iter().filter(|one| !own.contains(one)) {
                    members::push(batch, member, &self.key);
                }
                Ok(())
            })
        })
    }
}

/// Removes the sources of owners, but for addresses that somebody else has
/// too; `more` are sources that may stand nowhere.
fn remove(
    kernel: &mut Kernel,
    is_leaving: &dyn Fn(&OwnerMark) -> bool,
    more: &[(&str, IpAddr)],
) -> Result<(), Error> {
    let all = match kernel.nft()?.generation() {
        Ok(_) => members::all(kernel.nft()?, Kind::Sources).map_err(refused)?,
        // A kernel without nftables has nothing written down.
        Err(_) => Vec::new(),
    };
    let mut leaving: BTreeSet<(String, IpAddr)> =
        more.iter().map(|(zone, address)| ((*zone).to_owned(), *address)).collect();
    let mut kept = BTreeSet::new();
    let mut is_written = false;
    for member in &all {
        let Share::Source(address) = member.share else { continue };
        if is_leaving(&member.owner) {
            is_written = true;
            leaving.insert((member.word.clone(), address));
        } else {
            kept.insert(address);
        }
    }
    leaving.retain(|(_, address)| !kept.contains(address));
    // Where firewalld has gone, its sources have gone with it.
    if !leaving.is_empty()
        && let Some(mut firewalld) = Firewalld::find()?
    {
        for (zone, address) in leaving {
            firewalld.remove_source(&zone, address)?;
        }
    }
    if is_written { members::withdraw(kernel.nft()?, Kind::Sources, is_leaving) } else { Ok(()) }
}

impl Resource<Kernel> for Sources {
    fn describe(&self) -> String {
        format!("sources of firewalld's zone {} for {}", self.zone, display_name(&self.key))
    }

    fn belongs(&self) -> Belongs {
        Belongs::Attachment
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        if self.addresses.is_empty() {
            return Ok(Made::Found);
        }
        let mut firewalld = Firewalld::find()?.ok_or_else(|| {
            Error::unavailable("firewalld isn't running")
                .with_details("start it, or set backend to \"iptables\"")
        })?;
        self.enrol(kernel)?;
        for address in &self.addresses {
            if let Err(error) = firewalld.add_source(&self.zone, *address) {
                if let Err(left) = self.remove(kernel) {
                    log::warn!("could not take back {}: {left}", self.describe());
                }
                return Err(error);
            }
        }
        Ok(Made::Created)
    }

    fn check(&self, _: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let mut found = Vec::new();
        let firewalld = Firewalld::find()?;
        let Some(mut firewalld) = firewalld else {
            return Ok(vec![Difference::new("firewalld", "running", "not on the system bus")]);
        };
        for address in &self.addresses {
            if !firewalld.has_source(&self.zone, *address)? {
                let object = format!("source {address} in firewalld's zone {}", self.zone);
                found.push(Difference::missing(object));
            }
        }
        Ok(found)
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        let more: Vec<_> =
            self.addresses.iter().map(|address| (self.zone.as_str(), *address)).collect();
        remove(kernel, &|owner| *owner == self.owner, &more)
    }
}

/// Sources of attachments that are no more.
pub struct StaleSources;

impl Collection<Kernel> for StaleSources {
    fn describe(&self) -> String {
        "sources of firewalld's zones".to_owned()
    }

    fn stale(&self, kernel: &mut Kernel, valid: &Valid) -> Result<Plan<Kernel>, Error> {
        let members = members::all(kernel.nft()?, Kind::Sources).map_err(refused)?;
        let owners = members.iter().map(|member| member.owner);
        let stale: BTreeSet<_> = owners.filter(|owner| valid.is_stale(owner)).collect();
        if stale.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![Box::new(Stale(stale))])
    }
}

struct Stale(BTreeSet<OwnerMark>);

impl Resource<Kernel> for Stale {
    fn describe(&self) -> String {
        format!("firewalld's sources of {} dead attachments", self.0.len())
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
        remove(kernel, &|owner| self.0.contains(owner), &[])
    }
}
