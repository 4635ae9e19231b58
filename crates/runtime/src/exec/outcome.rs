//! What a finished plugin call means: its result, or a failure told whole.
//!
//! libcni drops standard error as soon as there is standard output, and hides
//! the message when two documents are printed (CNI issues 571, 732). Here the
//! error object, the exit reason and the end of standard error are all kept.

use std::fmt;
use std::time::Duration;

use podwire_spec::error::{Error, ErrorCode, last_error_object};
use podwire_spec::id::{NetworkName, PluginType};
use podwire_spec::operation::Operation;

use super::{CallError, Exit, PluginOutput};

/// How much of a plugin's standard error a message shows, in bytes.
const STDERR_TAIL: usize = 2048;
/// How much unreadable standard output a message shows, in bytes.
const EXCERPT: usize = 512;

/// Why one plugin call failed.
#[derive(Debug)]
pub enum Failure {
    /// The plugin reported an error.
    Reported {
        /// Its error object.
        error: Error,
        /// How it ended.
        exit: Exit,
    },
    /// It failed without an error object.
    Unexplained {
        /// The beginning of what it printed instead.
        stdout: String,
        /// How it ended.
        exit: Exit,
    },
    /// It ended with success, but what it printed is no result.
    BadResult(Error),
    /// It ran out of time and was ended.
    TimedOut(Duration),
    /// The caller of the runtime gave up on it, and it was ended.
    Cancelled,
    /// It printed more than this many bytes.
    TooMuchOutput(usize),
    /// It could not be started.
    NotStarted {
        /// The kernel's answer.
        error: std::io::Error,
        /// How often it was tried.
        attempts: u32,
    },
    /// It started, and what became of it can't be told.
    Lost(String),
    /// No request could be made for it.
    Request(Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reported { error, exit } => {
                let text = error.to_string();
                let text = if text.is_empty() { "an error without a message" } else { &text };
                write!(formatter, "{text} (code {}, {exit})", error.code)
            }
            Self::Unexplained { stdout, exit } if stdout.is_empty() => {
                write!(formatter, "{exit}, without an error message")
            }
            Self::Unexplained { stdout, exit } => {
                write!(formatter, "{exit}, and instead of an error object it printed {stdout:?}")
            }
            Self::BadResult(error) => {
                write!(formatter, "it ended with success, but printed no usable result: {error}")
            }
            Self::TimedOut(limit) => write!(
                formatter,
                "timeout: not done after {:.1} s, ended with its whole process group",
                limit.as_secs_f64()
            ),
            Self::Cancelled => formatter.write_str("cancelled, ended with its process group"),
            Self::TooMuchOutput(limit) => {
                write!(formatter, "it printed more than the {limit} bytes that are taken")
            }
            Self::NotStarted { error, attempts: 0 | 1 } => {
                write!(formatter, "it could not be started: {error}")
            }
            Self::NotStarted { error, attempts } => {
                write!(formatter, "it could not be started, tried {attempts} times: {error}")
            }
            Self::Lost(reason) => formatter.write_str(reason),
            Self::Request(error) => write!(formatter, "no request could be made for it: {error}"),
        }
    }
}

/// A failed plugin call, with all that helps to find out why.
#[derive(Debug)]
pub struct PluginFailure {
    /// The network.
    pub network: NetworkName,
    /// The plugin.
    pub plugin: PluginType,
    /// Its place in the list, from 0.
    pub index: usize,
    /// What was asked of it.
    pub operation: Operation,
    /// What went wrong.
    pub failure: Failure,
    /// The end of what it wrote to standard error.
    pub stderr_tail: String,
}

impl PluginFailure {
    /// The CNI code: the plugin's own, 11 after a timeout, else 999.
    pub fn code(&self) -> ErrorCode {
        match &self.failure {
            Failure::Reported { error, .. }
            | Failure::BadResult(error)
            | Failure::Request(error) => error.code,
            Failure::TimedOut(_) | Failure::Cancelled => ErrorCode::TryAgainLater,
            Failure::Unexplained { .. }
            | Failure::TooMuchOutput(_)
            | Failure::NotStarted { .. }
            | Failure::Lost(_) => ErrorCode::Internal,
        }
    }
}

impl fmt::Display for PluginFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "plugin type=\"{}\" (number {} of network \"{}\") failed ({}): {}",
            self.plugin,
            self.index + 1,
            self.network,
            self.operation.as_str().to_ascii_lowercase(),
            self.failure
        )?;
        if !self.stderr_tail.is_empty() {
            write!(formatter, "; stderr: {:?}", self.stderr_tail)?;
        }
        Ok(())
    }
}

