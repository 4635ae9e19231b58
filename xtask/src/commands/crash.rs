//! `cargo xtask crash`: the crash matrix of all chains, in full.

use crate::process::{cargo, command, run as run_process};
use crate::{Result, workspace};

/// Builds what is killed and who kills, and runs it: every system call of ADD, DEL
/// and GC, each in one scene, or with `--full` with every fate of the sandbox and both
/// ways to be killed. `--only TEXT` takes the chains with that text in their names,
/// `--kills N` so many places of each. Prints chain, verb, places, kills and leaks, and
/// writes them as a page of the documentation with `--page FILE`.
///
/// # Errors
/// When anything was left behind or touched that must not be.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    run_process(cargo().args(["build", "--workspace", "--bins", "--quiet"]))?;
    let program = workspace::target().join("debug").join("podwire-crash");
    let program = program.to_str().ok_or("the target directory's path is not UTF-8")?;
    run_process(command(program).args(arguments).env("PODWIRE_PEERS_DIR", workspace::peers()))
}
