//! The plugin directory: the names in it, and changing one in one step.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use podwire_plugin::aside;
use podwire_spec::Error;
use podwire_sys::file::{Durability, create_dir_all, read_bounded, write_atomic};
use podwire_sys::lock::FileLock;

/// How the names of half-made files begin, in our folder.
const TEMPORARY: &str = "new-";
/// More than a plugin directory holds.
const NAMES: usize = 4096;
/// In our folder: the names that were Podwire's before the first exchange, a line each.
const BEFORE: &str = "ours-before";
/// From where originals are kept to the plugin directory.
const UP: &str = "../..";

/// Device and inode: which file it is, whatever it's called.
pub(crate) type Identity = (u64, u64);

/// A plugin directory.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    directory: PathBuf,
}

impl Place {
    /// The directory itself, so that one behind a symbolic link is changed where
    /// it is and not beside it.
    pub(crate) fn open(directory: &Path) -> Result<Self, Error> {
        let real = directory.canonicalize().map_err(|error| at("looking at", directory, &error))?;
        if !real.is_dir() {
            return Err(Error::environment(format!("{} is no directory", directory.display())));
        }
        Ok(Self { directory: real })
    }

    /// A name that a runtime executes.
    pub(crate) fn name(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.directory.join(aside::FOLDER)
    }

    pub(crate) fn originals(&self) -> PathBuf {
        self.folder().join(aside::ORIGINALS)
    }

    pub(crate) fn original(&self, name: &str) -> PathBuf {
        self.originals().join(name)
    }

    pub(crate) fn forward(&self) -> PathBuf {
        self.folder().join(aside::FORWARD)
    }

    pub(crate) fn forwarder(&self) -> PathBuf {
        self.forward().join(aside::PROGRAM)
    }

    /// Every name in the directory, sorted; our folder is none.
    pub(crate) fn names(&self) -> Result<Vec<String>, Error> {
        list(&self.directory)
    }

    /// The names of the originals that are kept.
    pub(crate) fn kept(&self) -> Result<Vec<String>, Error> {
        list(&self.originals())
    }

    /// Makes our folder and keeps others of our kind out of the directory.
    pub(crate) fn lock(&self) -> Result<FileLock, Error> {
        let folder = self.folder();
        create_dir_all(&folder, 0o755).map_err(|error| Error::io(error.to_string()))?;
        FileLock::exclusive(folder.join("lock"), Duration::ZERO).map_err(|error| {
            Error::try_again(format!("{}: {error}", self.directory.display()))
                .with_details("another `podwire migrate` runs on this directory")
        })
    }

    /// Removes what a run that was killed left half made. The lock must be held.
    pub(crate) fn sweep(&self) -> Result<(), Error> {
        for name in list(&self.folder())? {
            if name.starts_with(TEMPORARY) {
                remove(&self.folder().join(name))?;
            }
        }
        Ok(())
    }

    /// A place for a file on its way to a name, on the same file system.
    fn temporary(&self, name: &str) -> PathBuf {
        self.folder().join(format!("{TEMPORARY}{name}"))
    }

    /// Copies a program to a path in one step: whole, executable and on the disk.
    pub(crate) fn copy(&self, from: &Path, to: &Path) -> Result<(), Error> {
        use std::os::unix::fs::PermissionsExt;
        let temporary = self.temporary(aside::PROGRAM);
        let copied = fs::copy(from, &temporary)
            .and_then(|_| fs::set_permissions(&temporary, fs::Permissions::from_mode(0o755)))
            .and_then(|()| fs::File::open(&temporary)?.sync_all())
            .and_then(|()| fs::rename(&temporary, to));
        copied.map_err(|error| {
            let _ = remove(&temporary);
            Error::io(format!("copying {} to {}: {error}", from.display(), to.display()))
        })
    }

    /// Gives a file another name in one step, whatever had that name; the file
    /// keeps the names that it has. A symbolic link is treated as itself.
    pub(crate) fn link(&self, from: &Path, to: &Path) -> Result<(), Error> {
        if identity(from).is_some() && identity(from) == identity(to) {
            // rename(2) does nothing for two names of one file, and says nothing.
            return Ok(());
        }
        let temporary = self.temporary("link");
        remove(&temporary)?;
        fs::hard_link(from, &temporary).and_then(|()| fs::rename(&temporary, to)).map_err(|error| {
            Error::io(format!("linking {} to {}: {error}", to.display(), from.display()))
        })
    }

    /// Keeps what has a name aside under it. A relative symbolic link leads to the same
    /// file from there.
    pub(crate) fn keep(&self, name: &str) -> Result<(), Error> {
        let (path, original) = (self.name(name), self.original(name));
        match fs::read_link(&path) {
            Ok(target) if target.is_relative() => {
                self.symlink(&Path::new(UP).join(target), &original)
            }
            _ => self.link(&path, &original),
        }
    }

    /// Gives what is kept aside its name again.
    pub(crate) fn restore(&self, name: &str) -> Result<(), Error> {
        let (path, original) = (self.name(name), self.original(name));
        match fs::read_link(&original) {
            Ok(target) if target.starts_with(UP) => {
                self.symlink(target.strip_prefix(UP).unwrap_or(&target), &path)
            }
            _ => self.link(&original, &path),
        }
    }

