//! One call at a time for an attachment, across processes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use podwire_spec::error::Error;
use podwire_sys::lock::FileLock;

use crate::attachment::Attachment;
use crate::inventory::Valid;
use crate::owner::OwnerMark;

/// How long one call waits for another on the same attachment.
const WAIT: Duration = Duration::from_secs(8);

/// One file per attachment, there only while a call runs, or after one that was
/// killed.
const DIRECTORY: &str = "/run/podwire/plugin";

/// How the files' names end, behind the owner mark.
const SUFFIX: &str = ".lock";

/// A lock whose file goes when the call ends, so that nothing is left of an
/// attachment.
pub(crate) struct TransientLock(Option<FileLock>);

impl Drop for TransientLock {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.0.take().map(FileLock::remove) {
            log::debug!("the lock file stays: {error}");
        }
    }
}

/// Locks an attachment until the call ends; delegates don't inherit it.
///
/// A runtime that can't write the lock directory (rootless) serializes calls
/// itself; the call goes on without.
///
/// # Errors
/// Code 11 that names the call that is still running.
pub(crate) fn lock(attachment: &Attachment) -> Result<Option<TransientLock>, Error> {
    let path = PathBuf::from(DIRECTORY).join(format!("{}{SUFFIX}", attachment.owner));
    match FileLock::exclusive(&path, WAIT) {
        Ok(lock) => Ok(Some(TransientLock(Some(lock)))),
        Err(error) if error.is_timed_out() => Err(Error::try_again(format!(
            "another call for interface {} of container {} on network {} is still running: {error}",
            attachment.ifname(),
            attachment.container_id(),
            attachment.network()
        ))),
        Err(error) => {
            log::debug!("no lock for this call: {error}");
            Ok(None)
        }
    }
}

/// Removes the lock files that killed calls have left of attachments which are
/// no more.
pub(crate) fn sweep(valid: &Valid) {
    sweep_in(Path::new(DIRECTORY), valid);
}

fn sweep_in(directory: &Path, valid: &Valid) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let mark = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
        let mark = mark.and_then(OwnerMark::from_comment);
        if mark.is_some_and(|mark| valid.is_stale(&mark))
            && let Ok(lock) = FileLock::exclusive(entry.path(), Duration::ZERO)
        {
            // One that stays costs an empty file, and only until the next boot.
            let _ = lock.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podwire_spec::id::NetworkName;

    #[test]
    fn only_idle_files_of_dead_attachments_of_the_network_are_swept() {
        let directory = tempfile::tempdir().unwrap();
        let [network, other] = ["n1", "n2"].map(|name| NetworkName::parse(name).unwrap());
        let path = |network: &NetworkName, container: &str| {
            let mark = OwnerMark::new(network, container, "eth0");
            directory.path().join(format!("{mark}{SUFFIX}"))
        };
        for name in [path(&network, "dead"), path(&network, "live"), path(&other, "dead")] {
            std::fs::write(name, "").unwrap();
        }
        std::fs::write(directory.path().join("README"), "").unwrap();
        let busy = FileLock::exclusive(path(&network, "busy"), Duration::ZERO).unwrap();
        sweep_in(directory.path(), &Valid::new(&network, [("live", "eth0")]));
        assert!(!path(&network, "dead").exists());
        assert!(path(&network, "live").exists() && path(&other, "dead").exists());
        assert!(busy.path().exists() && directory.path().join("README").exists());
        sweep_in(&directory.path().join("missing"), &Valid::new(&network, []));
    }
}
