//! The leases on the disk: one file each, whole or not there at all.
//!
//! Beside them lie the wishes: a DEL that found no daemon leaves one, and the
//! daemon fulfils it when it is back. The folder has mode 0700 and its files
//! 0600; what can't be read is set aside, never dropped.

use std::path::{Path, PathBuf};

use podwire_plugin::OwnerMark;
use podwire_sys::PathError;
use podwire_sys::file::{self, Durability};
use serde::de::DeserializeOwned;

use crate::key::Key;
use crate::record::{FORM, Record};

/// Where leases are kept unless the daemon is told otherwise.
pub const DEFAULT_DIRECTORY: &str = "/var/lib/cni/podwire/dhcp";

/// No file is larger, in bytes.
const LARGEST: usize = 64 * 1024;
/// No folder holds more.
const MOST_FILES: usize = 200_000;
const SUFFIX: &str = ".json";

/// The folder of leases.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
}

/// What was found in a folder.
#[derive(Debug)]
pub struct Found<T> {
    /// What could be read.
    pub good: Vec<(OwnerMark, T)>,
    /// Where the rest was put, and what was wrong with it.
    pub set_aside: Vec<String>,
}

impl Store {
    /// The store at `root`, which needn't be there yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The file that a daemon holds locked while it works on this store.
    pub fn lock_file(&self) -> PathBuf {
        self.root.join("lock")
    }

    fn leases(&self) -> PathBuf {
        self.root.join("leases")
    }

    fn wishes(&self) -> PathBuf {
        self.root.join("wishes")
    }

    /// Makes the folders and removes what killed daemons left unfinished.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn prepare(&self) -> Result<(), PathError> {
        for folder in [self.leases(), self.wishes()] {
            file::create_dir_all(&folder, 0o700)?;
            file::remove_abandoned_temporaries(&folder)?;
        }
        Ok(())
    }

    /// Writes a lease. When this returns it outlives the daemon, and a new one
    /// the machine; a renewed one needn't, since no lease outlives a boot.
    ///
    /// # Errors
    /// What the kernel said; the old content is then still there.
    pub fn write(
        &self,
        mark: &OwnerMark,
        record: &Record,
        durability: Durability,
    ) -> Result<(), PathError> {
        let path = self.leases().join(format!("{mark}{SUFFIX}"));
        let text = serde_json::to_vec(record)
            .map_err(|error| PathError::new("encoding", &path, std::io::Error::other(error)))?;
        file::write_atomic(&path, &text, 0o600, durability)
    }

    /// Removes a lease; one that isn't there is fine.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn remove(&self, mark: &OwnerMark) -> Result<(), PathError> {
        unlink(&self.leases().join(format!("{mark}{SUFFIX}")))
    }

    /// All leases; what isn't one is set aside.
    ///
    /// # Errors
    /// When the folder can't be read.
    pub fn load(&self) -> Result<Found<Record>, PathError> {
        self.read(&self.leases(), |record: &Record| {
            if record.form == FORM { Ok(record.key.clone()) } else { Err("of an unknown form") }
        })
    }

    /// Whether a lease may be kept: its file is there, or no daemon has ever
    /// worked on this folder.
    pub fn may_hold(&self, mark: &OwnerMark) -> bool {
        !self.leases().is_dir() || self.leases().join(format!("{mark}{SUFFIX}")).exists()
    }

    /// Leaves the wish that a lease be given back.
    ///
    /// # Errors
    /// What the kernel said, and for a key that is none.
    pub fn wish(&self, key: &Key) -> Result<(), PathError> {
        let folder = self.wishes();
        let invalid = |error: String| {
            PathError::new("writing a wish into", &folder, std::io::Error::other(error))
        };
        let mark = key.mark().map_err(|error| invalid(error.to_string()))?;
        let text = serde_json::to_vec(key).map_err(|error| invalid(error.to_string()))?;
        file::create_dir_all(&folder, 0o700)?;
        let path = folder.join(format!("{mark}{SUFFIX}"));
        file::write_atomic(&path, &text, 0o600, Durability::Durable)
    }

    /// Removes a wish; one that isn't there is fine.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn forget_wish(&self, mark: &OwnerMark) -> Result<(), PathError> {
        unlink(&self.wishes().join(format!("{mark}{SUFFIX}")))
    }

    /// All wishes.
    ///
    /// # Errors
    /// When the folder can't be read.
    pub fn load_wishes(&self) -> Result<Found<Key>, PathError> {
        self.read(&self.wishes(), |key: &Key| Ok(key.clone()))
    }

    fn read<T: DeserializeOwned>(
        &self,
        folder: &Path,
        key_of: impl Fn(&T) -> Result<Key, &'static str>,
    ) -> Result<Found<T>, PathError> {
        let mut found = Found { good: Vec::new(), set_aside: Vec::new() };
        for name in file::regular_files(folder, MOST_FILES)? {
            let path = folder.join(&name);
            let Some(stem) = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)) else {
                continue;
            };
            let read = || -> Result<(OwnerMark, T), String> {
                let bytes =
                    file::read_bounded(&path, LARGEST).map_err(|error| error.to_string())?;
                let value =
                    serde_json::from_slice::<T>(&bytes).map_err(|error| error.to_string())?;
                let mark = key_of(&value)?.mark().map_err(|error| error.to_string())?;
                if mark.to_string() != stem {
                    return Err("its name is another attachment's".to_owned());
                }
                Ok((mark, value))
            };
            match read() {
                Ok(good) => found.good.push(good),
                Err(why) => {
                    let place = file::quarantine(&path, &self.root.join("quarantine"));
                    let place = place.map_or_else(
                        |error| error.to_string(),
                        |place| format!("it is now {}", place.display()),
                    );
                    found.set_aside.push(format!("{}: {why}; {place}", path.display()));
                }
            }
        }
        Ok(found)
    }
}

