//! Garbage collection of kept originals.
//!
//! A file of the Go plugin names container and interface, but not the network:
//! whether it is stale can't be known from the attachments of one network, so
//! it stays until its DEL or the next boot.

use std::path::PathBuf;

use podwire_plugin::{Belongs, Collection, Difference, Made, Plan, Resource, Valid};
use podwire_spec::error::Error;
use podwire_sys::file::regular_files;

use super::backup::{self, SUFFIX};
use crate::kernel::Kernel;

/// More files than a node has attachments.
const LIMIT: usize = 100_000;

/// The files in a directory.
pub struct Backups(
    /// The directory.
    pub PathBuf,
);

struct Stale(PathBuf);

impl Collection<Kernel> for Backups {
    fn describe(&self) -> String {
        "original attributes of interfaces".to_owned()
    }

    fn stale(&self, _: &mut Kernel, valid: &Valid) -> Result<Plan<Kernel>, Error> {
        backup::sweep(&self.0);
        let names = regular_files(&self.0, LIMIT).map_err(|error| Error::io(error.to_string()))?;
        let mut plan: Plan<Kernel> = Vec::new();
        let mut unowned = 0;
        for name in names {
            if !name.as_encoded_bytes().ends_with(SUFFIX.as_bytes()) {
                continue;
            }
            let path = self.0.join(name);
            match backup::read(&path) {
                Ok(Some(stored)) => match stored.owner {
                    Some(owner) if valid.is_stale(&owner) => plan.push(Box::new(Stale(path))),
                    Some(_) => {}
                    None => unowned += 1,
                },
                Ok(None) => {}
                Err(error) => log::warn!("left alone: {error}"),
            }
        }
        if unowned > 0 {
            log::info!("{unowned} files in {} name no network and stay", self.0.display());
        }
        Ok(plan)
    }
}

impl Resource<Kernel> for Stale {
    fn describe(&self) -> String {
        format!("backup {}", self.0.display())
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

    fn remove(&self, _: &mut Kernel) -> Result<(), Error> {
        backup::remove(&self.0)
    }
}
