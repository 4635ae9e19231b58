//! Debian's kernels for virtual machines, unpacked beside the build.

use std::path::{Path, PathBuf};

use super::super::setup::apt_get;
use crate::process::{command, output, retried, run as run_process};
use crate::{Result, workspace};

/// A kernel release and the Debian package that always depends on its newest
/// build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Release {
    /// As in `uname -r`, the first two numbers.
    pub(super) number: &'static str,
    /// The package without content.
    package: &'static str,
}

/// What Debian 12 was released with.
pub(super) const OLDER: Release = Release { number: "6.1", package: "linux-image-cloud-amd64" };
/// What Debian 12 offers beside it.
pub(super) const NEWER: Release =
    Release { number: "6.12", package: "linux-image-6.12-cloud-amd64" };

/// The folders of modules that networking needs, with what they depend on.
const MODULES: &[&str] = &["net", "lib", "crypto", "arch", "drivers/net"];
/// Hardware, which the guest has none of.
const NO_MODULES: &[&str] = &["drivers/net/ethernet"];

/// An unpacked kernel.
pub(super) struct Kernel {
    /// What the boot loader loads.
    pub(super) image: PathBuf,
    /// The folder `modules/RELEASE`, indexed.
    pub(super) modules: PathBuf,
    /// Package and version.
    pub(super) version: String,
}

impl Release {
    /// Unpacks the kernel, or finds it unpacked.
    ///
    /// # Errors
    /// When it can't be had after retries.
    pub(super) fn fetch(self, refresh: bool) -> Result<Kernel> {
        let place = workspace::target().join("vm").join(self.number);
        let stamp = place.join("stamp");
        if refresh || !stamp.is_file() {
            let version = self.unpack(&place)?;
            std::fs::write(&stamp, version)?;
        }
        let version = std::fs::read_to_string(&stamp)?;
        Ok(Kernel {
            image: only_entry(&place.join("boot"))?,
            modules: only_entry(&place.join("modules"))?,
            version,
        })
    }

    fn unpack(self, place: &Path) -> Result<String> {
        let fresh = place.with_file_name(format!(".{}.new", self.number));
        if fresh.exists() {
            std::fs::remove_dir_all(&fresh)?;
        }
        std::fs::create_dir_all(&fresh)?;
        let (package, version) = retried(&format!("fetching kernel {}", self.number), || {
            run_process(apt_get().args(["-qq", "update"]))?;
            let package = self.newest()?;
            run_process(
                apt_get()
                    .args(["-qq", "-o", "APT::Sandbox::User=root", "download", &package])
                    .current_dir(&fresh),
            )?;
            let archive = only_entry(&fresh)?;
            run_process(command("dpkg").arg("-x").args([&archive, &fresh]))?;
            let version = output(command("dpkg").arg("-f").arg(&archive).arg("Version"))?;
            std::fs::remove_file(&archive)?;
            Ok((package, version))
        })?;

        std::fs::rename(fresh.join("boot"), fresh.join("all-boot"))?;
        std::fs::create_dir(fresh.join("boot"))?;
        let release = package.trim_start_matches("linux-image-");
        let image = format!("vmlinuz-{release}");
        std::fs::rename(fresh.join("all-boot").join(&image), fresh.join("boot").join(&image))?;
        let root = fresh.join("lib/modules").join(release);
        keep_needed(&root)?;
        run_process(command("depmod").arg("-b").args([&fresh]).arg(release))?;
        std::fs::rename(fresh.join("lib/modules"), fresh.join("modules"))?;

        if place.exists() {
            std::fs::remove_dir_all(place)?;
        }
        std::fs::rename(&fresh, place)?;
        Ok(format!("{package} {}", version.trim()))
    }

    /// The package with the newest build of this release.
    fn newest(self) -> Result<String> {
        let wanted = format!("linux-image-{}.", self.number);
        output(command("apt-cache").args(["depends", self.package]))?
            .lines()
            .filter_map(|line| line.trim().strip_prefix("Depends: "))
            .find(|package| package.starts_with(&wanted))
            .map(str::to_owned)
            .ok_or_else(|| format!("{} depends on no {wanted}*", self.package).into())
    }
}

/// Leaves the modules that matter here, uncompressed: a guest without hardware
/// acceleration is slow at that.
fn keep_needed(root: &Path) -> Result<()> {
    let all = root.join("kernel");
    let kept = root.join("kept");
    for folder in MODULES {
        let from = all.join(folder);
        if from.is_dir() {
            let to = kept.join(folder);
            std::fs::create_dir_all(to.parent().unwrap_or(&kept))?;
            std::fs::rename(from, to)?;
        }
    }
    for folder in NO_MODULES.iter().map(|folder| kept.join(folder)).filter(|path| path.is_dir()) {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::remove_dir_all(&all)?;
    std::fs::rename(&kept, &all)?;
    let mut compressed = Vec::new();
    for file in super::image::files_below(&all)? {
        if file.extension().is_some_and(|extension| extension == "xz") {
            compressed.push(file);
        }
    }
    if compressed.is_empty() {
        return Ok(());
    }
    println!("  $ xz --decompress # {} modules", compressed.len());
    output(command("xz").arg("--decompress").args(compressed)).map(drop)
}

/// The one thing in a folder.
fn only_entry(folder: &Path) -> Result<PathBuf> {
    let mut entries = std::fs::read_dir(folder)
        .map_err(|error| format!("{}: {error}", folder.display()))?
        .collect::<std::io::Result<Vec<_>>>()?;
    match (entries.pop(), entries.is_empty()) {
        (Some(entry), true) => Ok(entry.path()),
        _ => Err(format!("{} should hold one entry", folder.display()).into()),
    }
}
