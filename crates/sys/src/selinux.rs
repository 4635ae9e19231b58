//! Working under another `SELinux` label for a moment.
//!
//! The kernel labels a TUN or TAP device with the label of the task that makes
//! it. The labels that a task can set for what it makes (`sockcreate`,
//! `fscreate`) don't count there (security/selinux/hooks.c,
//! `selinux_tun_dev_alloc_security`), and the one for what it executes
//! (`attr/exec`) only counts for a program that is started. So the calling
//! thread itself takes the label, makes the device, and returns to its own.
//!
//! The policy must allow that: `process { setcurrent dyntransition }` for the
//! plugin's domain, and back again for the label's.

use std::fs;
use std::io;

/// The label of the calling thread.
const OWN: &str = "/proc/thread-self/attr/current";
/// Lists `selinuxfs` where `SELinux` is switched on.
const FILE_SYSTEMS: &str = "/proc/filesystems";

/// Whether `SELinux` is switched on.
pub fn is_enabled() -> bool {
    fs::read_to_string(FILE_SYSTEMS)
        .is_ok_and(|text| text.split_ascii_whitespace().any(|name| name == "selinuxfs"))
}

/// Runs `work` with the calling thread under `label`, and comes back.
///
/// # Errors
/// `Unsupported` where `SELinux` is off; else what the kernel said to the label,
/// `work` has not run then. When the way back is refused, `work` has run, and the
/// thread stays under `label`.
pub fn run_as<T>(label: &str, work: impl FnOnce() -> T) -> io::Result<T> {
    if !is_enabled() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let own = fs::read(OWN)?;
    fs::write(OWN, label)?;
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    let back = fs::write(OWN, own);
    match done {
        Ok(value) => back.map(|()| value),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn without_selinux_no_label_is_tried() {
        if super::is_enabled() {
            assert!(super::run_as("no-label", || ()).is_err());
        } else {
            let error = super::run_as("system_u:system_r:container_t:s0", || ()).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
        }
    }
}
