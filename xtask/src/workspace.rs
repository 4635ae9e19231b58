//! Where things are in the checkout.

use std::path::{Path, PathBuf};

use crate::{Result, process};

/// The root of the checkout that `cargo xtask` was called in.
pub(crate) fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().map_or_else(|| manifest.clone(), Path::to_path_buf)
}

/// Cargo's target folder.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// Where programs that ship are put.
pub(crate) fn dist() -> PathBuf {
    target().join("dist")
}

/// Where the developer tools that `setup` fetches are put, first in the
/// `PATH` of every process that a command starts.
pub(crate) fn tools() -> PathBuf {
    target().join("tools/bin")
}

/// Where the Go plugins and the Go client are: `PODWIRE_PEERS_DIR`, so that
/// several checkouts can share one copy, or `target/peers`.
pub(crate) fn peers() -> PathBuf {
    std::env::var_os("PODWIRE_PEERS_DIR")
        .map_or_else(|| target().join("peers"), |folder| root().join(folder))
}

/// Every file of the project, relative to the root: tracked, or new and not
/// ignored.
///
/// # Errors
/// When git can't list them.
pub(crate) fn files() -> Result<Vec<PathBuf>> {
    let listed = process::output(process::command("git").args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    let root = root();
    let mut files: Vec<PathBuf> = listed
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        // Listed but deleted in the working tree.
        .filter(|name| root.join(name).is_file())
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}