    /// Notes which names were Podwire's before the first exchange; once. The lock must
    /// be held.
    pub(crate) fn note_before(&self, names: &[&str]) -> Result<(), Error> {
        let file = self.folder().join(BEFORE);
        if file.exists() {
            return Ok(());
        }
        write_atomic(&file, names.join("\n").as_bytes(), 0o644, Durability::Durable)
            .map_err(|error| Error::io(error.to_string()))
    }

    /// The names that were Podwire's before the first exchange.
    pub(crate) fn before(&self) -> Result<Vec<String>, Error> {
        match read_bounded(&self.folder().join(BEFORE), 1 << 16) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()),
            Err(error) if error.is_missing() => Ok(Vec::new()),
            Err(error) => Err(Error::io(error.to_string())),
        }
    }

    /// Forgets them.
    pub(crate) fn forget_before(&self) -> Result<(), Error> {
        remove(&self.folder().join(BEFORE))
    }

    /// Makes a name a symbolic link in one step.
    pub(crate) fn symlink(&self, target: &Path, to: &Path) -> Result<(), Error> {
        let temporary = self.temporary("link");
        remove(&temporary)?;
        std::os::unix::fs::symlink(target, &temporary)
            .and_then(|()| fs::rename(&temporary, to))
            .map_err(|error| at("writing the link", to, &error))
    }

    /// Waits until the names are on the disk.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        for folder in [self.originals(), self.forward(), self.folder(), self.directory.clone()] {
            match fs::File::open(&folder).and_then(|open| open.sync_all()) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(at("syncing", &folder, &error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Which file a name is itself, a link not followed.
pub(crate) fn identity(path: &Path) -> Option<Identity> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Which file a name leads to.
pub(crate) fn target(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Removes a name; one that isn't there is fine.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(at("removing", path, &error)),
        _ => Ok(()),
    }
}

/// Removes an empty folder; one that isn't there is fine.
pub(crate) fn remove_folder(path: &Path) -> Result<(), Error> {
    match fs::remove_dir(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(at("removing", path, &error)),
        _ => Ok(()),
    }
}

pub(crate) fn at(doing: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::io(format!("{doing} {}: {error}", path.display()))
}

/// The names in a folder, sorted, directories left out; none if it isn't there.
fn list(folder: &Path) -> Result<Vec<String>, Error> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(at("listing", folder, &error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| at("listing", folder, &error))?;
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        // A plugin type is plain text: other names are nobody's plugin.
        if let (false, Ok(name)) = (is_directory, entry.file_name().into_string()) {
            names.push(name);
        }
        if names.len() > NAMES {
            let text = format!("{} holds more than {NAMES} files", folder.display());
            return Err(Error::environment(text).with_details("is it a plugin directory?"));
        }
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_change_in_one_step_and_leave_nothing_half_made() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::open(directory.path()).unwrap();
        let lock = place.lock().unwrap();
        assert!(place.lock().unwrap_err().to_string().contains("another"));
        for (name, text) in [("one", "1"), ("two", "2")] {
            fs::write(place.name(name), text).unwrap();
        }
        for _ in 0..2 {
            place.link(&place.name("one"), &place.name("two")).unwrap();
            assert_eq!(fs::read_to_string(place.name("two")).unwrap(), "1");
        }
        place.copy(&place.name("one"), &place.name("copy")).unwrap();
        assert_ne!(identity(&place.name("copy")), identity(&place.name("one")));
        place.symlink(Path::new("one"), &place.name("two")).unwrap();
        assert_eq!(target(&place.name("two")), target(&place.name("one")));
        place.link(&place.name("two"), &place.name("three")).unwrap();
        assert!(place.name("three").is_symlink());
        fs::write(place.folder().join("new-link"), "half").unwrap();
        place.sweep().unwrap();
        assert_eq!(place.names().unwrap(), ["copy", "one", "three", "two"]);
        assert_eq!(list(&place.folder()).unwrap(), ["lock"]);
        place.sync().unwrap();
        drop(lock);
    }

    #[test]
    fn a_relative_link_leads_to_the_same_file_from_where_it_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::open(directory.path()).unwrap();
        fs::create_dir_all(place.originals()).unwrap();
        fs::write(place.name("real"), "1").unwrap();
        for to in [
            Path::new("real"),
            &Path::new("..").join(directory.path().file_name().unwrap()).join("real"),
            &place.name("real"),
        ] {
            place.symlink(to, &place.name("bridge")).unwrap();
            place.keep("bridge").unwrap();
            remove(&place.name("bridge")).unwrap();
            assert_eq!(target(&place.original("bridge")), target(&place.name("real")), "{to:?}");
            place.restore("bridge").unwrap();
            assert_eq!(fs::read_link(place.name("bridge")).unwrap(), to);
        }
    }

    #[test]
    fn what_was_ours_before_is_noted_once() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::open(directory.path()).unwrap();
        let _lock = place.lock().unwrap();
        assert!(place.before().unwrap().is_empty());
        place.note_before(&["bridge", "ptp"]).unwrap();
        place.note_before(&[]).unwrap();
        assert_eq!(place.before().unwrap(), ["bridge", "ptp"]);
        place.forget_before().unwrap();
        assert!(place.before().unwrap().is_empty());
    }
}
