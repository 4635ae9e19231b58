//! Directories: making, listing, setting files aside.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, RenameFlags};
use rustix::io::Errno;

use crate::PathError;
use crate::error::{at, is_missing};

/// The longest file name of Linux file systems, in bytes.
const NAME_MAX: usize = 255;

/// Makes `path` and what is missing above it, each with `mode` (less the umask).
/// Directories that exist keep theirs.
///
/// # Errors
/// What the kernel said, also when something else is at the path.
pub fn create_dir_all(path: &Path, mode: u32) -> Result<(), PathError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)
        .map_err(at("making the directory", path))
}

/// Refuses a symbolic link in place of a directory of state, unless root or our
/// own user put it there: in a directory that others may write to (`/tmp`),
/// anybody could make us write wherever a link leads. What isn't there, or is no
/// link, is fine.
///
/// # Errors
/// `PermissionDenied` that names the link's owner; else what the kernel said.
pub fn refuse_foreign_link(path: &Path) -> Result<(), PathError> {
    let stat = match rustix::fs::lstat(path) {
        Ok(stat) => stat,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        Err(error) => return Err(PathError::new("looking at", path, error)),
    };
    let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
    if !is_link || stat.st_uid == 0 || stat.st_uid == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let reason = format!("it is a symbolic link of user {}, who may not lead us", stat.st_uid);
    Err(PathError::new("using", path, io::Error::new(io::ErrorKind::PermissionDenied, reason)))
}

/// The names of the plain files in `directory`, sorted; links, directories and
/// special files are left out. A missing directory has none.
///
/// # Errors
/// `FileTooLarge` when it has more than `limit` entries of any kind; else what the
/// kernel said.
pub fn regular_files(directory: &Path, limit: usize) -> Result<Vec<OsString>, PathError> {
    let mut names = Vec::new();
    let mut budget = limit;
    for entry in entries(directory, &mut budget)? {
        if entry.kind.is_file() {
            names.push(entry.name);
        }
    }
    Ok(names)
}

/// The paths of the plain files in `root` and, `depth` levels down, in the
/// directories below it, sorted. Links are not followed. A missing root has none.
///
/// # Errors
/// `FileTooLarge` when there are more than `limit` entries in all; else what the
/// kernel said.
pub fn walk_regular_files(
    root: &Path,
    depth: usize,
    limit: usize,
) -> Result<Vec<PathBuf>, PathError> {
    let mut budget = limit;
    let mut found = Vec::new();
    let mut pending = vec![(root.to_owned(), depth)];
    while let Some((directory, depth)) = pending.pop() {
        for entry in entries(&directory, &mut budget)? {
            let path = directory.join(entry.name);
            if entry.kind.is_file() {
                found.push(path);
            } else if entry.kind.is_dir() && depth > 0 {
                pending.push((path, depth - 1));
            }
        }
    }
    found.sort();
    Ok(found)
}

struct Entry {
    name: OsString,
    kind: std::fs::FileType,
}

/// All entries, sorted by name; each takes one from the budget.
fn entries(directory: &Path, budget: &mut usize) -> Result<Vec<Entry>, PathError> {
    let listing = match std::fs::read_dir(directory) {
        Ok(listing) => listing,
        Err(error) if is_missing(&error) => return Ok(Vec::new()),
        Err(error) => return Err(PathError::new("listing", directory, error)),
    };
    let mut entries = Vec::new();
    for entry in listing {
        let entry = entry.map_err(at("listing", directory))?;
        *budget = budget.checked_sub(1).ok_or_else(|| {
            let reason = io::Error::new(io::ErrorKind::FileTooLarge, "it has too many entries");
            PathError::new("listing", directory, reason)
        })?;
        match entry.file_type() {
            Ok(kind) => entries.push(Entry { name: entry.file_name(), kind }),
            // Removed since it was listed.
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(PathError::new("looking at", entry.path(), error)),
        }
    }
    entries.sort_by(|one, two| one.name.cmp(&two.name));
    Ok(entries)
}

/// Moves a file that can't be understood into `directory` (made with 0700), under
/// its own name and a suffix, and returns its new path. Nothing is overwritten.
///
/// # Errors
/// What the kernel said; also when `directory` is on another file system.
pub fn quarantine(path: &Path, directory: &Path) -> Result<PathBuf, PathError> {
    create_dir_all(directory, 0o700)?;
    let suffix = format!(".{}", crate::random::hex().map_err(at("setting aside", path))?);
    let name = path.file_name().unwrap_or(OsStr::new("unnamed")).as_encoded_bytes();
    let kept = name.get(..NAME_MAX - suffix.len()).unwrap_or(name);
    let mut target = std::os::unix::ffi::OsStringExt::from_vec(kept.to_vec());
    OsString::push(&mut target, &suffix);
    let target = directory.join(target);
    rustix::fs::renameat_with(CWD, path, CWD, &target, RenameFlags::NOREPLACE)
        .map_err(at("setting aside", path))?;
    Ok(target)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn sample() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("n1/deep")).unwrap();
        for name in ["b", "a", "n1/c", "n1/deep/d"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        std::os::unix::fs::symlink("a", directory.path().join("link")).unwrap();
        directory
    }

    #[test]
    fn lists_plain_files_sorted() {
        let directory = sample();
        assert_eq!(regular_files(directory.path(), 4).unwrap(), ["a", "b"]);
        assert!(regular_files(&directory.path().join("none"), 4).unwrap().is_empty());
        let error = regular_files(directory.path(), 3).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn walks_as_deep_as_asked() {
        let directory = sample();
        let walk = |depth, limit| walk_regular_files(directory.path(), depth, limit);
        let names = |depth| {
            let files = walk(depth, 100).unwrap();
            let names = files.iter().map(|file| file.strip_prefix(directory.path()).unwrap());
            names.map(|name| name.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(0), ["a", "b"]);
        assert_eq!(names(1), ["a", "b", "n1/c"]);
        assert_eq!(names(2), ["a", "b", "n1/c", "n1/deep/d"]);
        assert_eq!(walk(2, 5).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn made_directories_have_the_mode_and_existing_ones_keep_theirs() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b");
        create_dir_all(&path, 0o700).unwrap();
        create_dir_all(&path, 0o755).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(create_dir_all(&file, 0o700).is_err());
    }

    #[test]
    fn a_file_set_aside_keeps_content_and_name() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["torn".to_owned(), "n".repeat(255)] {
            let path = directory.path().join(&name);
            std::fs::write(&path, "{half").unwrap();
            let target = quarantine(&path, &directory.path().join("quarantine")).unwrap();
            assert!(!path.exists());
            assert_eq!(std::fs::read_to_string(&target).unwrap(), "{half");
            let kept = name.get(..200).unwrap_or(&name);
            assert!(target.file_name().unwrap().to_str().unwrap().starts_with(kept));
        }
        let missing = quarantine(&directory.path().join("none"), directory.path());
        assert!(missing.unwrap_err().is_missing());
    }
}
