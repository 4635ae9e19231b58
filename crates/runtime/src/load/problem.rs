//! Why a configuration file can't be used: a warning for a listing, an error
//! for whoever asked for what may be in it.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use podwire_spec::config::ConfigError;
use podwire_spec::error::ErrorCode;
use podwire_spec::json::Position;

use super::files::is_being_written;

/// One file or directory that can't be used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file or directory.
    pub path: PathBuf,
    /// Where in it, if there is one place.
    pub position: Option<Position>,
    /// What is wrong.
    pub reason: String,
    /// What to do about it; empty if the reason says all.
    pub hint: String,
    /// It ends in the middle and was written to only a moment ago: another
    /// try may find it whole.
    pub being_written: bool,
}

impl Problem {
    pub(super) fn new(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            position: None,
            reason: reason.into(),
            hint: String::new(),
            being_written: false,
        }
    }

    pub(super) fn io(path: impl Into<PathBuf>, error: &std::io::Error) -> Self {
        Self::new(path, error.to_string())
    }

    /// A configuration that can't be loaded, read from `bytes`.
    pub(super) fn config(path: &Path, error: ConfigError, bytes: &[u8]) -> Self {
        Self {
            path: path.to_owned(),
            position: error.position,
            reason: error.error.msg,
            hint: error.error.details,
            being_written: is_being_written(path, bytes),
        }
    }

    /// Whether the file is simply not there any more.
    pub(super) fn is_gone(&self) -> bool {
        std::fs::symlink_metadata(&self.path)
            .is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }

    /// The CNI code that fits: 11 if another try may help, else 7.
    pub fn code(&self) -> ErrorCode {
        if self.being_written { ErrorCode::TryAgainLater } else { ErrorCode::InvalidConfiguration }
    }
}

impl fmt::Display for Problem {
    /// `file:line:column: reason (hint)`, as compilers print it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.path.display())?;
        if let Some(position) = self.position {
            write!(formatter, ":{}:{}", position.line, position.column)?;
        }
        write!(formatter, ": {}", self.reason)?;
        if self.being_written {
            formatter.write_str(" (it is being written; try again)")
        } else if self.hint.is_empty() {
            Ok(())
        } else {
            write!(formatter, " ({})", self.hint)
        }
    }
}

impl std::error::Error for Problem {}
