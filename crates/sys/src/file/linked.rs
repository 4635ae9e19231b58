//! Creating a file that must be new, whole from its first moment.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::temporary::Temporary;
use crate::PathError;
use crate::error::at;

/// What [`create_linked`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linked {
    /// The file is new and holds the bytes given.
    Created,
    /// A file of this name was there and is untouched.
    AlreadyExists,
}

/// Creates `name` in `directory` with `bytes` in it, unless the name is taken.
///
/// The file gets its name only when its content is complete, so that no crash and
/// no full disk leaves an empty one (B002). It is not synced to the disk.
///
/// # Errors
/// `InvalidInput` for a name that isn't a plain file name; else what the kernel said.
pub fn create_linked(
    directory: &Path,
    name: &str,
    bytes: &[u8],
    mode: u32,
) -> Result<Linked, PathError> {
    plain_name(directory, name)?;
    Unnamed::write(directory, bytes, mode)?.link(name)
}

/// A complete file that has no name yet, for callers that try several: the content
/// is written once, each try is one call. Without a name it ends with its value.
#[derive(Debug)]
pub struct Unnamed<'a> {
    directory: &'a Path,
    bytes: &'a [u8],
    mode: u32,
    /// None on file systems that have no files without names.
    file: Option<OwnedFd>,
}

impl<'a> Unnamed<'a> {
    /// Writes the file.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn write(directory: &'a Path, bytes: &'a [u8], mode: u32) -> Result<Self, PathError> {
        let cannot = |error: &PathError| {
            error.errno().is_some_and(|raw| cannot_be_nameless(Errno::from_raw_os_error(raw)))
        };
        let file = match write_nameless(directory, bytes, mode) {
            Ok(file) => Some(file),
            Err(error) if cannot(&error) => None,
            Err(error) => return Err(error),
        };
        Ok(Self { directory, bytes, mode, file })
    }

    /// Gives it this name, unless the name is taken.
    ///
    /// # Errors
    /// As [`create_linked`].
    pub fn link(&self, name: &str) -> Result<Linked, PathError> {
        let target = plain_name(self.directory, name)?;
        let by_temporary_name =
            || by_temporary_name(self.directory, &target, self.bytes, self.mode);
        let Some(file) = &self.file else { return by_temporary_name() };
        match link_nameless(file, &target) {
            Ok(()) => Ok(Linked::Created),
            Err(Errno::EXIST) => Ok(Linked::AlreadyExists),
            Err(error) if cannot_be_nameless(error) => by_temporary_name(),
            Err(error) => Err(PathError::new("creating", target, error)),
        }
    }
}

/// Joins the two, refusing whatever would leave the directory.
fn plain_name(directory: &Path, name: &str) -> Result<PathBuf, PathError> {
    let target = directory.join(name);
    let stays = target.parent() == Some(directory) && target.file_name() == Some(name.as_ref());
    if stays && !name.contains('\0') {
        return Ok(target);
    }
    let reason = format!("{name:?} is not a plain file name");
    Err(PathError::new("creating", directory, io::Error::new(io::ErrorKind::InvalidInput, reason)))
}

/// A complete file without a name (`O_TMPFILE`).
fn write_nameless(directory: &Path, bytes: &[u8], mode: u32) -> Result<OwnedFd, PathError> {
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    let fd = rustix::fs::open(directory, flags, Mode::from_raw_mode(mode))
        .map_err(at("creating a file in", directory))?;
    let mut rest = bytes;
    while !rest.is_empty() {
        match rustix::io::write(&fd, rest) {
            Ok(0) => return Err(PathError::new("writing in", directory, Errno::IO)),
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(PathError::new("writing in", directory, error)),
        }
    }
    Ok(fd)
}

/// Gives a nameless file its name.
fn link_nameless(file: &OwnedFd, target: &Path) -> Result<(), Errno> {
    match rustix::fs::linkat(file, "", CWD, target, AtFlags::EMPTY_PATH) {
        // ENOENT without CAP_DAC_READ_SEARCH: the way by /proc needs no capability.
        Err(Errno::NOENT | Errno::PERM) => {
            let own = format!("/proc/self/fd/{}", file.as_raw_fd());
            rustix::fs::linkat(CWD, own, CWD, target, AtFlags::SYMLINK_FOLLOW)
        }
        other => other,
    }
}

