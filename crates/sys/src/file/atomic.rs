//! Replacing a file in one step.

use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::temporary::Temporary;
use crate::PathError;
use crate::error::at;

/// Whether content must outlive a crash of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// File and directory are on the disk when the call returns.
    Durable,
    /// The file is, its name perhaps not: for one that gets another name next, in a
    /// directory that the caller syncs.
    ContentDurable,
    /// Only a crash of the process is survived; for what a reboot makes worthless.
    Volatile,
}

/// How often a temporary file may be swept away under us.
const TRIES: u32 = 10;

/// Writes `bytes` to `path` so that a reader sees the old content or the new, never
/// a mixture or an empty file, also after a crash. The file has `mode` (less the
/// umask) from its first moment on; the directory must exist. A symbolic link at
/// `path` is replaced, not followed.
///
/// # Errors
/// What the kernel said; the old content is then still there, and no temporary file
/// is left, also when the disk is full (B088).
pub fn write_atomic(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    durability: Durability,
) -> Result<(), PathError> {
    let directory = directory_of(path);
    let mut tries = 1;
    loop {
        let temporary = Temporary::write(directory, bytes, mode)?;
        if durability != Durability::Volatile {
            temporary.sync()?;
        }
        match temporary.rename_to(path) {
            // The sweep of abandoned files came between creation and lock.
            Err(error) if error.is_missing() && tries < TRIES && directory.is_dir() => tries += 1,
            Err(error) => return Err(error),
            Ok(()) => break,
        }
    }
    if durability == Durability::Durable { sync_directory(directory) } else { Ok(()) }
}

/// The directory that holds `path`; `.` for a bare name.
pub(super) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Waits until the names in `directory` are on the disk.
pub(super) fn sync_directory(directory: &Path) -> Result<(), PathError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let handle =
        rustix::fs::open(directory, flags, Mode::empty()).map_err(at("opening", directory))?;
    rustix::fs::fsync(handle).map_err(at("syncing", directory))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::file::regular_files;
    use crate::mount;

    #[test]
    fn replaces_content_and_sets_the_mode() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record");
        for (text, durability) in [
            ("old", Durability::Volatile),
            ("newer", Durability::ContentDurable),
            ("new", Durability::Durable),
        ] {
            write_atomic(&path, text.as_bytes(), 0o600, durability).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(regular_files(directory.path(), 10).unwrap(), ["record"]);
    }

    #[test]
    fn a_symbolic_link_is_replaced_and_its_target_untouched() {
        let directory = tempfile::tempdir().unwrap();
        let (target, path) = (directory.path().join("target"), directory.path().join("link"));
        std::fs::write(&target, "untouched").unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        write_atomic(&path, b"new", 0o600, Durability::Volatile).unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "untouched");
        assert!(std::fs::symlink_metadata(&path).unwrap().is_file());
    }

    #[test]
    fn the_longest_name_works() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("n".repeat(255));
        write_atomic(&path, b"x", 0o600, Durability::Volatile).unwrap();
        assert!(path.exists());
    }

    /// B088
    #[test]
    fn b088_a_full_disk_leaves_the_old_content_and_no_temporary_file() {
        std::thread::scope(|scope| {
            let work = || {
                let directory = tempfile::tempdir().unwrap();
                mount::enter_private_namespace().unwrap();
                mount::tmpfs_with(directory.path(), "size=16k").unwrap();
                let path = directory.path().join("record");
                write_atomic(&path, b"old", 0o600, Durability::Durable).unwrap();
                let big = vec![b'x'; 64 << 10];
                let error = write_atomic(&path, &big, 0o600, Durability::Durable).unwrap_err();
                assert_eq!(error.errno(), Some(libc::ENOSPC));
                assert!(error.to_string().contains("No space left"), "{error}");
                assert_eq!(std::fs::read(&path).unwrap(), b"old");
                assert_eq!(regular_files(directory.path(), 10).unwrap(), ["record"]);
                mount::set_read_only(directory.path(), true).unwrap();
                let error = write_atomic(&path, b"x", 0o600, Durability::Durable).unwrap_err();
                assert_eq!(error.errno(), Some(libc::EROFS));
            };
            scope.spawn(work).join().unwrap();
        });
    }

    #[test]
    fn a_missing_directory_is_named() {
        let error =
            write_atomic(Path::new("/none/here/x"), b"", 0o600, Durability::Durable).unwrap_err();
        assert!(error.is_missing());
        assert!(error.to_string().contains("/none/here"), "{error}");
    }
}
