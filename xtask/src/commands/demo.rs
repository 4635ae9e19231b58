//! `cargo xtask demo`: two containers wired, reachable, checked, collected
//! and removed, in private namespaces.

use super::{install, no_more, setup};
use crate::process::{cargo, command, run as run_process};
use crate::{Result, workspace};

/// Installs what the machine lacks, builds what ships, and tells the story.
///
/// # Errors
/// When something can't be built, or a line of the story wasn't true.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    no_more(arguments)?;
    setup::run(&[])?;
    let plugins = workspace::target().join("demo-plugins");
    install::run(&["--cni-bin-dir".to_owned(), plugins.display().to_string()])?;
    run_process(cargo().args(["build", "--quiet", "--package", "podwire-examples", "--bins"]))?;
    let demo = workspace::target().join("debug/demo");
    run_process(
        command(&demo.display().to_string())
            .arg(workspace::dist().join("podwire"))
            .arg(plugins)
            .arg(workspace::root().join("examples")),
    )
}
