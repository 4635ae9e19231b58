//! Versions of the CNI specification: the seven that exist, and the tolerant
//! reading of a version that decides gates and selection.

use std::fmt;

use crate::error::Error;

/// A published version of the CNI specification, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(non_camel_case_types, reason = "the underscores stand for the dots of the version")]
pub enum SpecVersion {
    /// 0.1.0: what an absent or empty version stands for.
    V0_1_0,
    /// 0.2.0: the VERSION operation.
    V0_2_0,
    /// 0.3.0: results with interfaces and several addresses, plugin lists.
    V0_3_0,
    /// 0.3.1: a correction of 0.3.0's text.
    V0_3_1,
    /// 0.4.0: CHECK.
    V0_4_0,
    /// 1.0.0: no version in addresses, no configuration outside lists.
    V1_0_0,
    /// 1.1.0: GC, STATUS, `cniVersions`.
    V1_1_0,
}

/// Versions whose results have one shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// 0.1.0 and 0.2.0: one `ip4` and one `ip6`.
    Oldest,
    /// 0.3.0, 0.3.1 and 0.4.0: lists, each address with its own `version`.
    Middle,
    /// 1.0.0 and 1.1.0.
    Newest,
}

impl SpecVersion {
    /// The newest version.
    pub const LATEST: Self = Self::V1_1_0;

    /// Every version, oldest first.
    pub const ALL: [Self; 7] = [
        Self::V0_1_0,
        Self::V0_2_0,
        Self::V0_3_0,
        Self::V0_3_1,
        Self::V0_4_0,
        Self::V1_0_0,
        Self::V1_1_0,
    ];

    /// As it is written in `cniVersion`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V0_1_0 => "0.1.0",
            Self::V0_2_0 => "0.2.0",
            Self::V0_3_0 => "0.3.0",
            Self::V0_3_1 => "0.3.1",
            Self::V0_4_0 => "0.4.0",
            Self::V1_0_0 => "1.0.0",
            Self::V1_1_0 => "1.1.0",
        }
    }

    /// The version written exactly so. Peers compare versions as text, so
    /// `1` or `1.0` is none of them; the empty text is 0.1.0.
    pub fn parse_known(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::V0_1_0);
        }
        Self::ALL.into_iter().find(|version| version.as_str() == text)
    }

    /// The published version with these numbers, however it was written.
    pub fn from_numbers(numbers: VersionNumbers) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.numbers() == numbers)
    }

    /// The three numbers.
    pub const fn numbers(self) -> VersionNumbers {
        let (major, minor, patch) = match self {
            Self::V0_1_0 => (0, 1, 0),
            Self::V0_2_0 => (0, 2, 0),
            Self::V0_3_0 => (0, 3, 0),
            Self::V0_3_1 => (0, 3, 1),
            Self::V0_4_0 => (0, 4, 0),
            Self::V1_0_0 => (1, 0, 0),
            Self::V1_1_0 => (1, 1, 0),
        };
        VersionNumbers { major, minor, patch }
    }

    /// Which shape results of this version have.
    pub const fn family(self) -> Family {
        match self {
            Self::V0_1_0 | Self::V0_2_0 => Family::Oldest,
            Self::V0_3_0 | Self::V0_3_1 | Self::V0_4_0 => Family::Middle,
            Self::V1_0_0 | Self::V1_1_0 => Family::Newest,
        }
    }
}

impl fmt::Display for SpecVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Any version, known or not, as three numbers: what the gates of CHECK, GC
/// and STATUS and the choice among `cniVersions` compare.
///
/// Reads what the Go implementation reads: empty is 0.1.0, missing parts are
/// zero, a part may carry a sign or leading zeros; a prefix `v`, a
/// pre-release or a fourth part is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionNumbers {
    /// The first part.
    pub major: i64,
    /// The second part; 0 when absent.
    pub minor: i64,
    /// The third part; 0 when absent.
    pub patch: i64,
}

impl VersionNumbers {
    /// Reads a version.
    ///
    /// # Errors
    /// Code 6, naming the text, if it isn't one to three numbers with dots.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Ok(SpecVersion::V0_1_0.numbers());
        }
        let mut numbers = [0_i64; 3];
        let mut slots = numbers.iter_mut();
        for part in text.split('.') {
            let slot = slots.next().ok_or_else(|| not_a_version(text, "more than three parts"))?;
            *slot = part.parse().map_err(|_| not_a_version(text, "a part is not a number"))?;
        }
        let [major, minor, patch] = numbers;
        Ok(Self { major, minor, patch })
    }
}

impl fmt::Display for VersionNumbers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl From<SpecVersion> for VersionNumbers {
    fn from(version: SpecVersion) -> Self {
        version.numbers()
    }
}

fn not_a_version(text: &str, why: &str) -> Error {
    Error::decode(format!("cniVersion {text:?} is not a version: {why}"))
        .with_details("write one of 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_versions_are_compared_as_text() {
        for version in SpecVersion::ALL {
            assert_eq!(SpecVersion::parse_known(version.as_str()), Some(version));
            assert_eq!(SpecVersion::from_numbers(version.numbers()), Some(version));
        }
        assert_eq!(SpecVersion::parse_known(""), Some(SpecVersion::V0_1_0));
        for text in ["1", "1.0", "v1.0.0", "1.0.0 ", "1.2.0", "01.0.0", "1.0.0-rc1"] {
            assert_eq!(SpecVersion::parse_known(text), None, "{text}");
        }
        assert!(SpecVersion::ALL.is_sorted());
    }

    #[test]
    fn numbers_are_read_as_the_go_implementation_reads_them() {
        let read = |text| VersionNumbers::parse(text).map(|numbers| numbers.to_string());
        assert_eq!(read("").unwrap(), "0.1.0");
        assert_eq!(read("1").unwrap(), "1.0.0");
        assert_eq!(read("0.3").unwrap(), "0.3.0");
        assert_eq!(read("+1.01.0").unwrap(), "1.1.0");
        for text in ["abc", "v1.0.0", "1.0.0.0", "1.0.0-rc1", "1..0", ".", "1.", " 1", "1e3"] {
            assert_eq!(read(text).unwrap_err().code.number(), 6, "{text}");
        }
        assert!(VersionNumbers::parse("2.0.0").unwrap() > SpecVersion::LATEST.numbers());
    }
}
