//! Whether two programs are the same one.

use std::io;
use std::path::{Path, PathBuf};

use crate::PathError;
use crate::error::at;

mod build_id;

pub use build_id::build_id;

/// The running program, whatever became of its name.
const OWN: &str = "/proc/self/exe";

/// Whether both paths lead to the same file: the same inode of the same device,
/// after symbolic links. Hard links of one file are the same.
///
/// # Errors
/// When one of them is missing or can't be looked at.
pub fn same_file(one: &Path, two: &Path) -> Result<bool, PathError> {
    let one = rustix::fs::stat(one).map_err(at("looking at", one))?;
    let two = rustix::fs::stat(two).map_err(at("looking at", two))?;
    Ok(one.st_dev == two.st_dev && one.st_ino == two.st_ino)
}

/// The path by which the running program was started, links resolved. It ends in
/// ` (deleted)` when the program was replaced meanwhile.
///
/// # Errors
/// When /proc is not there.
pub fn own_executable() -> io::Result<PathBuf> {
    std::fs::read_link(OWN)
}

/// Whether `path` is the running program: the same file, or a copy of it as told by
/// the linker's build id (image copies make new inodes).
///
/// # Errors
/// When the path is missing or can't be looked at.
pub fn is_own_executable(path: &Path) -> Result<bool, PathError> {
    let own = Path::new(OWN);
    if same_file(own, path)? {
        return Ok(true);
    }
    Ok(match build_id(own)? {
        Some(ours) => build_id(path)?.is_some_and(|theirs| theirs == ours),
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_the_same_and_copies_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        std::fs::write(file("one"), "x").unwrap();
        std::fs::hard_link(file("one"), file("hard")).unwrap();
        std::os::unix::fs::symlink("one", file("soft")).unwrap();
        std::fs::copy(file("one"), file("copy")).unwrap();
        assert!(same_file(&file("one"), &file("hard")).unwrap());
        assert!(same_file(&file("one"), &file("soft")).unwrap());
        assert!(!same_file(&file("one"), &file("copy")).unwrap());
        assert!(same_file(&file("one"), &file("none")).unwrap_err().is_missing());
    }

    #[test]
    fn we_know_ourselves() {
        assert!(is_own_executable(&own_executable().unwrap()).unwrap());
        assert!(!is_own_executable(Path::new("/bin/sh")).unwrap());
    }
}
