//! The error of an operation on a path.

use std::io;
use std::path::{Path, PathBuf};

/// An operation on a file, directory or mount that the kernel refused.
///
/// Displayed as `writing /var/lib/cni/results/x: No space left on device (os error 28)`.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {}: {source}", path.display())]
pub struct PathError {
    /// What was tried, as a gerund: `writing`, `renaming`.
    pub operation: &'static str,
    /// The object of the operation.
    pub path: PathBuf,
    /// The kernel's answer.
    pub source: io::Error,
}

impl PathError {
    /// Names `operation` and `path` for an error that the kernel gave.
    pub fn new(
        operation: &'static str,
        path: impl AsRef<Path>,
        source: impl Into<io::Error>,
    ) -> Self {
        Self { operation, path: path.as_ref().to_owned(), source: source.into() }
    }

    /// The kind of the kernel's answer.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// Whether the object, or a directory on the way to it, does not exist.
    pub fn is_missing(&self) -> bool {
        is_missing(&self.source)
    }

    /// The errno, when the kernel gave one.
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }
}

impl From<PathError> for io::Error {
    fn from(error: PathError) -> Self {
        io::Error::new(error.source.kind(), error)
    }
}

/// Whether an error says that the object or a parent of it is not there.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Makes the usual closure for `map_err`.
pub(crate) fn at<E: Into<io::Error>>(
    operation: &'static str,
    path: &Path,
) -> impl FnOnce(E) -> PathError {
    move |error| PathError::new(operation, path, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_operation_path_and_reason() {
        let error = PathError::new("writing", "/x/y", io::Error::from_raw_os_error(libc::ENOSPC));
        assert_eq!(error.to_string(), "writing /x/y: No space left on device (os error 28)");
        assert_eq!(error.errno(), Some(libc::ENOSPC));
        assert!(!error.is_missing());
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_file_in_place_of_a_directory_counts_as_missing() {
        assert!(
            PathError::new("opening", "/x", io::Error::from_raw_os_error(libc::ENOTDIR))
                .is_missing()
        );
    }
}
