//! The CNI error object (specification, section 5 "Error"): code, message,
//! details.
//!
//! It is the one error type of the protocol: what a plugin prints on failure
//! and what a runtime reads. A message says what failed, on which object and
//! why; the details say what to do, or carry the words of the kernel.

use std::fmt;

use serde_json::value::RawValue;

use crate::json::{Object, Writer};
use crate::version::SpecVersion;

/// Why a CNI operation failed, as the specification numbers it (section 5).
///
/// 0 to 99 belong to the specification, 100 and above to the plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// 0: no code was given.
    Unknown,
    /// 1: the plugin does not speak the version of the configuration.
    IncompatibleVersion,
    /// 2: a configuration field is not supported; the message names key and
    /// value.
    UnsupportedField,
    /// 3: the container is unknown, so nothing needs to be cleaned up.
    UnknownContainer,
    /// 4: an environment variable is missing or invalid; the message names it.
    InvalidEnvironment,
    /// 5: reading or writing failed.
    Io,
    /// 6: something could not be decoded.
    Decode,
    /// 7: the network configuration is not valid.
    InvalidConfiguration,
    /// 8: the network namespace is not valid. Not in the specification's
    /// table; the Go implementation defines and prints it.
    InvalidNamespace,
    /// 11: a passing condition; the runtime should try again later.
    TryAgainLater,
    /// 50: the plugin can't serve an ADD now (STATUS).
    Unavailable,
    /// 51: as 50, and attached containers may have limited connectivity.
    LimitedConnectivity,
    /// 999: what the Go implementation gives to an error without a code.
    Internal,
    /// Another code of the range reserved for the specification (below 100).
    Reserved(u32),
    /// A code of the plugin's own (100 and above).
    Plugin(u32),
}

impl ErrorCode {
    /// 102, of this project's plugins: what ADD is to make is there already
    /// and nothing was made or changed. A DEL would remove what lives, so a
    /// runtime must not answer with one.
    pub const ALREADY_EXISTS: Self = Self::Plugin(102);

    /// The number printed as `code`.
    pub const fn number(self) -> u32 {
        match self {
            Self::Unknown => 0,
            Self::IncompatibleVersion => 1,
            Self::UnsupportedField => 2,
            Self::UnknownContainer => 3,
            Self::InvalidEnvironment => 4,
            Self::Io => 5,
            Self::Decode => 6,
            Self::InvalidConfiguration => 7,
            Self::InvalidNamespace => 8,
            Self::TryAgainLater => 11,
            Self::Unavailable => 50,
            Self::LimitedConnectivity => 51,
            Self::Internal => 999,
            Self::Reserved(number) | Self::Plugin(number) => number,
        }
    }

    /// The code a number stands for.
    pub const fn from_number(number: u32) -> Self {
        match number {
            0 => Self::Unknown,
            1 => Self::IncompatibleVersion,
            2 => Self::UnsupportedField,
            3 => Self::UnknownContainer,
            4 => Self::InvalidEnvironment,
            5 => Self::Io,
            6 => Self::Decode,
            7 => Self::InvalidConfiguration,
            8 => Self::InvalidNamespace,
            11 => Self::TryAgainLater,
            50 => Self::Unavailable,
            51 => Self::LimitedConnectivity,
            999 => Self::Internal,
            12..=99 | 9 | 10 => Self::Reserved(number),
            _ => Self::Plugin(number),
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(formatter)
    }
}

/// A CNI error: what a plugin prints and a runtime reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Why, as a number of the protocol.
    pub code: ErrorCode,
    /// What failed, on which object and why, on one line.
    pub msg: String,
    /// What to do, or the words of whoever refused; empty if there are none.
    pub details: String,
}

impl Error {
    /// An error without details.
    pub fn new(code: ErrorCode, msg: impl Into<String>) -> Self {
        Self { code, msg: msg.into(), details: String::new() }
    }

    /// The same error with details; replaces those it had.
    #[must_use]
    pub fn with_details(mut self, details: impl Into<String>) -> Self {
        self.details = details.into();
        self
    }

    /// The same error with what was being done in front of the message; the
    /// code stays, so that a caller further up can still act on it.
    #[must_use]
    pub fn context(mut self, doing: impl fmt::Display) -> Self {
        self.msg = format!("{doing}: {}", self.msg);
        self
    }

