//! Packages of Debian sid, unpacked beside the system: nothing is installed, and
//! the system's sources stay as they are.

use std::path::{Path, PathBuf};

use super::fresh_folder;
use crate::Result;
use crate::commands::setup::apt_get;
use crate::process::{command, output, retried, run};

/// The key that Debian signs every suite with, unstable included.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Packages as they were unpacked.
pub(super) struct Unpacked {
    /// Their files, as they would lie below `/`.
    pub(super) folder: PathBuf,
    /// `NAME VERSION`, in order, with commas.
    pub(super) versions: String,
}

/// Takes packages from the mirror that this machine already uses, with package lists of
/// our own, and unpacks them into a folder that the caller takes away.
///
/// # Errors
/// When one can't be had after retries.
pub(super) fn unpack(peers: &Path, packages: &[&str]) -> Result<Unpacked> {
    let apt = peers.join("apt");
    std::fs::create_dir_all(apt.join("lists/partial"))?;
    let sources = apt.join("sid.list");
    std::fs::write(&sources, format!("deb [signed-by={KEYRING}] {} sid main\n", mirror()?))?;
    let options = [
        format!("Dir::Etc::sourcelist={}", sources.display()),
        "Dir::Etc::sourceparts=-".to_owned(),
        format!("Dir::State::lists={}", apt.join("lists").display()),
        "APT::Get::List-Cleanup=0".to_owned(),
        // Only the index of packages is wanted.
        "Acquire::Languages=none".to_owned(),
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_owned(),
        "APT::Sandbox::User=root".to_owned(),
    ];
    let apt_with_options = || {
        let mut apt_get = apt_get();
        apt_get.arg("-qq").current_dir(&apt);
        for option in &options {
            apt_get.args(["-o", option]);
        }
        apt_get
    };
    retried("fetching sid's packages", || {
        run(apt_with_options().arg("update"))?;
        run(apt_with_options().arg("download").args(packages))
    })?;

    let folder = fresh_folder(peers, "sid-unpacked")?;
    let mut versions = Vec::new();
    for entry in std::fs::read_dir(&apt)? {
        let package = entry?.path();
        if package.extension().is_none_or(|extension| extension != "deb") {
            continue;
        }
        run(command("dpkg").arg("-x").args([&package, &folder]))?;
        let field = |name: &str| output(command("dpkg").arg("-f").arg(&package).arg(name));
        versions.push(format!("{} {}", field("Package")?.trim(), field("Version")?.trim()));
        std::fs::remove_file(&package)?;
    }
    versions.sort();
    Ok(Unpacked { folder, versions: versions.join(", ") })
}

/// The mirror of the archive that this machine's own configuration names.
fn mirror() -> Result<String> {
    let release = std::fs::read_to_string("/etc/os-release")?;
    let codename = release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .ok_or("/etc/os-release names no release: not Debian?")?;
    let targets =
        output(command("apt-get").args(["indextargets", "--format", "$(CODENAME) $(REPO_URI)"]))?;
    targets
        .lines()
        .find_map(|line| line.strip_prefix(codename)?.strip_prefix(' '))
        .map(str::to_owned)
        .ok_or_else(|| format!("apt's configuration names no mirror of {codename}").into())
}
