//! Where a moved node keeps the plugins that ours took the place of, and how a
//! call finds back to them after a roll-back.
//!
//! ```text
//! /opt/cni/bin/
//!     bridge -> .podwire/forward/podwire-cni     after a roll-back, while needed
//!     host-local                                 the original again
//!     .podwire/originals/bridge                  kept aside, untouched
//!     .podwire/forward/podwire-cni               our program
//! ```
//!
//! A program that lies in the `forward` folder makes nothing new: it becomes the
//! original. It only takes away, checks and collects what it once made, which the
//! original doesn't know; it knows the original's objects as well. Where it lies
//! says which of both it is to be, so there is no file to read and no state that
//! could be half written.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The folder of ours in a plugin directory. No plugin type begins with a dot, so
/// no runtime looks into it.
pub const FOLDER: &str = ".podwire";
/// The folder in it for the programs that ours took the place of.
pub const ORIGINALS: &str = "originals";
/// The folder in it for the program that goes on deleting.
pub const FORWARD: &str = "forward";
/// The program's own file name, in a plugin directory and in `forward`.
pub const PROGRAM: &str = "podwire-cni";

/// What a program in the `forward` folder still does itself.
const OWN: [&str; 3] = ["DEL", "CHECK", "GC"];

/// The original to become for this call: `executable` lies in a `forward` folder,
/// the call isn't one of those that our objects need, and there is an original.
pub fn original(executable: &Path, plugin: &str, command: Option<&OsStr>) -> Option<PathBuf> {
    if command.is_some_and(|command| OWN.iter().any(|own| command == *own)) {
        return None;
    }
    let forward =
        executable.parent().filter(|folder| folder.file_name() == Some(FORWARD.as_ref()))?;
    let folder = forward.parent().filter(|folder| folder.file_name() == Some(FOLDER.as_ref()))?;
    let original = folder.join(ORIGINALS).join(plugin);
    original.is_file().then_some(original)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_makes_something_new_goes_to_the_original() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join(FOLDER);
        std::fs::create_dir_all(folder.join(ORIGINALS)).unwrap();
        let bridge = folder.join(ORIGINALS).join("bridge");
        std::fs::write(&bridge, "").unwrap();
        let program = folder.join(FORWARD).join(PROGRAM);
        let goes = |program: &Path, plugin, command: Option<&str>| {
            original(program, plugin, command.map(OsStr::new))
        };
        for command in [Some("ADD"), Some("VERSION"), Some("STATUS"), Some("add"), None] {
            assert_eq!(goes(&program, "bridge", command).as_ref(), Some(&bridge), "{command:?}");
        }
        for command in ["DEL", "CHECK", "GC"] {
            assert_eq!(goes(&program, "bridge", Some(command)), None);
        }
        assert_eq!(goes(&program, "ptp", Some("ADD")), None);
        let installed = directory.path().join("bridge");
        assert_eq!(goes(&installed, "bridge", Some("ADD")), None);
        let elsewhere = directory.path().join(FORWARD).join(PROGRAM);
        assert_eq!(goes(&elsewhere, "bridge", Some("ADD")), None);
        assert_eq!(goes(Path::new(PROGRAM), "bridge", Some("ADD")), None);
    }
}
