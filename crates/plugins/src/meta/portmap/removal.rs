//! Removing what an owner has, found by the mark alone.

use podwire_netlink::nft::{Batch, NftSocket};
use podwire_plugin::{Belongs, Difference, Made, OwnerMark, Resource};
use podwire_resources::Kernel;
use podwire_resources::nft::retrying;
use podwire_spec::Error;

use super::connections;
use super::departure::Departure;
use super::layout::VERSIONS;
use super::structure::Structure;

/// Removes all that the owner has, and the connections that it led.
pub(super) fn remove(kernel: &mut Kernel, owner: &OwnerMark) -> Result<(), Error> {
    let socket = kernel.nft()?;
    let all = retrying(|| {
        // Before anything is looked at, and asked for only if there is
        // something: a container without mappings costs two questions.
        let mut batch = Batch::new();
        let generation = socket.generation()?;
        let mut all = Vec::new();
        for version in VERSIONS {
            let mut departure = Departure::new(version);
            if let Some(held) = departure.owner(socket, &mut batch, owner, None)? {
                let structure = Structure::observe(socket, version)?;
                departure.push(socket, &mut batch, &structure, None)?;
                all.push(held);
            }
        }
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
