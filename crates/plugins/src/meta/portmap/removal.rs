//! Removing what an owner has, found by the mark alone.

use std::collections::BTreeMap;

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{Batch, ElementValue, IpVersion, NftSocket};
use podwire_plugin::{Belongs, Difference, Made, OwnerMark, Resource};
use podwire_resources::Kernel;
use podwire_resources::nft::{owner_of, owners, push_unused_chain, retrying};
use podwire_spec::Error;

use super::connections;
use super::forwarding::Held;
use super::layout::{self, VERSIONS};
use super::set_mark;

/// Whether the same batch makes the owner's objects anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// It does.
    Yes,
    /// They go for good.
    No,
}

/// Adds the removal of all that the owner has to a batch; the batch must
/// require the generation that was current before. Nothing is added when
/// there is nothing, and an element is only taken if its comment names the
/// owner: the port may have gone to somebody else since (B035, B020).
pub(super) fn push(
    socket: &mut NftSocket,
    batch: &mut Batch,
    owner: &OwnerMark,
    again: Again,
) -> Result<Vec<Held>, NetlinkError> {
    let mut all = Vec::new();
    for version in VERSIONS {
        let id = layout::table(version);
        let Some(record) = owners::read(socket, id, owner)? else { continue };
        let held = Held::read(&record, owner);
        let leaving = push_elements(socket, batch, version, owner, &held)?;
        batch.delete_elements(id.set(owners::NAME), &record.entries);
        if again == Again::No {
            for (chain, elements) in leaving {
                push_unused_chain(socket, batch, id.chain(&chain), elements)?;
            }
        }
        if held.marked {
            set_mark::push_removal(socket, batch, version, owner, again)?;
        }
        all.push(held);
    }
    Ok(all)
}

/// Adds the deletion of an owner's elements; says which chains they lead to, and
/// how many to each.
fn push_elements(
    socket: &mut NftSocket,
    batch: &mut Batch,
    version: IpVersion,
    owner: &OwnerMark,
    held: &Held,
) -> Result<BTreeMap<String, u32>, NetlinkError> {
    let id = layout::table(version);
    let mut keys = held.keys();
    keys.sort_by(|one, other| (&one.0, &one.1.key).cmp(&(&other.0, &other.1.key)));
    keys.dedup();
    let mut own = Vec::with_capacity(keys.len());
    let mut leaving: BTreeMap<String, u32> = BTreeMap::new();
    for (map, key) in keys {
        let found = socket.element(id.set(&map), &key)?;
        if let Some(found) = found.filter(|found| owner_of(&found.userdata) == Some(*owner)) {
            if let Some(ElementValue::Verdict(verdict)) = &found.value
                && let Some(chain) = verdict.chain()
            {
                *leaving.entry(chain.to_owned()).or_default() += 1;
            }
            own.push((map, key));
        }
    }
    for group in own.chunk_by(|one, other| one.0 == other.0) {
        if let Some((map, _)) = group.first() {
            batch.delete_elements(id.set(map), group.iter().map(|(_, key)| key));
        }
    }
    Ok(leaving)
}

/// Removes all that the owner has, and the connections that it led.
pub(super) fn remove(kernel: &mut Kernel, owner: &OwnerMark) -> Result<(), Error> {
    let socket = kernel.nft()?;
    let all = retrying(|| {
        // Before anything is looked at, and asked for only if there is
        // something: a container without mappings costs two questions.
        let mut batch = Batch::new();
        let generation = socket.generation()?;
        let all = push(socket, &mut batch, owner, Again::No)?;
        if !batch.is_empty() {
            batch.require_generation(generation);
            socket.commit(&batch)?;
        }
        Ok(all)
    });
    let all = match all {
        // A kernel without nftables holds nothing of ours.
        Err(error) if error.code.number() == 999 && no_nftables(socket) => return Ok(()),
        other => other?,
    };
    for held in all {
        if let Some(address) = held.address {
            connections::forget(kernel, address, &held.mappings);
        }
    }
    Ok(())
}

fn no_nftables(socket: &mut NftSocket) -> bool {
    socket.generation().is_err_and(|error| error.is_unsupported())
}

/// What garbage collection found of a dead attachment.
pub(super) struct Stale(pub(super) OwnerMark);

impl Resource<Kernel> for Stale {
    fn describe(&self) -> String {
        format!("port mappings of the dead attachment {}", self.0)
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
        remove(kernel, &self.0)
    }
}
