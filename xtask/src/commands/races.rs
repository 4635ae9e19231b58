//! `cargo xtask races`: operations that meet on purpose.

use crate::process::{cargo, command, run as run_process};
use crate::{Result, workspace};

/// Builds what races and the witness, and runs it: rounds of ADDs on a missing bridge,
/// ADD against DEL, ADDs against GC and two runtimes on one network, until `--operations
/// N` (10,000) are done, `--crowd N` (200) containers at once.
///
/// # Errors
/// When an address was held twice, an operation failed, or something was left behind.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    run_process(cargo().args(["build", "--workspace", "--bins", "--quiet"]))?;
    let program = workspace::target().join("debug").join("podwire-races");
    let program = program.to_str().ok_or("the target directory's path is not UTF-8")?;
    run_process(command(program).args(arguments).env("PODWIRE_PEERS_DIR", workspace::peers()))
}