    /// Code 1: the version of the configuration is not spoken here.
    pub fn incompatible_version(msg: impl Into<String>) -> Self {
        Self::new(ErrorCode::IncompatibleVersion, msg)
    }

    /// Code 2: a configuration field is not supported; name key and value.
    pub fn unsupported_field(msg: impl Into<String>) -> Self {
        Self::new(ErrorCode::UnsupportedField, msg)
    }

    /// Code 4: an environment variable is missing or invalid; name it.
    pub fn environment(msg: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidEnvironment, msg)
    }

    /// Code 5: reading or writing failed.
    pub fn io(msg: impl Into<String>) -> Self {
        Self::new(ErrorCode::Io, msg)
    }

    /// Code 6: something could not be decoded.
    pub fn decode(msg: impl Into<String>) -> Self {
        Self::new(ErrorCode::Decode, msg)
    }

    /// Code 7: the configuration is not valid; name key and value.
    pub fn config(msg: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidConfiguration, msg)
    }

    /// Code 8: the network namespace is not one that can be used.
    pub fn namespace(msg: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidNamespace, msg)
    }

    /// Code 11: a passing condition, worth another try.
    pub fn try_again(msg: impl Into<String>) -> Self {
        Self::new(ErrorCode::TryAgainLater, msg)
    }

    /// Code 50: an ADD can't be served now.
    pub fn unavailable(msg: impl Into<String>) -> Self {
        Self::new(ErrorCode::Unavailable, msg)
    }

    /// An error of [`ErrorCode::ALREADY_EXISTS`].
    pub fn already_exists(msg: impl Into<String>) -> Self {
        Self::new(ErrorCode::ALREADY_EXISTS, msg)
    }

    /// Code 999: a failure the protocol has no number for.
    pub fn internal(msg: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, msg)
    }

    /// Whether another try later may succeed with nothing changed.
    pub fn is_transient(&self) -> bool {
        self.code == ErrorCode::TryAgainLater
    }

    /// The object as a plugin prints it: four spaces of indent, no newline at
    /// the end. The specification wants `cniVersion` in it; the Go plugins
    /// never print it, so every reader can do without.
    pub fn to_json(&self, version: Option<SpecVersion>) -> String {
        let mut writer = Writer::pretty();
        writer.begin_object();
        if let Some(version) = version {
            writer.key("cniVersion").string(version.as_str());
        }
        writer.key("code").integer(self.code.number());
        writer.key("msg").string(&self.msg);
        if !self.details.is_empty() {
            writer.key("details").string(&self.details);
        }
        writer.end_object();
        writer.finish()
    }

    /// Reads an error object; `None` if the text isn't one JSON object that
    /// holds `code` or `msg`. A code that isn't a number of the protocol
    /// counts as 999, so that a sloppy plugin's message is never lost; a code that
    /// is missing is unknown.
    pub fn parse(text: &str) -> Option<Self> {
        let object = Object::parse(text).ok()?;
        if object.get("code").is_none() && object.get("msg").is_none() {
            return None;
        }
        let code = match object.integer::<u32>("code") {
            Ok(Some(number)) => ErrorCode::from_number(number),
            Ok(None) => ErrorCode::Unknown,
            Err(_) => ErrorCode::Internal,
        };
        let text_of = |key: &str| match object.string(key) {
            Ok(value) => value.map(std::borrow::Cow::into_owned).unwrap_or_default(),
            Err(_) => object.get(key).map(|value| value.text().to_owned()).unwrap_or_default(),
        };
        Some(Self { code, msg: text_of("msg"), details: text_of("details") })
    }
}

