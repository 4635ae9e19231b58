//! Who is measured.

use std::path::PathBuf;

/// One implementation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Our plugins in this directory.
    Podwire(PathBuf),
    /// The Go plugins in this directory.
    Go(PathBuf),
    /// The floor program.
    Floor(PathBuf),
}

impl Subject {
    /// The column's head.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Podwire(_) => "podwire",
            Self::Go(_) => "go",
            Self::Floor(_) => "floor",
        }
    }

    /// The directory of its plugins, if it has any.
    pub fn plugins(&self) -> Option<&PathBuf> {
        match self {
            Self::Podwire(directory) | Self::Go(directory) => Some(directory),
            Self::Floor(_) => None,
        }
    }
}
