//! The command line as it was written, or why it can't be understood.

use std::ffi::OsString;

use clap::Parser as _;
use clap::error::{Error as ClapError, ErrorKind};
use podwire_spec::error::Error;

use super::{Cli, Format};
use crate::failure::Failure;

/// What came of reading a command line.
pub(crate) enum Outcome {
    /// It says what to do.
    Command(Box<Cli>),
    /// It is for clap to answer: help, the version, or a mistake for people to read.
    Answer(ClapError),
    /// A mistake, for a program to read.
    Mistake(Failure),
}

/// Reads the process's command line. A mistake in it is told in the format that it asks
/// for, as all errors are.
pub(crate) fn parse() -> Outcome {
    parse_from(std::env::args_os().collect())
}

fn parse_from(arguments: Vec<OsString>) -> Outcome {
    let format = format_of(&arguments);
    match Cli::try_parse_from(arguments) {
        Ok(cli) => Outcome::Command(Box::new(cli)),
        Err(error) if format == Format::Json && is_mistake(&error) => {
            Outcome::Mistake(Failure::Usage(as_cni_error(&error)))
        }
        Err(error) => Outcome::Answer(error),
    }
}

/// Whether it is an error, not something that was asked for.
fn is_mistake(error: &ClapError) -> bool {
    !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
}

/// What the parser says, which is laid out for people: the first paragraph is the error,
/// the others are usage and hints.
fn as_cni_error(error: &ClapError) -> Error {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let on_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (message, more) = text.split_once("\n\n").unwrap_or((text, ""));
    Error::environment(on_one_line(message)).with_details(on_one_line(more))
}

/// The format that a command line asks for, which must be known even where it makes no
/// sense. What follows `--` is another program's.
fn format_of(arguments: &[OsString]) -> Format {
    let own = arguments.iter().skip(1).take_while(|argument| *argument != "--");
    let mut is_value = false;
    let mut is_json = false;
    for argument in own {
        let text = argument.to_str().unwrap_or_default();
        let value = if is_value {
            Some(text)
        } else {
            text.strip_prefix("--output=").or_else(|| {
                let value = text.strip_prefix("-o")?;
                Some(value.strip_prefix('=').unwrap_or(value))
            })
        };
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            is_json = value == "json";
        }
        is_value = !is_value && matches!(text, "-o" | "--output");
    }
    if is_json { Format::Json } else { Format::Text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(Into::into).collect()
    }

    #[test]
    fn the_format_is_seen_in_a_line_that_makes_no_sense() {
        for line in ["p -o json x", "p x --output json", "p --output=json", "p -ojson", "p -o=json"]
        {
            assert_eq!(format_of(&words(line)), Format::Json, "{line}");
        }
        for line in ["p", "p -o text", "p json", "p run n -- tool -o json", "p -o", "-o json"] {
            assert_eq!(format_of(&words(line)), Format::Text, "{line}");
        }
    }

    #[test]
    fn a_mistake_is_an_error_object_on_one_line() {
        let outcome = parse_from(words("podwire -o json add"));
        let Outcome::Mistake(Failure::Usage(error)) = outcome else { panic!("no mistake") };
        assert_eq!(error.code.number(), 4);
        assert!(error.msg.contains("required arguments were not provided"), "{error}");
        assert!(error.details.contains("Usage: podwire"), "{error}");
        assert!(!error.to_string().contains('\n'), "{error}");
        assert!(matches!(parse_from(words("podwire add")), Outcome::Answer(_)));
        assert!(matches!(parse_from(words("podwire -o json --help")), Outcome::Answer(_)));
        assert!(matches!(parse_from(words("podwire -o json list")), Outcome::Command(_)));
    }
}