impl fmt::Display for Error {
    /// `msg`, or `msg; details`, as the Go runtime library shows it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.msg)?;
        if !self.details.is_empty() {
            write!(formatter, "; {}", self.details)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// How many unfinished objects [`last_error_object`] looks into; more would
/// let a hostile plugin make the search quadratic.
const UNFINISHED_LIMIT: usize = 16;

/// The last complete error object in what a failed plugin printed, with
/// whatever stands before, between or after it ignored.
///
/// Plugins built on the Go framework print a result and then an error when
/// they are started in their own namespace (CNI issue 571), and others print
/// log lines first. Nothing of that may hide the message.
pub fn last_error_object(text: &str) -> Option<Error> {
    let mut found = None;
    let mut rest = text;
    let mut unfinished = 0;
    while let Some(start) = rest.find('{') {
        let candidate = rest.get(start..)?;
        let mut stream = serde_json::Deserializer::from_str(candidate).into_iter::<&RawValue>();
        let next = stream.next();
        let consumed = stream.byte_offset();
        rest = match next {
            Some(Ok(object)) => {
                found = Error::parse(object.get()).or(found);
                candidate.get(consumed.max(1)..)?
            }
            other => {
                if other.is_some_and(|failure| failure.is_err_and(|error| error.is_eof())) {
                    unfinished += 1;
                    if unfinished == UNFINISHED_LIMIT {
                        break;
                    }
                }
                candidate.get(1..)?
            }
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_survives_the_way_to_a_code_and_back() {
        for number in (0..1100).chain([u32::MAX]) {
            assert_eq!(ErrorCode::from_number(number).number(), number);
        }
        assert_eq!(ErrorCode::from_number(99), ErrorCode::Reserved(99));
        assert_eq!(ErrorCode::from_number(100), ErrorCode::Plugin(100));
    }

    #[test]
    fn prints_as_the_go_plugins_do_and_with_the_version_when_asked() {
        let error = Error::config("missing network name");
        assert_eq!(
            error.to_json(None),
            "{\n    \"code\": 7,\n    \"msg\": \"missing network name\"\n}"
        );
        let error = error.with_details("a \"quoted\" one");
        assert_eq!(
            error.to_json(Some(SpecVersion::V1_1_0)),
            "{\n    \"cniVersion\": \"1.1.0\",\n    \"code\": 7,\n    \"msg\": \"missing network \
             name\",\n    \"details\": \"a \\\"quoted\\\" one\"\n}"
        );
        assert_eq!(Error::parse(&error.to_json(Some(SpecVersion::V1_1_0))), Some(error));
    }

    #[test]
    fn b055_context_keeps_the_code_and_details_follow_the_message() {
        let error = Error::try_again("device busy")
            .with_details("EBUSY")
            .context("adding address 10.1.2.3/24 to eth0");
        assert!(error.is_transient());
        assert_eq!(error.to_string(), "adding address 10.1.2.3/24 to eth0: device busy; EBUSY");
    }

    #[test]
    fn a_sloppy_error_object_keeps_its_message() {
        let error = Error::parse(r#"{"code":"x","Msg":"boom","details":null}"#).unwrap();
        assert_eq!((error.code, error.msg.as_str()), (ErrorCode::Internal, "boom"));
        for unusable in ["-1", "1.5", "5000000000", "[1]", "true"] {
            let error = Error::parse(&format!(r#"{{"code":{unusable},"msg":"a"}}"#)).unwrap();
            assert_eq!(error.code.number(), 999, "{unusable}");
        }
        let error = Error::parse(r#"{"msg":"a"}"#).unwrap();
        assert_eq!(error.code, ErrorCode::Unknown);
        let error = Error::parse(r#"{"code":-1,"msg":{"a":1}}"#).unwrap();
        assert_eq!(error.msg, r#"{"a":1}"#);
        assert_eq!(Error::parse(r#"{"cniVersion":"1.0.0"}"#), None);
        assert_eq!(Error::parse("boom"), None);
    }

    #[test]
    fn b043_the_last_error_object_is_found_among_other_output() {
        let code = |text: &str| last_error_object(text).map(|error| error.code.number());
        assert_eq!(code(r#"{"cniVersion":"1.0.0"}{"code":100,"msg":"no addresses"}"#), Some(100));
        assert_eq!(code("log {line\n{\"code\":11,\"msg\":\"later\"}\ntrailing }"), Some(11));
        assert_eq!(code(r#"{"code":4,"msg":"a"} {"cniVersion":"1.0.0"}"#), Some(4));
        assert_eq!(code(r#"{"code":4,"msg":"a"}{"code":5"#), Some(4));
        assert_eq!(code(r#"{"cniVersion":"1.0.0"}"#), None);
        assert_eq!(code(""), None);
        assert_eq!(code(&"{\"a\":".repeat(100_000)), None);
    }
}
