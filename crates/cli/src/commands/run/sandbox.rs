//! The namespace of a `podwire run`, and the traces by which the next one
//! finds what a killed one left.

use std::path::{Path, PathBuf};
use std::time::Duration;

use podwire_runtime::{Attachment, Runtime, RuntimeError, Source};
use podwire_spec::error::Error;
use podwire_spec::id::ContainerId;
use podwire_sys::file::{Durability, write_atomic};
use podwire_sys::lock::{FileLock, LockError};
use podwire_sys::netns::NamedNetNs;

use crate::failure::Failure;
use crate::output;

/// Where namespaces are bound, so that `ip netns` shows them.
const NAMESPACES: &str = "/run/netns";
/// A lock file for each `podwire run`, held as long as it or its command runs.
const RUNS: &str = "/run/podwire/run";
/// What the names of our namespaces begin with.
const PREFIX: &str = "podwire-";
/// The ending of the resolver files among the lock files.
const RESOLVER: &str = ".resolv.conf";

/// A fresh namespace with its id.
#[derive(Debug)]
pub(super) struct Sandbox {
    id: ContainerId,
    path: PathBuf,
    lock: FileLock,
}

impl Sandbox {
    /// Makes a namespace; under a random id if none is given.
    pub(super) fn create(id: Option<&ContainerId>) -> Result<Self, Failure> {
        let id = match id {
            Some(id) => id.clone(),
            None => {
                let random = podwire_sys::random::hex()
                    .map_err(|error| Error::internal(format!("no random id: {error}")))?;
                ContainerId::parse(&format!("run-{random}"))?
            }
        };
        let lock = FileLock::exclusive(Path::new(RUNS).join(id.as_str()), Duration::ZERO)
            .map_err(|error| not_locked(&id, &error))?;
        let path = namespace_path(&id);
        match NamedNetNs::create(&path) {
            Ok(_) => Ok(Self { id, path, lock }),
            Err(error) => {
                // The first error is the one to report.
                let _ = lock.remove();
                Err(error.into())
            }
        }
    }

    /// The container id.
    pub(super) fn id(&self) -> &ContainerId {
        &self.id
    }

    /// Where the namespace is bound.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The lock that tells others that the run lives.
    pub(super) fn lock(&self) -> &FileLock {
        &self.lock
    }

    /// Writes what is to be `/etc/resolv.conf`; gives its path.
    pub(super) fn write_resolver(&self, text: &str) -> Result<PathBuf, Failure> {
        let path = resolver_path(&self.id);
        write_atomic(&path, text.as_bytes(), 0o644, Durability::Volatile)?;
        Ok(path)
    }

    /// Takes the namespace away. What still runs in it keeps it, bare of
    /// networks.
    pub(super) fn remove(self) -> Result<(), Failure> {
        clear(&self.id, self.lock)
    }
}

fn not_locked(id: &ContainerId, error: &LockError) -> Error {
    if error.is_timed_out() {
        Error::try_again(format!("a `podwire run` with id {id} is there: {error}"))
            .with_details("give another --container-id")
    } else {
        Error::io(format!("{error}")).with_details(
            "`podwire run` keeps its files below /run; without root, begin with: \
             unshare -Urnm, mount -t tmpfs none /run",
        )
    }
}

/// Removes what earlier runs left that were killed: attachments, namespaces,
/// files. What can't be removed now is told and left for the next one.
pub(super) fn sweep(runtime: &Runtime) {
    let Ok(entries) = std::fs::read_dir(RUNS) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(id) = name.to_str().filter(|name| !name.ends_with(RESOLVER)) else { continue };
        let Ok(id) = ContainerId::parse(id) else { continue };
        // Held: it, or its command, still runs.
        let Ok(lock) = FileLock::exclusive(entry.path(), Duration::ZERO) else { continue };
        let removed = detach(runtime, &id).map_err(Failure::from).and_then(|()| clear(&id, lock));
        if let Err(failure) = removed {
            let error = failure.to_cni_error();
            output::warn(&format!("a killed `podwire run` left {id}, which stays: {error}"));
        }
    }
}

/// Detaches all that is recorded of a container.
fn detach(runtime: &Runtime, id: &ContainerId) -> Result<(), RuntimeError> {
    for stored in runtime.store().list()?.attachments {
        let key = stored.record.key;
        if key.container_id == *id {
            let attachment = Attachment::new(key.container_id.clone(), key.ifname.clone());
            runtime.del(&key.network, &attachment, Source::Recorded)?;
        }
    }
    Ok(())
}

fn clear(id: &ContainerId, lock: FileLock) -> Result<(), Failure> {
    NamedNetNs::remove(namespace_path(id))?;
    match std::fs::remove_file(resolver_path(id)) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            return Err(Failure::System { action: "removing", path: resolver_path(id), source });
        }
        _ => {}
    }
    Ok(lock.remove()?)
}

fn namespace_path(id: &ContainerId) -> PathBuf {
    Path::new(NAMESPACES).join(format!("{PREFIX}{id}"))
}

fn resolver_path(id: &ContainerId) -> PathBuf {
    Path::new(RUNS).join(format!("{id}{RESOLVER}"))
}
