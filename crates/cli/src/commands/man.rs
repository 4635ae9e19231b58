//! `podwire man`.

use clap::CommandFactory as _;

use crate::arguments::{Cli, ManArguments};
use crate::exit::Exit;
use crate::failure::Failure;

/// Writes the pages: `podwire.1`, `podwire-add.1` and so on.
pub(super) fn run(arguments: &ManArguments) -> Result<Exit, Failure> {
    let mut command = Cli::command();
    // A built command knows what its parents add to it.
    command.build();
    clap_mangen::generate_to(command, &arguments.directory).map_err(|source| Failure::System {
        action: "writing the manual into",
        path: arguments.directory.clone(),
        source,
    })?;
    Ok(Exit::Done)
}
