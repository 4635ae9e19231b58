//! `cargo xtask bench`: ours, Go's and the kernel's floor side by side.

use super::{build, install, no_more, peers};
use crate::process::{cargo, command, run as run_process};
use crate::{Result, workspace};

/// Builds what ships and the runner, then measures. `ROUNDS` may be given.
///
/// # Errors
/// When something can't be built or a call fails.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    let mut arguments = arguments.to_vec();
    let rounds = if arguments.is_empty() { "40".to_owned() } else { arguments.remove(0) };
    no_more(&arguments)?;
    build::run(&[])?;
    peers::run(&[])?;
    run_process(cargo().args(["build", "--quiet", "--release", "--package", "podwire-bench"]))?;
    let target = build::shipped_target();
    run_process(cargo().args([
        "build",
        "--quiet",
        "--profile",
        "dist",
        "--target",
        target,
        "--package",
        "podwire-bench",
        "--bin",
        "floor",
    ]))?;
    let plugins = workspace::target().join("bench-plugins");
    install::run(&["--cni-bin-dir".to_owned(), plugins.display().to_string()])?;
    let floor = workspace::target().join(target).join("dist/floor");
    let runner = workspace::target().join("release/podwire-bench");
    run_process(
        command(&runner.display().to_string())
            .arg(plugins)
            .arg(workspace::peers().join("sid"))
            .arg(floor)
            .arg(rounds),
    )
}
