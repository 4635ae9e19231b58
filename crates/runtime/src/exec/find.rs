//! Finds the executable of a plugin type. Resolved anew for every call: a
//! plugin directory may be a link that an upgrade switches (B068).

use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// One place that was looked at, and why it did not serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Searched {
    /// The directory.
    pub directory: PathBuf,
    /// What lay there under the plugin's name.
    pub found: FoundInstead,
}

/// What lay where a plugin executable was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundInstead {
    /// Nothing.
    Nothing,
    /// The directory itself does not exist.
    NoDirectory,
    /// A directory of that name.
    Directory,
    /// A symbolic link that leads nowhere, or in a circle.
    DanglingLink,
    /// A file that nobody may execute.
    NotExecutable,
    /// A socket, pipe or device.
    NotAFile,
    /// The place could not be looked at (permission, I/O).
    Unreadable,
}

impl fmt::Display for Searched {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = match self.found {
            FoundInstead::Nothing => "not there",
            FoundInstead::NoDirectory => "no such directory",
            FoundInstead::Directory => "a directory has this name",
            FoundInstead::DanglingLink => "a symbolic link that leads nowhere",
            FoundInstead::NotExecutable => "the file is not executable",
            FoundInstead::NotAFile => "not a regular file",
            FoundInstead::Unreadable => "can't be looked at",
        };
        write!(formatter, "{} ({found})", self.directory.display())
    }
}

/// The first directory that holds an executable regular file called
/// `plugin_type` wins; symbolic links are followed, empty entries skipped.
///
/// libcni takes a file without execute permission and fails later; here it is
/// passed over, and named if nothing better turns up.
///
/// # Errors
/// Every place that was searched with what was found there; empty when
/// `directories` holds no usable entry.
pub(super) fn find(plugin_type: &str, directories: &[PathBuf]) -> Result<PathBuf, Vec<Searched>> {
    let mut searched = Vec::new();
    for directory in directories.iter().filter(|entry| !entry.as_os_str().is_empty()) {
        let candidate = directory.join(plugin_type);
        match look(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(found) => {
                let found = match found {
                    FoundInstead::Nothing if !directory.is_dir() => FoundInstead::NoDirectory,
                    other => other,
                };
                searched.push(Searched { directory: directory.clone(), found });
            }
        }
    }
    Err(searched)
}

fn look(candidate: &Path) -> Result<(), FoundInstead> {
    let metadata = match std::fs::metadata(candidate) {
        Ok(metadata) => metadata,
        Err(error) => {
            return Err(match error.kind() {
                _ if std::fs::symlink_metadata(candidate).is_ok() => FoundInstead::DanglingLink,
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
                    FoundInstead::Nothing
                }
                _ => FoundInstead::Unreadable,
            });
        }
    };
    if metadata.is_dir() {
        Err(FoundInstead::Directory)
    } else if !metadata.is_file() {
        Err(FoundInstead::NotAFile)
    } else if metadata.permissions().mode() & 0o111 == 0 {
        Err(FoundInstead::NotExecutable)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn executable(path: &Path) {
        std::fs::write(path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn b068_what_cannot_run_is_passed_over_and_named() {
        let root = tempfile::tempdir().unwrap();
        let entry = |name: &str| {
            let path = root.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let (dangling, circle, folder, plain, good) =
            (entry("dangling"), entry("circle"), entry("folder"), entry("plain"), entry("good"));
        symlink("/nowhere/at/all", dangling.join("bridge")).unwrap();
        symlink("bridge", circle.join("bridge")).unwrap();
        std::fs::create_dir(folder.join("bridge")).unwrap();
        std::fs::write(plain.join("bridge"), "").unwrap();
        std::fs::set_permissions(plain.join("bridge"), std::fs::Permissions::from_mode(0o644))
            .unwrap();
        let mut directories =
            vec![PathBuf::new(), dangling, circle, folder, plain, root.path().join("absent")];
        let searched = find("bridge", &directories).unwrap_err();
        let found: Vec<_> = searched.iter().map(|place| place.found).collect();
        assert_eq!(
            found,
            [
                FoundInstead::DanglingLink,
                FoundInstead::DanglingLink,
                FoundInstead::Directory,
                FoundInstead::NotExecutable,
                FoundInstead::NoDirectory,
            ]
        );
        executable(&good.join("bridge"));
        directories.push(good.clone());
        assert_eq!(find("bridge", &directories).unwrap(), good.join("bridge"));
    }

    #[test]
    fn b068_a_directory_link_is_resolved_at_each_call() {
        let root = tempfile::tempdir().unwrap();
        for version in ["v1", "v2"] {
            std::fs::create_dir(root.path().join(version)).unwrap();
            executable(&root.path().join(version).join("bridge"));
        }
        let current = root.path().join("current");
        symlink("v1", &current).unwrap();
        let first = find("bridge", std::slice::from_ref(&current)).unwrap();
        std::fs::remove_file(&current).unwrap();
        symlink("v2", &current).unwrap();
        std::fs::remove_dir_all(root.path().join("v1")).unwrap();
        assert_eq!(find("bridge", &[current]).unwrap(), first);
        assert!(first.exists());
    }
}
