//! `cargo xtask package`: what ships, as an archive and as a Debian package.
//!
//! Both hold the same tree, and the plugins in it as hard links to one file. Two
//! builds of one commit give the same bytes: names are sorted, times are the
//! commit's (or `SOURCE_DATE_EPOCH`), owners are root, and the compiler doesn't write
//! down where the checkout lies.

mod deb;
mod rebuild;
mod tree;
mod trial;
mod writer;

use std::path::{Path, PathBuf};

use self::tree::Tree;
use super::{build, no_more, take_switch};
use crate::process::{command, output};
use crate::{Result, workspace};

/// The release.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Builds the programs (not with `--built`) and writes the packages into
/// `target/package`; with `--rebuild`, builds the programs once more from scratch, in
/// another place, and compares.
///
/// # Errors
/// When the build fails, two packages of the same files differ, or what is unpacked
/// doesn't run.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    let mut arguments = arguments.to_vec();
    let is_built = take_switch(&mut arguments, "--built");
    let is_again = take_switch(&mut arguments, "--rebuild");
    no_more(&arguments)?;
    if !is_built {
        build::run(&[])?;
    }
    let folder = workspace::target().join("package");
    std::fs::create_dir_all(&folder)?;
    let time = time()?;
    let mut written = write(&folder, time)?;
    for (path, bytes) in &written {
        std::fs::write(path, bytes)?;
        println!("  {} {} bytes", path.display(), bytes.len());
    }
    let paths: Vec<PathBuf> = written.iter().map(|(path, _)| path.clone()).collect();
    trial::all(&paths)?;
    // The second time from scratch: what depends on anything else shows.
    let again = write(&folder, time)?;
    written.retain(|one| !again.contains(one));
    if written.is_empty() {
        return if is_again { rebuild() } else { Ok(()) };
    }
    let names: Vec<_> = written.iter().map(|(path, _)| path.display().to_string()).collect();
    Err(format!("built twice, these differ: {}", names.join(", ")).into())
}

/// Builds what is in `target/dist` once more, elsewhere, and compares.
///
/// # Errors
/// When the build fails, or a program differs.
pub(super) fn rebuild() -> Result<()> {
    rebuild::compare()
}

/// Puts the packages together; nothing is written.
fn write(folder: &Path, time: u64) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let tree = Tree::collect()?;
    let machine = std::env::consts::ARCH;
    let name = format!("podwire-{VERSION}-linux-{machine}");
    let archive = writer::archive(&tree, &name, time)?;
    let package = deb::package(&tree, VERSION, deb::architecture(machine)?, time)?;
    let package_name = format!("podwire_{VERSION}_{}.deb", deb::architecture(machine)?);
    Ok(vec![(folder.join(format!("{name}.tar.gz")), archive), (folder.join(package_name), package)])
}

/// The time that everything in a package has, in seconds since 1970.
fn time() -> Result<u64> {
    if let Some(given) = std::env::var_os("SOURCE_DATE_EPOCH") {
        let given = given.to_string_lossy().into_owned();
        return given.parse().map_err(|_| format!("SOURCE_DATE_EPOCH={given} is no number").into());
    }
    let time = output(command("git").args(["log", "-1", "--format=%ct"]))?;
    Ok(time.trim().parse()?)
}

#[cfg(test)]
mod daemonset;
#[cfg(test)]
mod tests;
