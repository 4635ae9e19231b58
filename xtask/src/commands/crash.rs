//! `cargo xtask crash`: the crash matrix of all chains, in full.

use super::{build, take_switch};
use crate::process::{cargo, command, run as run_process};
use crate::{Result, workspace};

/// Builds what ships and who kills, and runs it: every system call of ADD, DEL and GC,
/// each in one scene, or with `--full` with every fate of the sandbox and both ways to be
/// killed. `--only TEXT` takes the chains with that text in their names, `--kills N` so
/// many places of each, `--threads N` so many at a time (much of it is waiting for the
/// kernel). Prints chain, verb, places, kills and leaks, and writes them as a page of the
/// documentation with `--page FILE`. With `--progress FILE` a run that was cut off goes on
/// where it was. `--built` takes the programs as they are.
///
/// # Errors
/// When anything was left behind or touched that must not be.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    let mut arguments = arguments.to_vec();
    let programs = workspace::target().join("crash");
    if !take_switch(&mut arguments, "--built") {
        build::run(&[])?;
        run_process(cargo().args(["build", "--package", "podwire-tests", "--bins", "--quiet"]))?;
        std::fs::create_dir_all(&programs)?;
        let debug = workspace::target().join("debug");
        // Whoever kills takes the programs beside it.
        for (from, name) in [
            (debug, "podwire-crash"),
            (workspace::dist(), "podwire-cni"),
            (workspace::dist(), "podwire"),
        ] {
            let new = programs.join(format!(".{name}"));
            std::fs::copy(from.join(name), &new)?;
            std::fs::rename(new, programs.join(name))?;
        }
    }
    let program = programs.join("podwire-crash");
    let program = program.to_str().ok_or("the target directory's path is not UTF-8")?;
    run_process(command(program).args(arguments).env("PODWIRE_PEERS_DIR", workspace::peers()))
}
