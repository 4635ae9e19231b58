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
//! ADDs that overlap without end would never let GC in, so it has a turn: while
//! it waits it holds the network's turnstile, a third file, which ADD, DEL and
//! CHECK pass, without staying in it, on their way to the network's lock. GC stays
//! there for half of its wait at most: behind an ADD that takes longer than that it
//! waits as before, and nobody is kept out until their own limit.
//!
//! Every wait is bounded. The network's shared lock is handed to the plugins:
//! when the runtime is killed, GC still waits for a plugin that goes on.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use podwire_spec::id::{ContainerId, NetworkName};
use podwire_sys::lock::{FileLock, LockError, Sharing};

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

    /// Holds a network for an ADD or DEL, beside others, once no GC waits for it.
    pub(crate) fn network_shared(&self, name: &NetworkName) -> Result<NetworkLock, RuntimeError> {
        let what = || format!("network \"{name}\"");
        let (path, turnstile) = (self.network_path(name), self.turnstile_path(name));
        let started = Instant::now();
        FileLock::pass(&turnstile, self.wait).map_err(|error| failed(what(), turnstile, &error))?;
        FileLock::acquire_since(started, &path, Sharing::Shared, self.wait)
            .map(NetworkLock)
            .map_err(|error| failed(what(), path, &error))
    }

    /// Holds a network for GC, alone.
    pub(crate) fn network_exclusive(
        &self,
        name: &NetworkName,
    ) -> Result<NetworkLock, RuntimeError> {
        let path = self.network_path(name);
        let started = Instant::now();
        let within = |wait| FileLock::acquire_since(started, &path, Sharing::Exclusive, wait);
        within(Duration::ZERO)
            .or_else(
                |error| if error.is_timed_out() { self.in_turn(name, within) } else { Err(error) },
            )
            .or_else(|error| if error.is_timed_out() { within(self.wait) } else { Err(error) })
            .map(NetworkLock)
            .map_err(|error| failed(format!("network \"{name}\""), path.clone(), &error))
    }

    /// Waits while nobody new comes in. Without the turnstile, because its file can't
    /// be made or other GCs are before us, it is waiting as usual.
    fn in_turn(
        &self,
        name: &NetworkName,
        within: impl Fn(Duration) -> Result<FileLock, LockError>,
    ) -> Result<FileLock, LockError> {
        let turn = self.wait / 2;
        let turnstile = FileLock::exclusive(self.turnstile_path(name), turn).ok();
        let lock = within(turn);
        if let Some(turnstile) = turnstile {
            // A file that stays holds nobody up; the next GC removes it.
            let _ = turnstile.remove();
        }
        lock
    }

    /// Removes the network's lock files if nobody holds them, so that a network
    /// that is gone leaves nothing, nor a GC that was killed. Whoever waits for them
    /// notices.
    pub(crate) fn tidy_network(&self, name: &NetworkName) {
        for path in [self.network_path(name), self.turnstile_path(name)] {
            if path.exists()
                && let Ok(lock) = FileLock::exclusive(&path, Duration::ZERO)
            {
                // One that stays costs an empty file.
                let _ = lock.remove();
            }
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

    fn turnstile_path(&self, name: &NetworkName) -> PathBuf {
        self.directory.join("turnstile").join(name.as_str())
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
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::sync::mpsc;

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

    /// B019: there is never a moment without an ADD, and still GC has its turn.
    #[test]
    fn b019_gc_has_its_turn_behind_adds_without_end() {
        let directory = tempfile::tempdir().unwrap();
        let locks =
            Locks::new(Some(directory.path().into()), directory.path(), Duration::from_secs(8));
        let name = NetworkName::parse("net").unwrap();
        let (stop, turns) = (AtomicBool::new(false), AtomicU32::new(0));
        let (one, at_one) = mpsc::channel();
        let (two, at_two) = mpsc::channel();
        // Each keeps the network until the other has it, too, or can't have it.
        let add = |other: mpsc::Sender<()>, own: mpsc::Receiver<()>| {
            while !stop.load(Ordering::SeqCst) {
                let _held = locks.network_shared(&name).unwrap();
                turns.fetch_add(1, Ordering::SeqCst);
                let _ = other.send(());
                let _ = own.recv_timeout(Duration::from_millis(300));
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| add(two, at_one));
            scope.spawn(|| {
                at_two.recv().unwrap();
                add(one, at_two);
            });
            while turns.load(Ordering::SeqCst) < 20 {
                std::thread::yield_now();
            }
            let alone = locks.network_exclusive(&name);
            stop.store(true, Ordering::SeqCst);
            alone.unwrap();
        });
        assert!(!locks.turnstile_path(&name).exists());
    }

    #[test]
    fn nobody_fails_behind_a_gc_that_waits_for_a_slow_add() {
        let directory = tempfile::tempdir().unwrap();
        let wait = Duration::from_secs(3);
        let locks = Locks::new(Some(directory.path().into()), directory.path(), wait);
        let name = NetworkName::parse("net").unwrap();
        let slow = locks.network_shared(&name).unwrap();
        let turnstile = locks.turnstile_path(&name);
        std::thread::scope(|scope| {
            let collecting = scope.spawn(|| locks.network_exclusive(&name));
            while FileLock::pass(&turnstile, Duration::ZERO).is_ok() {
                assert!(!collecting.is_finished());
                std::thread::yield_now();
            }
            locks.network_shared(&name).unwrap();
            assert!(!collecting.is_finished(), "it goes on waiting, without keeping others out");
            let text = collecting.join().unwrap().unwrap_err().to_string();
            assert!(text.contains("waited 3.0") && text.contains("network/net"), "{text}");
        });
        assert!(!turnstile.exists());
        drop(slow);
        // What a killed GC leaves is an empty file that holds nobody up.
        fs::write(&turnstile, "").unwrap();
        drop(locks.network_shared(&name).unwrap());
        locks.tidy_network(&name);
        assert!(!turnstile.exists() && !directory.path().join("network/net").exists());
    }
}