impl std::error::Error for PluginFailure {}

/// Takes a call's outcome apart: what the plugin printed, or the failure;
/// and with either what it wrote to standard error.
pub(crate) fn read_success(
    outcome: Result<PluginOutput, CallError>,
) -> (Result<String, Failure>, Vec<u8>) {
    match outcome {
        Ok(PluginOutput { exit: Exit::Code(0), stdout, stderr }) => {
            (Ok(String::from_utf8_lossy(&stdout).into_owned()), stderr)
        }
        Ok(PluginOutput { exit, stdout, stderr }) => (Err(read_failure(exit, &stdout)), stderr),
        Err(CallError::NotStarted { error, attempts }) => {
            (Err(Failure::NotStarted { error, attempts }), Vec::new())
        }
        Err(CallError::Lost(reason)) => (Err(Failure::Lost(reason)), Vec::new()),
        Err(CallError::Cancelled { stderr }) => (Err(Failure::Cancelled), stderr),
        Err(CallError::TimedOut { limit, stderr }) => (Err(Failure::TimedOut(limit)), stderr),
        Err(CallError::TooMuchOutput { limit, stderr }) => {
            (Err(Failure::TooMuchOutput(limit)), stderr)
        }
    }
}

fn read_failure(exit: Exit, stdout: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(stdout);
    match last_error_object(&text) {
        Some(error) => Failure::Reported { error, exit },
        None => {
            let text = text.trim();
            let end = floor_boundary(text, EXCERPT);
            Failure::Unexplained { stdout: text.get(..end).unwrap_or_default().to_owned(), exit }
        }
    }
}

/// The end of a plugin's standard error, cut at a line where it is long.
pub(crate) fn stderr_tail(stderr: &[u8]) -> String {
    let start = stderr.len().saturating_sub(STDERR_TAIL);
    let tail = String::from_utf8_lossy(stderr.get(start..).unwrap_or_default());
    let tail = match tail.split_once('\n') {
        Some((_cut_off, whole_lines)) if start > 0 && !whole_lines.trim().is_empty() => whole_lines,
        _ => &tail,
    };
    tail.trim().to_owned()
}

/// The largest character boundary that isn't after `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(stdout: &str, exit: Exit) -> Failure {
        let output = PluginOutput { exit, stdout: stdout.into(), stderr: b"warned\n".to_vec() };
        read_success(Ok(output)).0.unwrap_err()
    }

    #[test]
    fn b043_the_message_survives_a_result_before_it() {
        let failure =
            failed(r#"{"cniVersion":"1.0.0"}{"code":100,"msg":"no addresses"}"#, Exit::Code(1));
        assert_eq!(failure.to_string(), "no addresses (code 100, exit status 1)");
    }

    #[test]
    fn what_is_no_error_object_is_shown_with_the_exit_reason() {
        assert_eq!(
            failed("", Exit::Signal(9)).to_string(),
            "ended by SIGKILL, without an error message"
        );
        assert_eq!(
            failed("{}", Exit::Code(3)).to_string(),
            "exit status 3, and instead of an error object it printed \"{}\""
        );
        let long = failed(&"é".repeat(4000), Exit::Code(1));
        assert!(matches!(long, Failure::Unexplained { stdout, .. } if stdout.len() == EXCERPT));
    }

    #[test]
    fn stderr_and_the_plugin_are_part_of_the_text() {
        let failure = PluginFailure {
            network: NetworkName::parse("net").unwrap(),
            plugin: PluginType::parse("bridge").unwrap(),
            index: 1,
            operation: Operation::Add,
            failure: Failure::TimedOut(Duration::from_secs(2)),
            stderr_tail: stderr_tail(b"waiting for dhcp\n"),
        };
        let text = failure.to_string();
        assert!(text.starts_with(
            "plugin type=\"bridge\" (number 2 of network \"net\") failed (add): timeout"
        ));
        assert!(text.contains("2.0 s") && text.ends_with("; stderr: \"waiting for dhcp\""));
        assert_eq!(failure.code(), ErrorCode::TryAgainLater);
    }

    #[test]
    fn a_long_stderr_is_cut_at_a_line() {
        let text = format!("{}\nlast words\n", "x".repeat(10_000));
        assert_eq!(stderr_tail(text.as_bytes()), "last words");
        assert_eq!(stderr_tail("é".repeat(5000).as_bytes()).chars().count(), 1024);
    }
}
