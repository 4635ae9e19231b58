//! Whether files could be made somewhere, found out without making one.

use std::io;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, accessat, statvfs};
use rustix::io::Errno;

use crate::PathError;
use crate::error::at;

/// Whether a file could be made in `directory`: it, or the nearest directory above it that
/// there is, can be written, and its file system has a free block and a free inode.
///
/// # Errors
/// What stands in the way, and where: `ReadOnlyFilesystem`, `PermissionDenied`,
/// `NotADirectory`, `StorageFull`, or else what the kernel said.
pub fn room_for_files(directory: &Path) -> Result<(), PathError> {
    let action = "looking for room for files in";
    for place in directory.ancestors() {
        let place = if place.as_os_str().is_empty() { Path::new(".") } else { place };
        let refuse = |errno: Errno| Err(at(action, place)(errno));
        match accessat(CWD, place, Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty()) {
            Ok(()) if place.is_dir() => return has_room(place).map_err(at(action, place)),
            Ok(()) => return refuse(Errno::NOTDIR),
            Err(Errno::NOENT) => {}
            // A file that nobody may execute.
            Err(Errno::ACCESS) if place.is_file() => return refuse(Errno::NOTDIR),
            Err(error) => return refuse(error),
        }
    }
    Err(at(action, directory)(Errno::NOENT))
}

/// File systems that count neither blocks nor inodes say that they have none at all.
fn has_room(place: &Path) -> Result<(), io::Error> {
    let found = statvfs(place)?;
    let is_full = found.f_blocks > 0 && found.f_bfree == 0;
    let has_no_inode = found.f_files > 0 && found.f_ffree == 0;
    if is_full || has_no_inode { Err(Errno::NOSPC.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_directory_that_there_is_counts() {
        let directory = tempfile::tempdir().unwrap();
        room_for_files(directory.path()).unwrap();
        room_for_files(&directory.path().join("a/b")).unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        for path in [file.clone(), file.join("a")] {
            let error = room_for_files(&path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotADirectory, "{error}");
            assert!(error.to_string().contains("file"), "{error}");
        }
    }
}