fn unlink(path: &Path) -> Result<(), PathError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(PathError::new("removing", path, error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::key::tests::key;
    use crate::machine::Identity;
    use crate::record::{Phase, Place};

    fn record(container: &str) -> Record {
        Record {
            form: FORM,
            key: key(container),
            place: Place {
                netns: "/run/netns/x".into(),
                cookie: Some(9),
                inode: 4,
                boot: "b".into(),
                index: 2,
            },
            host: None,
            identity: Identity {
                hardware: [2; 6],
                client: vec![0, 1],
                requested: vec![3],
                provided: vec![(12, vec![104])],
                broadcast: false,
            },
            server_hardware: Some([4; 6]),
            priority: None,
            phase: Phase::Lost { address: [10, 0, 0, 9].into() },
        }
    }

    #[test]
    fn b085_leases_are_written_as_read_and_for_root_only() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("dhcp"));
        assert!(store.load().unwrap().good.is_empty());
        store.prepare().unwrap();
        let mark = key("c1").mark().unwrap();
        store.write(&mark, &record("c1"), Durability::Durable).unwrap();
        let found = store.load().unwrap();
        assert_eq!(found.good, [(mark, record("c1"))]);
        let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(folder.path().join("dhcp")), 0o700);
        assert_eq!(mode(folder.path().join(format!("dhcp/leases/{mark}.json"))), 0o600);
        assert!(store.may_hold(&mark));
        store.remove(&mark).unwrap();
        assert!(!store.may_hold(&mark));
        store.remove(&mark).unwrap();
        assert!(store.load().unwrap().good.is_empty());
    }

    #[test]
    fn what_is_no_lease_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        store.prepare().unwrap();
        let (one, two) = (key("c1").mark().unwrap(), key("c2").mark().unwrap());
        store.write(&one, &record("c1"), Durability::Volatile).unwrap();
        let mut newer = record("c2");
        newer.form = 2;
        store.write(&two, &newer, Durability::Volatile).unwrap();
        let leases = folder.path().join("leases");
        std::fs::write(leases.join("torn.json"), "{").unwrap();
        std::fs::copy(leases.join(format!("{one}.json")), leases.join("copy.json")).unwrap();
        std::fs::write(leases.join("README"), "").unwrap();
        let found = store.load().unwrap();
        assert_eq!(found.good.len(), 1);
        assert_eq!(found.set_aside.len(), 3, "{:?}", found.set_aside);
        let aside = std::fs::read_dir(folder.path().join("quarantine")).unwrap();
        assert_eq!(aside.count(), 3);
        assert!(store.load().unwrap().set_aside.is_empty());
    }

    #[test]
    fn wishes_are_kept_until_they_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("not/yet"));
        assert!(store.may_hold(&key("c1").mark().unwrap()), "nobody knows");
        store.wish(&key("c1")).unwrap();
        store.wish(&key("c1")).unwrap();
        assert!(store.wish(&key("../x")).is_err());
        let wishes = store.load_wishes().unwrap().good;
        assert_eq!(wishes.len(), 1);
        store.forget_wish(&wishes[0].0).unwrap();
        assert!(store.load_wishes().unwrap().good.is_empty());
    }
}
