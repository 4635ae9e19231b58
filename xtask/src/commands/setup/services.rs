//! Packages bring services that tests start by themselves, in namespaces of
//! their own; on the machine none of them may run, least of all a DHCP server.

use std::path::Path;

use super::as_root;
use crate::Result;
use crate::process::{run, succeeds};

/// Debian's maintainer scripts ask this program before they start a service;
/// 101 means no.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// Services that come enabled, by package.
const SERVICES: &[(&str, &str)] = &[
    ("kea-dhcp4-server", "kea-dhcp4-server.service"),
    ("isc-dhcp-server", "isc-dhcp-server.service"),
    ("containerd", "containerd.service"),
    ("podman", "podman.socket"),
    ("podman", "podman.service"),
    ("podman", "podman-restart.service"),
    ("podman", "podman-auto-update.service"),
    ("podman", "podman-auto-update.timer"),
];

/// Installs packages by `install` so that none of their services starts, now or
/// at the next boot. A policy of the machine's own stays as it is.
///
/// # Errors
/// Those of `install`, or when the policy can't be put in place.
pub(super) fn without_starting(
    packages: &[&str],
    install: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let is_ours = !Path::new(POLICY).exists();
    if is_ours {
        println!("  until the packages are in, {POLICY} keeps their services from starting");
        let policy = std::env::temp_dir().join(format!("policy-rc.d-{}", std::process::id()));
        std::fs::write(&policy, "#!/bin/sh\nexit 101\n")?;
        let placed = run(as_root("install").args(["-m", "0755"]).arg(&policy).arg(POLICY));
        std::fs::remove_file(&policy)?;
        placed?;
    }
    let installed = install();
    if is_ours {
        run(as_root("rm").args(["-f", POLICY]))?;
    }
    installed?;
    for (package, service) in SERVICES {
        // Without systemctl nothing starts them at a boot either.
        if packages.contains(package)
            && Path::new("/usr/bin/systemctl").exists()
            && !succeeds(as_root("systemctl").args(["--quiet", "disable", service]))
        {
            println!("  WARNING: can't disable {service}; it would start at the next boot");
        }
    }
    Ok(())
}
