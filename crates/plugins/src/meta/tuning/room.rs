//! Whether there is a place to keep what will be changed.

use std::path::Path;

use podwire_spec::error::Error;
use rustix::fs::{Access, access};
use rustix::io::Errno;

/// Whether files can be made in a directory: it, or what is there of the way
/// to it, can be written.
///
/// # Errors
/// Code 50 that names the place.
pub(super) fn can_keep(directory: &Path) -> Result<(), Error> {
    for place in directory.ancestors().filter(|place| !place.as_os_str().is_empty()) {
        match access(place, Access::WRITE_OK | Access::EXEC_OK) {
            Ok(()) if place.is_dir() => return Ok(()),
            Err(Errno::NOENT) => {}
            outcome => {
                let reason = outcome.err().unwrap_or(Errno::NOTDIR);
                return Err(Error::unavailable(format!(
                    "dataDir {} can't be written: {}: {reason}",
                    directory.display(),
                    place.display()
                )));
            }
        }
    }
    Ok(())
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
