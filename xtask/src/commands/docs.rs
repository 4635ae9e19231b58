//! `cargo xtask docs`: the pages of `docs/` that the tests hold to what they prove.

use super::no_more;
use crate::Result;
use crate::process::{cargo, run as run_process};

/// Writes them anew.
///
/// # Errors
/// When they can't be written.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    no_more(arguments)?;
    let program = ["--package", "podwire-tests", "--bin", "podwire-docs"];
    run_process(cargo().args(["run", "--quiet"]).args(program))
}
