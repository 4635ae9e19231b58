//! The container id of a caller that names only a namespace, derived from its
//! path as cnitool does it.

use std::path::{Path, PathBuf};

use podwire_runtime::{Runtime, RuntimeError};
use podwire_spec::error::Error;
use podwire_spec::id::{AttachmentKey, ContainerId, IfName, NetworkName};
use sha2::{Digest as _, Sha512};

use crate::paths;

/// How many bytes of the hash are part of an id.
const HASH_BYTES: usize = 10;

/// cnitool's id for the absolute path of a namespace.
fn derive(path: &Path) -> Result<ContainerId, Error> {
    use std::fmt::Write as _;
    let mut id = String::from("cnitool-");
    for byte in Sha512::digest(path.as_os_str().as_encoded_bytes()).iter().take(HASH_BYTES) {
        // Writing to a String can't fail.
        let _ = write!(id, "{byte:02x}");
    }
    ContainerId::parse(&id)
}

/// The ids that a namespace may be known by, the one for a new attachment
/// first: that of the path without links, then those that cnitool derives
/// from the path as it is written here, and below `/var/run` (B086).
///
/// # Errors
/// When the working directory is gone.
pub(crate) fn candidates(netns: &Path) -> Result<Vec<ContainerId>, Error> {
    let written = absolute(netns)?;
    let canonical = paths::canonical(&written);
    let mut spellings = vec![canonical.clone(), written];
    if let Ok(rest) = canonical.strip_prefix("/run") {
        spellings.push(Path::new("/var/run").join(rest));
    }
    let mut ids = Vec::new();
    for spelling in spellings {
        let id = derive(&spelling)?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// The absolute path of a namespace, for `CNI_NETNS`.
///
/// # Errors
/// When the working directory is gone.
pub(crate) fn absolute(netns: &Path) -> Result<PathBuf, Error> {
    paths::absolute(netns).map_err(|error| {
        Error::io(format!("{}: the working directory can't be found: {error}", netns.display()))
    })
}

/// The id for an operation on one attachment: that of the candidates under
/// which it is recorded, else the first.
///
/// # Errors
/// If a record is there and can't be read.
pub(crate) fn resolve(
    runtime: &Runtime,
    network: &NetworkName,
    ifname: &IfName,
    netns: &Path,
) -> Result<ContainerId, RuntimeError> {
    let candidates = candidates(netns)?;
    for id in &candidates {
        let key = AttachmentKey {
            network: network.clone(),
            container_id: id.clone(),
            ifname: ifname.clone(),
        };
        if runtime.store().find(&key)?.best().is_some() {
            return Ok(id.clone());
        }
    }
    let first = candidates.into_iter().next();
    Ok(first.map_or_else(|| derive(netns), Ok)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_are_those_of_cnitool() {
        for (path, id) in [
            ("/x", "cnitool-7d368988110efa22d5ba"),
            ("/var/run/netns/nope", "cnitool-47be0ec2023fc9ea3313"),
            ("/var/run/netns/testing", "cnitool-77383ca0a0715733ca6f"),
            ("/run/netns/testing", "cnitool-43057b9dcc39fe733071"),
        ] {
            assert_eq!(derive(Path::new(path)).unwrap().as_str(), id);
        }
    }

    #[test]
    fn b086_cnitools_spellings_are_candidates() {
        let ids = candidates(Path::new("/run/netns/testing")).unwrap();
        let ids: Vec<_> = ids.iter().map(ContainerId::as_str).collect();
        assert_eq!(ids, ["cnitool-43057b9dcc39fe733071", "cnitool-77383ca0a0715733ca6f"]);
    }
}
