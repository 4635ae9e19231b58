//! What the command sees of the file system: all of it, but `/sys` with its
//! own links and `/etc/resolv.conf` with its networks' name servers, as
//! `ip netns exec` does it.

use std::path::Path;

use podwire_sys::{PathError, mount};

/// Gives the calling thread, and what it starts, a mount namespace with these
/// two replaced. What can't be replaced is returned, worth a warning: most
/// commands don't look there.
///
/// # Errors
/// Without a mount namespace of its own nothing may be mounted.
pub(super) fn arrange(resolver: Option<&Path>) -> Result<Vec<PathError>, PathError> {
    mount::enter_private_namespace()?;
    let mut doubts = Vec::new();
    doubts.extend(mount::sysfs(Path::new("/sys")).err());
    if let Some(resolver) = resolver {
        doubts.extend(mount::bind(resolver, Path::new("/etc/resolv.conf")).err());
    }
    Ok(doubts)
}
