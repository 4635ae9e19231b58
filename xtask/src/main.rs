//! Developer commands, run as `cargo xtask COMMAND`.
//!
//! One file per command in `commands/`; adding one means a file there and a
//! line in [`commands::ALL`]. Standard library only, as far as it goes: this
//! crate is compiled before anything else can be done.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks")]

mod commands;
mod process;
mod tidy;
mod workspace;

use std::process::ExitCode;

/// What a command returns: a message for a person, nothing to match on.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(name) = arguments.next() else {
        print_help();
        return ExitCode::from(2);
    };
    if matches!(name.as_str(), "help" | "-h" | "--help") {
        print_help();
        return ExitCode::SUCCESS;
    }
    let Some(command) = commands::ALL.iter().find(|command| command.name == name) else {
        eprintln!("xtask: no command `{name}`");
        print_help();
        return ExitCode::from(2);
    };
    let arguments: Vec<String> = arguments.collect();
    match (command.run)(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {name}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_help() {
    println!("cargo xtask COMMAND [OPTIONS]\n");
    for command in commands::ALL {
        println!("  {:<8} {}", command.name, command.about);
    }
}
