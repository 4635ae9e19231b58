//! `podwire completions`.

use clap::CommandFactory as _;

use crate::arguments::{Cli, CompletionsArguments};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// Prints a completion script.
pub(super) fn run(arguments: &CompletionsArguments) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "podwire", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
