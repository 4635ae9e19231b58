//! Packages that are unpacked again, as those who install them do, and tried: a
//! package that builds may still hold programs that don't run.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::VERSION;
use crate::process::{command, output, run};
use crate::{Result, workspace};

/// Unpacks each of the packages and tries what is in it.
///
/// # Errors
/// One can't be unpacked, lacks something, or a program of it doesn't run.
pub(super) fn all(packages: &[PathBuf]) -> Result<()> {
    let place = workspace::target().join("package/trial");
    for package in packages {
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(&place)?;
        let root = unpack(package, &place)?;
        let plugins = one(&root).map_err(|error| format!("{}: {error}", package.display()))?;
        println!("  {}: {plugins} plugins run", package.display());
    }
    Ok(std::fs::remove_dir_all(&place)?)
}

/// Unpacks a package; returns the folder that stands for `/usr`.
fn unpack(package: &Path, to: &Path) -> Result<PathBuf> {
    if package.extension().is_some_and(|extension| extension == "deb") {
        run(command("dpkg-deb").arg("-x").args([package, to]))?;
        return Ok(to.join("usr"));
    }
    run(command("tar").arg("-xzf").arg(package).arg("-C").arg(to))?;
    let mut entries = std::fs::read_dir(to)?;
    let only = entries.next().ok_or("it is empty")??;
    Ok(only.path())
}

/// Tries what was unpacked; returns how many plugins there are.
fn one(root: &Path) -> Result<usize> {
    let about = output(command(&root.join("bin/podwire").to_string_lossy()).arg("--version"))?;
    if about.trim() != format!("podwire {VERSION}") {
        return Err(format!("bin/podwire calls itself {about:?}").into());
    }
    let folder = root.join("lib/podwire/cni");
    let program = folder.join("podwire-cni");
    let listed = output(command(&program.to_string_lossy()).arg("--list-plugins"))?;
    let mut wanted: BTreeSet<&str> = listed.lines().collect();
    let count = wanted.len();
    wanted.insert("podwire-cni");
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(&folder)? {
        found.insert(entry?.file_name().to_string_lossy().into_owned());
    }
    if count == 0 || !found.iter().map(String::as_str).eq(wanted.iter().copied()) {
        return Err(format!("it holds {found:?}, and its program is {wanted:?}").into());
    }
    for plugin in listed.lines() {
        let link = folder.join(plugin);
        if std::fs::metadata(&link)?.ino() != std::fs::metadata(&program)?.ino() {
            return Err(format!("{plugin} is no link to podwire-cni").into());
        }
        let mut asked = command(&link.to_string_lossy());
        let answer = output(asked.env("CNI_COMMAND", "VERSION"))?;
        if !answer.contains("\"supportedVersions\"") || !answer.contains("\"1.1.0\"") {
            return Err(format!("{plugin} answers VERSION with {answer:?}").into());
        }
    }
    for text in [
        "share/man/man1/podwire.1",
        "share/man/man1/podwire-migrate.1",
        "share/bash-completion/completions/podwire",
        "share/zsh/vendor-completions/_podwire",
        "share/fish/vendor_completions.d/podwire.fish",
        "lib/systemd/system/podwire-dhcp.service",
        "lib/systemd/system/podwire-dhcp.socket",
        "share/doc/podwire/copyright",
        "share/doc/podwire/docs/migrate.md",
    ] {
        if std::fs::read(root.join(text))?.is_empty() {
            return Err(format!("{text} is empty").into());
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_run_is_told() {
        let place = tempfile::tempdir().unwrap();
        let error = one(place.path()).unwrap_err().to_string();
        assert!(error.contains("podwire"), "{error}");
        std::fs::create_dir(place.path().join("bin")).unwrap();
        let program = place.path().join("bin/podwire");
        std::fs::write(&program, "#!/bin/sh\necho podwire 0.0.0\n").unwrap();
        run(command("chmod").arg("755").arg(&program)).unwrap();
        let error = one(place.path()).unwrap_err().to_string();
        assert!(error.contains("0.0.0"), "{error}");
    }
}
