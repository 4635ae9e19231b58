//! `cargo xtask interop`: our plugins under the runtimes that people have, and beside
//! the Go plugins.
//!
//! The test programs whose names begin with `interop_` (`tests/tests/interop_PEER.rs`);
//! a new one is found by its name.

use super::{build, no_more, peers, setup, take_value};
use crate::process::{cargo, run as run_process};
use crate::{Result, workspace};

/// The test programs; no others are built.
const PROGRAMS: &str = "interop_*";

/// Brings the peers, builds, and runs the tests; `--filter TEST` those of them that a
/// filter of cargo-nextest names, or a part of a name.
///
/// # Errors
/// When a peer can't be had, or a test fails.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    let mut arguments = arguments.to_vec();
    let filter = take_value(&mut arguments, "--filter")?;
    no_more(&arguments)?;

    setup::run(&[])?;
    peers::run(&[])?;
    // What a container's image has is what ships.
    build::run(&[])?;
    run_process(cargo().args(["build", "--workspace", "--bins", "--examples", "--quiet"]))?;
    let tests = match filter {
        None => "all()".to_owned(),
        Some(filter) if filter.contains('(') => filter,
        Some(text) => format!("test({text}) | binary({text})"),
    };
    let tested = run_process(
        cargo()
            .args(["nextest", "run", "--package", "podwire-tests", "--no-tests", "fail"])
            .args(["--test", PROGRAMS])
            .args(["--filterset", &tests])
            .env("PODWIRE_PEERS_DIR", workspace::peers()),
    );
    println!("\n== with these peers");
    peers::run(&[])?;
    tested
}
