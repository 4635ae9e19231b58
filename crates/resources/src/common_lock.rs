//! Locks on what several attachments share, held inside one call.
//!
//! A call holds one of them at most, and they come after the lock on its own
//! attachment; the order stands in ARCHITECTURE.md.

use std::time::Duration;

use podwire_spec::error::Error;
use podwire_sys::lock::{FileLock, LockError};

/// How long a call waits for another one.
pub(crate) const WAIT: Duration = Duration::from_secs(8);

/// Waits until nobody else is `doing` what the file at `path` stands for.
///
/// # Errors
/// As [`granted`].
pub(crate) fn alone(path: &str, doing: &str) -> Result<Option<FileLock>, Error> {
    granted(FileLock::exclusive(path, WAIT), doing)
}

/// The lock, or none where its directory can't be written: a runtime that can't
/// (rootless) serializes calls itself.
///
/// # Errors
/// Code 11 that names the holder when the wait was in vain.
pub(crate) fn granted(
    lock: Result<FileLock, LockError>,
    doing: &str,
) -> Result<Option<FileLock>, Error> {
    match lock {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if error.is_timed_out() => Err(Error::try_again(format!("{doing}: {error}"))),
        Err(error) => {
            log::debug!("{doing} without a lock: {error}");
            Ok(None)
        }
    }
}
