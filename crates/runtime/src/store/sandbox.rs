//! Which namespace an attachment was made in, beside its record.
//!
//! libcni's record has the path alone, and by now another container's namespace may
//! be there, or that of another boot. So a file of our own tells boot and namespace,
//! and which record that is about: one that libcni has written since is another.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use podwire_sys::file::{Durability, read_bounded, write_atomic};
use podwire_sys::netns::{Identity, NetNs};

use super::store_error;
use crate::error::RuntimeError;

/// Longer than any such file.
const LIMIT: usize = 4096;

/// The record that a file is about, as it was written: length and time of change.
fn mark(record: &Metadata) -> String {
    format!("{} {}.{:09}", record.len(), record.mtime(), record.mtime_nsec())
}

/// Writes down which namespace is at `netns` now, for the record that lies at
/// `record`. Where that can't be told, nothing is written.
///
/// # Errors
/// If the file can't be written.
pub(super) fn write(path: &Path, netns: &str, record: &Path) -> Result<(), RuntimeError> {
    let Some(identity) = NetNs::open(netns).ok().and_then(|netns| netns.identity()) else {
        return Ok(());
    };
    let record = std::fs::metadata(record).map_err(super::failed("looking at", record))?;
    let text = format!("{}\n{identity}\n", mark(&record));
    write_atomic(path, text.as_bytes(), 0o600, Durability::Durable)
        .map_err(|error| store_error("writing", path, error))
}

/// What the file at `path` says of a record; `None` if it is about another, torn, or
/// not there: it proves nothing then.
pub(super) fn read(path: &Path, record: &Path) -> Option<Identity> {
    let bytes = read_bounded(path, LIMIT).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (about, identity) = text.strip_suffix('\n')?.split_once('\n')?;
    let record = std::fs::metadata(record).ok()?;
    (about == mark(&record)).then(|| identity.parse().ok())?
}