/// Errors of file systems (and of hosts without /proc) that can't do it nameless;
/// EISDIR and ENOENT come from kernels that don't know the flag.
fn cannot_be_nameless(error: Errno) -> bool {
    matches!(error, Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::XDEV | Errno::PERM)
}

/// The same with a temporary name, for file systems without `O_TMPFILE`.
fn by_temporary_name(
    directory: &Path,
    target: &Path,
    bytes: &[u8],
    mode: u32,
) -> Result<Linked, PathError> {
    let temporary = Temporary::write(directory, bytes, mode)?;
    match temporary.link_to(target) {
        Ok(()) => Ok(Linked::Created),
        Err(Errno::EXIST) => Ok(Linked::AlreadyExists),
        Err(error) => Err(PathError::new("creating", target, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::regular_files;
    use crate::mount;

    #[test]
    fn the_first_wins_and_the_second_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let create =
            |text: &str| create_linked(directory.path(), "10.1.0.2", text.as_bytes(), 0o644);
        assert_eq!(create("one").unwrap(), Linked::Created);
        assert_eq!(create("two").unwrap(), Linked::AlreadyExists);
        let path = directory.path().join("10.1.0.2");
        assert_eq!(std::fs::read_to_string(path).unwrap(), "one");
        assert_eq!(regular_files(directory.path(), 10).unwrap(), ["10.1.0.2"]);
    }

    #[test]
    fn the_way_with_a_temporary_name_does_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("x");
        let create = |text: &[u8]| by_temporary_name(directory.path(), &target, text, 0o644);
        assert_eq!(create(b"one").unwrap(), Linked::Created);
        assert_eq!(create(b"two").unwrap(), Linked::AlreadyExists);
        assert_eq!(std::fs::read(&target).unwrap(), b"one");
        assert_eq!(regular_files(directory.path(), 10).unwrap(), ["x"]);
    }

    #[test]
    fn one_content_can_be_tried_under_several_names() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a"), "other").unwrap();
        let file = Unnamed::write(directory.path(), b"mine", 0o600).unwrap();
        assert_eq!(file.link("a").unwrap(), Linked::AlreadyExists);
        assert_eq!(file.link("b").unwrap(), Linked::Created);
        assert_eq!(std::fs::read(directory.path().join("b")).unwrap(), b"mine");
        drop(Unnamed::write(directory.path(), b"never named", 0o600).unwrap());
        assert_eq!(regular_files(directory.path(), 10).unwrap(), ["a", "b"]);
    }

    /// B002
    #[test]
    fn b002_of_many_writers_one_wins_and_no_reader_sees_an_empty_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                loop {
                    match std::fs::read(&path) {
                        Ok(bytes) => break bytes,
                        Err(error) => assert_eq!(error.kind(), io::ErrorKind::NotFound),
                    }
                }
            });
            let create = || create_linked(directory.path(), "x", b"whole", 0o644).unwrap();
            let writers: Vec<_> = (0..8).map(|_| scope.spawn(create)).collect();
            let results = writers.into_iter().map(|writer| writer.join().unwrap());
            assert_eq!(results.filter(|result| *result == Linked::Created).count(), 1);
            assert_eq!(reader.join().unwrap(), b"whole");
        });
    }

    /// B002, B088
    #[test]
    fn b002_a_full_disk_leaves_no_file() {
        std::thread::scope(|scope| {
            let work = || {
                let directory = tempfile::tempdir().unwrap();
                mount::enter_private_namespace().unwrap();
                mount::tmpfs_with(directory.path(), "size=16k").unwrap();
                let big = vec![b'x'; 64 << 10];
                let error = create_linked(directory.path(), "x", &big, 0o644).unwrap_err();
                assert_eq!(error.errno(), Some(libc::ENOSPC));
                assert!(regular_files(directory.path(), 10).unwrap().is_empty());
            };
            scope.spawn(work).join().unwrap();
        });
    }

    #[test]
    fn names_that_leave_the_directory_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["", ".", "..", "a/b", "/etc/x", "../x", "x/", "x\0y"] {
            let error = create_linked(directory.path(), name, b"x", 0o644).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name:?}");
        }
    }

    #[test]
    fn a_missing_directory_is_an_error() {
        let error = create_linked(Path::new("/none/here"), "x", b"x", 0o644).unwrap_err();
        assert!(error.is_missing(), "{error}");
    }
}
