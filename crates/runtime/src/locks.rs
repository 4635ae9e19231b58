//! Who may work on what at the same time, across processes (B019).
//!
//! The specification forbids parallel operations on one container, also on
//! different attachments of it, and any ADD or DEL beside a GC of the same
//! network. So there are two families of lock files: one per container,
//! always exclusive; one per network, shared for ADD and DEL, exclusive for
//! GC. Only these two families exist here; plugins have their own, elsewhere.
//!
//! Order: ADD, DEL and CHECK take the container's lock first, then the
//! network's. GC holds the network's and then takes those of stale containers,
//! each with a short wait only, since a holder may itself wait for the
//! network: who can't be locked is at work, so is not collected.
//!
//! Every wait is bounded. The network's shared lock is handed to the plugins:
//! when the runtime is killed, GC still waits for a plugin that goes on.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use podwire_spec::id::{ContainerId, NetworkName};
use podwire_sys::lock::{FileLock, LockError};

use crate::error::RuntimeError;

/// Where lock files lie unless another directory is named.
pub(crate) const DEFAULT_DIRECTORY: &str = "/run/podwire/runtime";

/// How long GC waits for a container that someone works on.
const GC_CONTAINER_WAIT: Duration = Duration::from_millis(500);

/// The lock files of one node.
#[derive(Clone, Debug)]
pub(crate) struct Locks {
    directory: PathBuf,
    wait: Duration,
}

/// Holds one container until dropped.
#[derive(Debug)]
pub(crate) struct ContainerLock(FileLock);

/// Holds one network, shared or exclusively, until dropped.
#[derive(Debug)]
pub(crate) struct NetworkLock(FileLock);

impl Locks {
    /// `directory` as it is given; without one `/run/podwire/runtime`, or
    /// `podwire/locks` in the cache directory where that may not be written
    /// (a read-only or foreign `/run`). A passing fault doesn't change the
    /// place: all processes of the node must choose the same.
    pub(crate) fn new(directory: Option<PathBuf>, cache: &Path, wait: Duration) -> Self {
        let directory = directory.unwrap_or_else(|| {
            let usual = PathBuf::from(DEFAULT_DIRECTORY);
            match podwire_sys::file::create_dir_all(&usual, 0o700) {
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
                    ) =>
                {
                    cache.join("podwire").join("locks")
                }
                _ => usual,
            }
        });
        Self { directory, wait }
    }

    /// Holds a container for an operation on one of its attachments.
    pub(crate) fn container(&self, id: &ContainerId) -> Result<ContainerLock, RuntimeError> {
        self.container_within(id, self.wait)
    }

    /// The same for GC, which doesn't wait long.
    pub(crate) fn container_for_gc(&self, id: &ContainerId) -> Result<ContainerLock, RuntimeError> {
        self.container_within(id, GC_CONTAINER_WAIT.min(self.wait))
    }

    fn container_within(
        &self,
        id: &ContainerId,
        wait: Duration,
    ) -> Result<ContainerLock, RuntimeError> {
        let path = self.directory.join("container").join(id.as_str());
        FileLock::exclusive(&path, wait)
            .map(ContainerLock)
            .map_err(|error| failed(format!("container \"{id}\""), path, &error))
    }

    /// Holds a network for an ADD or DEL, beside others.
    pub(crate) fn network_shared(&self, name: &NetworkName) -> Result<NetworkLock, RuntimeError> {
        let path = self.network_path(name);
        FileLock::shared(&path, self.wait)
            .map(NetworkLock)
            .map_err(|error| failed(format!("network \"{name}\""), path, &error))
    }

    /// Holds a network for GC, alone.
    pub(crate) fn network_exclusive(
        &self,
        name: &NetworkName,
    ) -> Result<NetworkLock, RuntimeError> {
        let path = self.network_path(name);
        FileLock::exclusive(&path, self.wait)
            .map(NetworkLock)
            .map_err(|error| failed(format!("network \"{name}\""), path, &error))
    }

    /// Removes the network's lock file if nobody holds it, so that a network
    /// that is gone leaves nothing. Whoever waits for it notices.
    pub(crate) fn tidy_network(&self, name: &NetworkName) {
        let path = self.network_path(name);
        if path.exists()
            && let Ok(_lock) = FileLock::exclusive(&path, Duration::ZERO)
        {
            let _ = fs::remove_file(&path);
        }
    }

    /// Removes the lock files of containers that nobody works on: those of
    /// containers that are gone and whose last operation was killed, which no
    /// DEL will come for, and those of others, which are made again when needed.
    pub(crate) fn tidy_containers(&self) {
        let Ok(entries) = fs::read_dir(self.directory.join("container")) else { return };
        for entry in entries.flatten() {
            if let Ok(lock) = FileLock::exclusive(entry.path(), Duration::ZERO) {
                // One that stays costs an empty file.
                let _ = lock.remove();
            }
        }
    }

    fn network_path(&self, name: &NetworkName) -> PathBuf {
        self.directory.join("network").join(name.as_str())
    }
}

