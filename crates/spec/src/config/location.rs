//! An error in a configuration and where it is.

use std::fmt;

use crate::error::Error;
use crate::json::{Position, SyntaxError};

/// Why a configuration can't be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Where in its text; `None` if it is about something that isn't there.
    pub position: Option<Position>,
    /// What is wrong, without the place.
    pub error: Error,
}

impl ConfigError {
    /// An error about a part borrowed from `text`.
    pub(super) fn at(text: &str, part: &str, error: Error) -> Self {
        Self { position: Position::of(text, part), error }
    }

    /// The error with `FILE:LINE:COLUMN: ` in front, as compilers write it.
    pub fn in_file(self, file: impl fmt::Display) -> Error {
        match self.position {
            Some(Position { line, column }) => {
                self.error.context(format_args!("{file}:{line}:{column}"))
            }
            None => self.error.context(file),
        }
    }

    /// The same with words in front of the message.
    pub(super) fn context(mut self, doing: impl fmt::Display) -> Self {
        self.error = self.error.context(doing);
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(position) => write!(formatter, "{position}: {}", self.error),
            None => self.error.fmt(formatter),
        }
    }
}

impl std::error::Error for ConfigError {}

impl From<Error> for ConfigError {
    fn from(error: Error) -> Self {
        Self { position: None, error }
    }
}

impl From<SyntaxError> for ConfigError {
    fn from(error: SyntaxError) -> Self {
        Self {
            position: Some(error.position),
            error: Error::decode(error.reason).with_details(error.hint),
        }
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        match error.position {
            Some(position) => error.error.context(position),
            None => error.error,
        }
    }
}
