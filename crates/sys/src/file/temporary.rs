//! Temporary files beside their target, and what a crash leaves of them.
//!
//! The writer holds a lock on its temporary file. One that can be locked therefore
//! belongs to no living writer and may be removed.

use std::ffi::OsStr;
use std::io;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::PathError;
use crate::error::at;

const PREFIX: &str = ".podwire-";
const SUFFIX: &str = ".tmp";

/// Whether a file of this name is one of our temporary files. Whoever lists a
/// directory of state must skip them.
pub fn is_temporary_name(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes())
}

/// Removes the temporary files that killed processes left in `directory`; those
/// of living writers stay. Returns how many went. A missing directory is fine.
///
/// # Errors
/// When the directory can't be listed or a file can't be removed.
pub fn remove_abandoned_temporaries(directory: &Path) -> Result<usize, PathError> {
    let mut removed = 0;
    for name in super::regular_files(directory, usize::MAX)? {
        if !is_temporary_name(&name) {
            continue;
        }
        let path = directory.join(&name);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => continue,
            Err(error) => return Err(PathError::new("opening", &path, error)),
        };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => continue,
            Err(error) => return Err(PathError::new("locking", &path, error)),
        }
        match rustix::fs::unlink(&path) {
            Ok(()) => removed += 1,
            Err(Errno::NOENT) => {}
            Err(error) => return Err(PathError::new("removing", &path, error)),
        }
    }
    Ok(removed)
}

/// A file under a temporary name, removed when dropped unless it was placed.
pub(super) struct Temporary {
    path: PathBuf,
    file: std::fs::File,
    placed: bool,
}

impl Temporary {
    /// Makes a new file in `directory` and writes `bytes` to it.
    pub(super) fn write(directory: &Path, bytes: &[u8], mode: u32) -> Result<Self, PathError> {
        let name = crate::random::hex().map_err(at("naming a temporary file in", directory))?;
        let path = directory.join(format!("{PREFIX}{name}{SUFFIX}"));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let fd = rustix::fs::open(&path, flags, Mode::from_raw_mode(mode))
            .map_err(at("creating", &path))?;
        let mut temporary = Self { path, file: fd.into(), placed: false };
        temporary.fill(bytes).map_err(at("writing", &temporary.path))?;
        Ok(temporary)
    }

    fn fill(&mut self, bytes: &[u8]) -> io::Result<()> {
        match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            // Held by a sweep that came between: the file has lost its name, which
            // the placing notices.
            Ok(()) | Err(Errno::WOULDBLOCK) => {}
            Err(error) => return Err(error.into()),
        }
        self.file.write_all(bytes)
    }

    /// Waits until content and metadata are on the disk.
    pub(super) fn sync(&self) -> Result<(), PathError> {
        self.file.sync_all().map_err(at("syncing", &self.path))
    }

    /// Puts the file at `target`, replacing what is there.
    pub(super) fn rename_to(mut self, target: &Path) -> Result<(), PathError> {
        rustix::fs::rename(&self.path, target).map_err(at("putting in place", target))?;
        self.placed = true;
        Ok(())
    }

    /// Gives the file the further name `target`, which must be free; the temporary
    /// name goes when this value is dropped.
    pub(super) fn link_to(&self, target: &Path) -> Result<(), Errno> {
        rustix::fs::link(&self.path, target)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.placed {
            // A leftover is harmless and found by `remove_abandoned_temporaries`.
            let _ = rustix::fs::unlink(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abandoned_files_go_and_those_in_use_stay() {
        let directory = tempfile::tempdir().unwrap();
        let living = Temporary::write(directory.path(), b"in use", 0o600).unwrap();
        let dead = directory.path().join(".podwire-0011223344556677.tmp");
        std::fs::write(&dead, "half").unwrap();
        let other = directory.path().join("10.1.0.2");
        std::fs::write(&other, "kept").unwrap();
        assert_eq!(remove_abandoned_temporaries(directory.path()).unwrap(), 1);
        assert!(!dead.exists());
        assert!(living.path.exists());
        assert!(other.exists());
        drop(living);
        assert_eq!(super::super::regular_files(directory.path(), 10).unwrap(), ["10.1.0.2"]);
        assert_eq!(remove_abandoned_temporaries(&directory.path().join("none")).unwrap(), 0);
    }

    #[test]
    fn only_our_names_are_temporary() {
        assert!(is_temporary_name(OsStr::new(".podwire-00.tmp")));
        for name in [".podwire", "podwire-00.tmp", "10.0.0.1", ".podwire-x"] {
            assert!(!is_temporary_name(OsStr::new(name)), "{name}");
        }
    }
}