impl ContainerLock {
    /// Releases the lock and removes its file: the container is gone.
    pub(crate) fn retire(self) {
        // While it is held, so that nobody can lock the file in between; who
        // has it open already sees that it lost its name and opens anew.
        let _ = fs::remove_file(self.0.path());
    }
}

impl NetworkLock {
    /// What plugins inherit.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn failed(what: String, path: PathBuf, error: &LockError) -> RuntimeError {
    if error.is_timed_out() {
        RuntimeError::Locked { what, reason: error.to_string() }
    } else {
        RuntimeError::Lock { path, reason: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locks(directory: &Path) -> Locks {
        Locks::new(Some(directory.to_owned()), directory, Duration::from_millis(20))
    }

    #[test]
    fn b019_one_container_is_exclusive_and_others_are_free() {
        let directory = tempfile::tempdir().unwrap();
        let locks = locks(directory.path());
        let one = ContainerId::parse("one").unwrap();
        let held = locks.container(&one).unwrap();
        let error = locks.container(&one).unwrap_err();
        assert!(matches!(error, RuntimeError::Locked { .. }));
        let text = error.to_string();
        assert!(text.contains("container \"one\"") && text.contains("pid"), "{text}");
        locks.container(&ContainerId::parse("two").unwrap()).unwrap();
        held.retire();
        assert!(!directory.path().join("container/one").exists());
        locks.container(&one).unwrap();
    }

    #[test]
    fn lock_files_of_killed_operations_go_and_held_ones_stay() {
        let directory = tempfile::tempdir().unwrap();
        let locks = locks(directory.path());
        let id = |name: &str| ContainerId::parse(name).unwrap();
        let held = locks.container(&id("held")).unwrap();
        drop(locks.container(&id("killed")).unwrap());
        locks.tidy_containers();
        assert!(directory.path().join("container/held").exists());
        assert!(!directory.path().join("container/killed").exists());
        held.retire();
        locks.tidy_containers();
    }

    #[test]
    fn gc_waits_for_adds_and_they_for_gc() {
        let directory = tempfile::tempdir().unwrap();
        let locks = locks(directory.path());
        let name = NetworkName::parse("net").unwrap();
        let first = locks.network_shared(&name).unwrap();
        let second = locks.network_shared(&name).unwrap();
        assert!(locks.network_exclusive(&name).is_err());
        locks.tidy_network(&name);
        assert!(directory.path().join("network/net").exists(), "it is held");
        drop((first, second));
        let collecting = locks.network_exclusive(&name).unwrap();
        assert!(locks.network_shared(&name).is_err());
        drop(collecting);
        locks.tidy_network(&name);
        assert!(!directory.path().join("network/net").exists());
    }
}
