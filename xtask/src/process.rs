//! Running other programs, visibly.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{Result, workspace};

/// A command that runs in the root of the checkout with the fetched developer
/// tools first in its `PATH`.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(workspace::root()).env("PATH", path());
    command
}

/// Cargo, of the toolchain that built this program.
pub(crate) fn cargo() -> Command {
    command("cargo")
}

/// This very program, also where its file was replaced meanwhile, as by a build of the
/// whole workspace: `/proc/self/exe` is what runs (proc(5)).
pub(crate) fn this_program() -> Command {
    command("/proc/self/exe")
}

fn path() -> OsString {
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(workspace::tools()).chain(std::env::split_paths(&inherited));
    std::env::join_paths(folders).unwrap_or(inherited)
}

/// Runs a command with its output shown.
///
/// # Errors
/// When it can't be started or fails; names the command.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    println!("  $ {}", shown(command));
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("can't start {}: {error}", shown(command)))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("{} failed: {status}", shown(command)).into())
}

/// Runs a command with its output shown, except for its standard error, which is
/// taken to be what the failure is about.
///
/// # Errors
/// When it can't be started or fails; carries its standard error.
pub(crate) fn run_for_its_errors(command: &mut Command) -> Result<()> {
    println!("  $ {}", shown(command));
    let output = command
        .stdin(Stdio::null())
        .stdout(Stdio::inherit())
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| format!("can't start {}: {error}", shown(command)))?;
    let errors = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() {
        if !errors.is_empty() {
            eprintln!("{errors}");
        }
        return Ok(());
    }
    Err(format!("{} failed: {}: {errors}", shown(command), output.status).into())
}

/// Runs a command and returns its standard output.
///
/// # Errors
/// When it can't be started or fails; carries its standard error.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("can't start {}: {error}", shown(command)))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(format!("{} failed: {}: {errors}", shown(command), output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Whether a command can be started and succeeds; its output isn't shown.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Does something that needs the network up to four times, waiting a little
/// longer after each failure.
///
/// # Errors
/// The last failure.
pub(crate) fn retried<T>(what: &str, mut work: impl FnMut() -> Result<T>) -> Result<T> {
    for seconds in [1, 4, 15] {
        match work() {
            Ok(done) => return Ok(done),
            Err(error) => {
                println!("  {what} failed, trying again in {seconds} s: {error}");
                std::thread::sleep(Duration::from_secs(seconds));
            }
        }
    }
    work()
}

fn shown(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy().into_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set for the copy whose file is removed.
    const COPY: &str = "PODWIRE_XTASK_COPY";

    #[test]
    fn a_program_whose_file_is_gone_starts_itself() {
        if let Some(copy) = std::env::var_os(COPY) {
            std::fs::remove_file(copy).unwrap();
            let listed = this_program().arg("--list").output().unwrap();
            assert!(listed.status.success(), "{listed:?}");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
        let mut again = Command::new(&copy);
        again.args(["--exact", "process::tests::a_program_whose_file_is_gone_starts_itself"]);
        let ran = again.env(COPY, &copy).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        assert!(!copy.exists(), "the copy didn't run the test: {ran:?}");
    }
}
