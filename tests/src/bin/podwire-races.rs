//! `cargo xtask races`: operations that meet on purpose, with a witness outside.
//!
//! ```text
//! podwire-races [--operations N] [--crowd N]
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr)] // It talks to a person.

use std::process::ExitCode;

use podwire_tests::races::Race;

const USAGE: &str = "podwire-races [--operations N] [--crowd N]";

fn main() -> ExitCode {
    let mut race = Race { operations: 10_000, crowd: 200 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        let wanted = match argument.as_str() {
            "--operations" => &mut race.operations,
            "--crowd" => &mut race.crowd,
            other => return usage(&format!("unknown argument {other:?}")),
        };
        match value.parse() {
            Ok(number) => *wanted = number,
            Err(error) => return usage(&format!("{argument} {value:?}: {error}")),
        }
    }
    let outcome = race.run(&|progress| eprintln!("{progress}"));
    print!("{outcome}");
    let is_whole = outcome.total() >= race.operations;
    if outcome.faults.is_empty() && is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn usage(wrong: &str) -> ExitCode {
    eprintln!("podwire-races: {wrong}\nusage: {USAGE}");
    ExitCode::from(2)
}
