//! One command a file. Each takes its arguments, has the runtime do the work
//! and prints what came of it; the exit code is its return value.

mod attach;
mod check;
mod completions;
mod detach;
mod gc;
mod list;
mod man;
mod migrate;
mod run;
mod status;
mod validate;
mod version;

use podwire_runtime::RuntimeError;
use podwire_runtime::exec::Failure as CallFailure;

use crate::arguments::{Cli, Command, Format};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// Runs the command that was asked for.
///
/// # Errors
/// Why it failed; to be reported.
pub(crate) fn dispatch(cli: Cli) -> Result<Exit, Failure> {
    let common = cli.common;
    match cli.command {
        Command::Add(arguments) => attach::run(common, &arguments),
        Command::Del(arguments) => detach::run(common, &arguments),
        Command::Check(arguments) => check::run(common, &arguments),
        Command::Status(arguments) => status::run(common, &arguments),
        Command::Gc(arguments) => gc::run(common, &arguments),
        Command::Version(arguments) => version::run(common, &arguments),
        Command::Run(arguments) => run::run(common, &arguments),
        Command::List(arguments) => list::run(common, &arguments),
        Command::Validate(arguments) => validate::run(common, &arguments),
        Command::Migrate(arguments) => migrate::run(common, &arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }
}

/// What follows when plugins were asked a question and it failed: the answer
/// is no if one of them said so by an error object; else it's a failure.
fn no_or_failure(error: RuntimeError, format: Format) -> Result<Exit, Failure> {
    let answered = output::plugin_failure(&error)
        .is_some_and(|failure| matches!(failure.failure, CallFailure::Reported { .. }));
    let failure = Failure::from(error);
    if !answered {
        return Err(failure);
    }
    output::report(&failure, format);
    Ok(Exit::No)
}
