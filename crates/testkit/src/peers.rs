//! The Go plugins, to compare with.

use std::path::{Path, PathBuf};

use crate::Plugin;

/// One release of the Go reference plugins, unpacked by `cargo xtask peers`.
#[derive(Debug, Clone)]
pub struct GoPlugins {
    directory: PathBuf,
}

impl GoPlugins {
    /// Those of Debian 12 (1.1.1: up to version 1.0.0, no STATUS, no GC). From
    /// `PODWIRE_GO_PLUGINS_DEBIAN` if set.
    #[track_caller]
    pub fn debian() -> Self {
        Self::locate("debian", "PODWIRE_GO_PLUGINS_DEBIAN")
    }

    /// Those of Debian sid (1.9.1 or newer: version 1.1.0). From
    /// `PODWIRE_GO_PLUGINS_SID` if set.
    #[track_caller]
    pub fn sid() -> Self {
        Self::locate("sid", "PODWIRE_GO_PLUGINS_SID")
    }

    /// The directory that holds them; a value for `CNI_PATH`.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A call of the plugin of this type, with `CNI_PATH` set.
    #[track_caller]
    pub fn plugin(&self, name: &str) -> Plugin {
        let program = self.directory.join(name);
        assert!(program.is_file(), "{} is missing; run: cargo xtask peers", program.display());
        Plugin::at(program).search_in(&[&self.directory])
    }

    #[track_caller]
    fn locate(name: &str, variable: &str) -> Self {
        let directory =
            std::env::var_os(variable).map_or_else(|| peers_directory().join(name), PathBuf::from);
        // Packages unpack to usr/lib/cni; the directory itself may hold them too.
        let candidates = [directory.join("usr/lib/cni"), directory.join("bin"), directory.clone()];
        let found = candidates.iter().find(|candidate| candidate.join("bridge").is_file());
        let found = found.unwrap_or_else(|| {
            panic!("no Go plugins in {}; run: cargo xtask peers", directory.display())
        });
        Self { directory: found.clone() }
    }
}

/// The program that drives plugins with Go's own libcni, built by `cargo xtask peers`.
#[track_caller]
pub fn libcni_client() -> PathBuf {
    let program = peers_directory().join("libcni-client");
    assert!(program.is_file(), "{} is missing; run: cargo xtask peers", program.display());
    program
}

/// Where `cargo xtask peers` puts them: `PODWIRE_PEERS_DIR`, relative to the project.
pub fn peers_directory() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let directory = std::env::var_os("PODWIRE_PEERS_DIR");
    root.join(directory.unwrap_or_else(|| "target/peers".into()))
}
