//! A locked pool with its index: the one place where reservations are made
//! and freed, so that file and index entry stay together.
//!
//! What each kind of call may do to the index:
//! - ADD keeps it, and is the only one to begin one for a new boot, since
//!   that frees what [`super::reboot`] proves dead;
//! - DEL and GC keep the one of this boot; without one they read the files;
//! - CHECK only reads.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use podwire_spec::id::NetworkName;
use podwire_sys::PathError;
use podwire_sys::boot::{self, BootId};
use podwire_sys::file::{self, Linked, Unnamed};
use podwire_sys::lock::{FileLock, LockError};

use super::index::{Entry, Index};
use super::pool::{Pool, Reservation};
use super::reboot;
use super::reservation::Owner;

/// Mode of the directories that only Podwire uses.
const OWN_DIRECTORY: u32 = 0o700;

/// What a call is going to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Reserve addresses.
    Allocate,
    /// Free addresses.
    Free,
    /// Change nothing.
    Look,
}

/// Why a pool can't be worked on.
#[derive(Debug, thiserror::Error)]
pub(super) enum LedgerError {
    /// The lock was held for too long, or its file is unusable.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file or directory.
    #[error(transparent)]
    Path(#[from] PathError),
}

/// Where the indexes of a network are.
pub(super) fn index_directory(data_dir: &Path, network: &NetworkName) -> PathBuf {
    data_dir.join(".podwire").join(network.as_str())
}

/// A locked pool and what is known of it.
#[derive(Debug)]
pub(super) struct Ledger {
    pool: Pool,
    // Held until the ledger is dropped, and after its index was sealed.
    _lock: Option<FileLock>,
    known: Known,
    /// Whether something changed since the index was sealed.
    changed: bool,
}

/// What is known of the reservations.
#[derive(Debug)]
enum Known {
    /// Everything is in the index.
    Indexed(Index),
    /// Everything was read.
    Read(Vec<Reservation>),
    /// Nothing: the index could not be kept, and is not sealed any more.
    Nothing,
}

impl Ledger {
    /// Locks a pool and learns what is in it.
    pub(super) fn open(pool: Pool, data_dir: &Path, purpose: Purpose) -> Result<Self, LedgerError> {
        let lock = pool.lock()?;
        let boot = boot::boot_id().ok();
        let directory = index_directory(data_dir, pool.network());
        let path = boot.as_ref().map(|boot| directory.join(boot.as_str()));
        let index = path.as_deref().and_then(Index::open);
        let begun = index.is_some();
        let ledger = |pool, known| Self { pool, _lock: lock, known, changed: false };
        if let Some(index) = index
            && index.seal() == pool.changed()?
        {
            return Ok(ledger(pool, Known::Indexed(index)));
        }
        let read = pool.reservations()?;
        let mut ledger = ledger(pool, Known::Read(read));
        let (Some(boot), Some(path)) = (boot, path) else { return Ok(ledger) };
        match purpose {
            Purpose::Allocate if !begun => {
                ledger.free_outdated(&directory, &boot)?;
                if ledger.write_index(&path) {
                    sweep(&directory, &boot);
                }
            }
            Purpose::Allocate | Purpose::Free if begun => {
                ledger.write_index(&path);
            }
            _ => {}
        }
        Ok(ledger)
    }

    /// The directory.
    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The addresses that an owner holds.
    pub(super) fn held_by(&self, owner: &Owner) -> Result<Vec<Reservation>, PathError> {
        let hints = match &self.known {
            Known::Indexed(index) => index.lookup(owner.hash()).ok(),
            Known::Read(_) | Known::Nothing => None,
        };
        let Some(hints) = hints else {
            return Ok(self.all()?.into_iter().filter(|one| one.owner == *owner).collect());
        };
        let mut held = Vec::new();
        for hint in hints {
            held.extend(self.pool.read(hint)?.filter(|one| one.owner == *owner));
        }
        Ok(held)
    }

