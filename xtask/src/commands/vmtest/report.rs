//! The lines by which the guest reports to the host, between whatever else is
//! written to the serial line.

use std::fmt;

/// What every line of the report begins with.
const MARK: &str = "@vm ";

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    /// The guest has started; its kernel.
    Up {
        /// As `uname -r` says it.
        release: String,
    },
    /// A test has passed.
    Passed {
        /// Its suite and name.
        name: String,
        /// How long it took.
        milliseconds: u128,
    },
    /// A test has failed; what it said stands in the lines before.
    Failed {
        /// Its suite and name.
        name: String,
        /// How long it took.
        milliseconds: u128,
    },
    /// All tests have ended.
    End,
}

impl fmt::Display for Line {
    fn fmt(&self, output: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Up { release } => write!(output, "{MARK}up {release}"),
            Self::Passed { name, milliseconds } => {
                write!(output, "{MARK}passed {milliseconds} {name}")
            }
            Self::Failed { name, milliseconds } => {
                write!(output, "{MARK}failed {milliseconds} {name}")
            }
            Self::End => write!(output, "{MARK}end"),
        }
    }
}

impl Line {
    /// Reads a line; none when it isn't one of the report.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let line = line.trim_end().strip_prefix(MARK)?;
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let test = || {
            let (milliseconds, name) = rest.split_once(' ')?;
            Some((name.to_owned(), milliseconds.parse().ok()?))
        };
        match word {
            "up" => Some(Self::Up { release: rest.to_owned() }),
            "passed" => test().map(|(name, milliseconds)| Self::Passed { name, milliseconds }),
            "failed" => test().map(|(name, milliseconds)| Self::Failed { name, milliseconds }),
            "end" => Some(Self::End),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Line;

    #[test]
    fn lines_are_read_as_they_were_written() {
        let (name, milliseconds) = ("tests::portmap life::b".to_owned(), 1250);
        for line in [
            Line::Up { release: "6.1.0-1-amd64".to_owned() },
            Line::Passed { name: name.clone(), milliseconds },
            Line::Failed { name, milliseconds },
            Line::End,
        ] {
            // A serial line ends its lines with both.
            assert_eq!(Line::parse(&format!("{line}\r\n")), Some(line));
        }
    }

    #[test]
    fn other_lines_are_not_of_the_report() {
        for line in ["", "passed 12 x", "@vm dmesg", "@vm passed soon x", "[ 1.0] @vm end"] {
            assert_eq!(Line::parse(line), None, "{line}");
        }
    }
}
