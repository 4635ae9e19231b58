//! The six operations of the protocol (specification, section 2).

use std::fmt;

use crate::version::SpecVersion;

/// What a runtime asks of a plugin: the value of `CNI_COMMAND`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Attach a container, or change an attachment.
    Add,
    /// Undo an attachment; succeeds when nothing is left to undo.
    Del,
    /// Compare what is with what should be.
    Check,
    /// Say whether an ADD could be served now.
    Status,
    /// Remove what belongs to no valid attachment.
    Gc,
    /// List the supported versions.
    Version,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 6] =
        [Self::Add, Self::Del, Self::Check, Self::Status, Self::Gc, Self::Version];

    /// The value of `CNI_COMMAND`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::Del => "DEL",
            Self::Check => "CHECK",
            Self::Status => "STATUS",
            Self::Gc => "GC",
            Self::Version => "VERSION",
        }
    }

    /// The operation written exactly so; `add` is none.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.as_str() == text)
    }

    /// The oldest version of the specification that has the operation.
    pub const fn since(self) -> SpecVersion {
        match self {
            Self::Add | Self::Del => SpecVersion::V0_1_0,
            Self::Version => SpecVersion::V0_2_0,
            Self::Check => SpecVersion::V0_4_0,
            Self::Status | Self::Gc => SpecVersion::V1_1_0,
        }
    }

    /// Whether it is about one attachment, so that container, interface and
    /// (but for DEL) namespace must be named.
    pub const fn concerns_attachment(self) -> bool {
        matches!(self, Self::Add | Self::Del | Self::Check)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_exact() {
        for operation in Operation::ALL {
            assert_eq!(Operation::parse(operation.as_str()), Some(operation));
        }
        for text in ["", "add", "Add", "ADD ", "FOO"] {
            assert_eq!(Operation::parse(text), None, "{text:?}");
        }
    }
}
