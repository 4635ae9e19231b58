//! Whether there is a place to keep what will be changed.

use std::path::Path;

use podwire_spec::error::Error;
use podwire_sys::file::room_for_files;

/// Whether files can be made in a directory: it, or what is there of the way
/// to it, can be written and has room.
///
/// # Errors
/// Code 50 that names the place.
pub(super) fn can_keep(directory: &Path) -> Result<(), Error> {
    room_for_files(directory).map_err(|error| {
        let directory = directory.display();
        Error::unavailable(format!("dataDir {directory} can't be written: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_to_be_made_needs_one_that_can_be_written() {
        let directory = tempfile::tempdir().unwrap();
        can_keep(directory.path()).unwrap();
        can_keep(&directory.path().join("a/b")).unwrap();
        std::fs::write(directory.path().join("file"), "").unwrap();
        let error = can_keep(&directory.path().join("file/a")).unwrap_err();
        assert!(error.code.number() == 50 && error.msg.contains("file"), "{error}");
    }
}