    /// All reservations.
    pub(super) fn all(&self) -> Result<Vec<Reservation>, PathError> {
        match &self.known {
            Known::Read(all) => Ok(all.clone()),
            Known::Indexed(_) | Known::Nothing => self.pool.reservations(),
        }
    }

    /// Reserves an address, unless it is taken. `prepared` holds the owner's
    /// content.
    pub(super) fn reserve(
        &mut self,
        prepared: &Unnamed<'_>,
        address: IpAddr,
        owner: &Owner,
    ) -> Result<Linked, PathError> {
        if prepared.link(&address.to_string())? == Linked::AlreadyExists {
            return Ok(Linked::AlreadyExists);
        }
        self.changed = true;
        let kept = match &mut self.known {
            Known::Indexed(index) => index.insert((owner.hash(), address)).is_ok(),
            Known::Read(all) => {
                let modified = std::time::SystemTime::now();
                all.push(Reservation { address, owner: owner.clone(), modified });
                true
            }
            Known::Nothing => true,
        };
        self.forget_index_unless(kept);
        Ok(Linked::Created)
    }

    /// Frees an address of an owner.
    pub(super) fn free(&mut self, reservation: &Reservation) -> Result<(), PathError> {
        let Reservation { address, owner, .. } = reservation;
        self.pool.free(*address)?;
        self.changed = true;
        let kept = match &mut self.known {
            Known::Indexed(index) => index.remove((owner.hash(), *address)).is_ok(),
            Known::Read(all) => {
                all.retain(|one| one.address != *address);
                true
            }
            Known::Nothing => true,
        };
        self.forget_index_unless(kept);
        Ok(())
    }

    /// An index that could not be changed must not be sealed.
    fn forget_index_unless(&mut self, kept: bool) {
        if !kept {
            self.known = Known::Nothing;
        }
    }

    /// Frees what was reserved before this boot.
    fn free_outdated(&mut self, directory: &Path, boot: &BootId) -> Result<(), PathError> {
        let Known::Read(all) = &self.known else { return Ok(()) };
        let outdated = reboot::outdated(directory, boot, all);
        for reservation in &outdated {
            self.free(reservation)?;
            log::info!(
                "freed {} of network {}, reserved for {} before this boot",
                reservation.address,
                self.pool.network(),
                reservation.owner
            );
        }
        Ok(())
    }

    /// Writes all that was read into a new index and says whether that went
    /// well. Going without is only slower, so a full disk is no error here.
    fn write_index(&mut self, path: &Path) -> bool {
        let Known::Read(all) = &self.known else { return true };
        let entries: Vec<Entry> =
            all.iter().map(|reservation| (reservation.owner.hash(), reservation.address)).collect();
        let made = path.parent().is_some_and(|parent| {
            // `.podwire` and the network's part of it.
            let mut ours = parent.ancestors().take(2);
            if let Some(error) = ours.find_map(|path| file::refuse_foreign_link(path).err()) {
                log::warn!("no index is kept: {error}");
                return false;
            }
            // What a killed writer left.
            let _ = file::remove_abandoned_temporaries(parent);
            file::create_dir_all(parent, OWN_DIRECTORY).is_ok()
        });
        let Some(index) = made.then(|| Index::create(path, &entries).ok()).flatten() else {
            return false;
        };
        self.known = Known::Indexed(index);
        self.changed = true;
        self.seal();
        true
    }

    fn seal(&mut self) {
        if let Known::Indexed(index) = &mut self.known
            && self.changed
            && let Some(mark) = self.pool.mark()
        {
            // Without it the next call reads the files.
            let _ = index.set_seal(mark);
        }
        self.changed = false;
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.seal();
        }
    }
}

/// Removes the indexes of other boots, which have served.
fn sweep(directory: &Path, boot: &BootId) {
    for (path, other) in reboot::indexes(directory) {
        if other != *boot {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
