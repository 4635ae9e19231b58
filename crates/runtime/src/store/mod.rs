//! The attachments of this node, on disk: what libcni keeps, where and as it
//! keeps it, but never half written, and known from before the first plugin
//! runs.
//!
//! An ADD first writes an intent (design: nothing may be made of which no
//! file tells). When it has a result, the intent is rewritten as the finished
//! record and gets its place under `results`: at each moment one whole file
//! describes the attachment. A record without a result never lies where
//! libcni looks.

mod paths;
mod record;
mod sandbox;

use std::fs;
use std::io::{Error as IoError, ErrorKind};
use std::path::{Path, PathBuf};

use podwire_spec::id::{AttachmentKey, NetworkName};
use podwire_sys::file::{
    Durability, create_dir_all, is_temporary_name, quarantine, read_bounded,
    remove_abandoned_temporaries, write_atomic,
};

use podwire_sys::netns::Identity;

pub(crate) use paths::check_length;
pub use record::{Record, State};

use self::paths::Paths;
use self::record::Parsed;
use crate::error::RuntimeError;

/// The largest record that is read, in bytes: a configuration, a result and
/// arguments, each of which is bounded far below.
const SIZE_LIMIT: usize = 16 << 20;

/// A record and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// What it says.
    pub record: Record,
    /// Its file.
    pub path: PathBuf,
    /// The namespace that it was attached in, if we have finished it: a path alone
    /// may lead to another by now.
    pub sandbox: Option<Identity>,
}

/// A file that should be a record and can't be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

impl Unreadable {
    /// Whether it may be the record of an attachment of this network: where it lies, the
    /// name of each begins with the network's.
    pub fn may_be_of(&self, network: &NetworkName) -> bool {
        self.path.file_name().is_some_and(|name| {
            let rest = name.as_encoded_bytes().strip_prefix(network.as_str().as_bytes());
            rest.is_some_and(|rest| rest.starts_with(b"-") || rest.starts_with(b":"))
        })
    }
}

/// What the store knows of one attachment.
#[derive(Debug, Default)]
pub struct Found {
    /// The finished attachment.
    pub attached: Option<Stored>,
    /// An ADD that began and did not finish.
    pub unfinished: Option<Stored>,
    /// Files at its places that can't be understood.
    pub unreadable: Vec<Unreadable>,
}

impl Found {
    /// What counts: a deletion that began, else a finished ADD, else an
    /// unfinished one.
    pub fn best(&self) -> Option<&Stored> {
        self.pending().or(self.attached.as_ref()).or(self.unfinished.as_ref())
    }

    /// The record of a deletion that began and did not finish.
    pub fn pending(&self) -> Option<&Stored> {
        self.unfinished.as_ref().filter(|stored| stored.record.state == State::DeletePending)
    }
}

/// All attachments of the node.
#[derive(Debug, Default)]
pub struct Listing {
    /// One per attachment, sorted by its names: the one that counts, as in [`Found::best`].
    pub attachments: Vec<Stored>,
    /// Files that can't be understood.
    pub unreadable: Vec<Unreadable>,
}

/// The attachments below one cache directory (`/var/lib/cni` by default).
#[derive(Clone, Debug)]
pub struct Store {
    paths: Paths,
}

impl Store {
    /// The store below a cache directory; nothing is read or made yet.
    pub fn new(cache_directory: impl Into<PathBuf>) -> Self {
        Self { paths: Paths::new(cache_directory.into()) }
    }

    /// What is known of one attachment. Changes nothing.
    ///
    /// # Errors
    /// Only if a file is there and the system won't let it be read; one that
    /// makes no sense is in [`Found::unreadable`].
    pub fn find(&self, key: &AttachmentKey) -> Result<Found, RuntimeError> {
        let mut found = Found::default();
        for path in
            [self.paths.libcni_file(key), self.paths.own_file(key), self.paths.intent_file(key)]
        {
            match self.read(&path, Some(key))? {
                None => {}
                // The place is another attachment's, which has the same name
                // by libcni's rules.
                Some(Ok(stored)) if stored.record.key != *key => {}
                Some(Ok(stored)) if stored.record.state == State::Attached => {
                    found.attached.get_or_insert(stored);
                }
                Some(Ok(stored)) => found.unfinished = Some(stored),
                Some(Err(reason)) => found.unreadable.push(Unreadable { path, reason }),
            }
        }
        Ok(found)
    }

    /// Every attachment there is a record of.
    ///
    /// # Errors
    /// If a directory is there and can't be listed; a missing one is empty.
    pub fn list(&self) -> Result<Listing, RuntimeError> {
        let mut listing = Listing::default();
        for directory in [self.paths.results(), self.paths.own_results(), self.paths.intents()] {
            for path in files_of(&directory)? {
                let outcome = match self.read(&path, None) {
                    Ok(outcome) => outcome,
                    Err(error) => Some(Err(error.to_string())),
                };
                match outcome {
                    // Removed since it was listed.
                    None => {}
                    Some(Ok(stored)) => listing.attachments.push(stored),
                    Some(Err(reason)) => listing.unreadable.push(Unreadable { path, reason }),
                }
            }
        }
        listing.attachments.sort_by(|left, right| {
            let order = |stored: &Stored| match stored.record.state {
                State::DeletePending => 0,
                State::Attached => 1,
                State::Adding => 2,
            };
            left.record.key.cmp(&right.record.key).then_with(|| order(left).cmp(&order(right)))
        });
        listing.attachments.dedup_by(|next, kept| next.record.key == kept.record.key);
        Ok(listing)
    }

    /// Writes down, durably, that an ADD begins or that a deletion is due.
    ///
    /// # Errors
    /// If the file can't be written; nothing has changed then.
    pub fn write_intent(&self, record: &Record) -> Result<(), RuntimeError> {
        making(&self.paths.intents(), || {
            write(&self.paths.intent_file(&record.key), record, Durability::Durable)
        })
    }

    /// Turns the intent into the finished record, durably, and returns its
    /// file.
    ///
    /// # Errors
    /// If it can't be written; the intent is then still there.
    pub fn commit(&self, record: &Record) -> Result<PathBuf, RuntimeError> {
        let intent = self.paths.intent_file(&record.key);
        // What counts is the name that it gets under `results`. Until that is on the
        // disk, a crash of the machine may bring back the intent that it replaces; after
        // it, that one doesn't count beside the record (`Found::best`, `Store::list`).
        making(&self.paths.intents(), || write(&intent, record, Durability::ContentDurable))?;
        // Before the record is one: none is ever without.
        making(&self.paths.sandboxes(), || {
            sandbox::write(&self.paths.sandbox_file(&record.key), &record.netns, &intent)
        })?;
        let place = self.paths.libcni_file(&record.key);
        let mut linked = fs::hard_link(&intent, &place);
        if linked.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            ensure(&self.paths.results())?;
            linked = fs::hard_link(&intent, &place);
        }
        let place = match linked {
            Ok(()) => {
                remove_file(&intent)?;
                place
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let place = if self.belongs_to_another(&place, &record.key)? {
                    ensure(&self.paths.own_results())?;
                    self.paths.own_file(&record.key)
                } else {
                    place
                };
                fs::rename(&intent, &place).map_err(failed("storing", &place))?;
                place
            }
            // A file system without hard links.
            Err(_) if !place.exists() => {
                fs::rename(&intent, &place).map_err(failed("storing", &place))?;
                place
            }
            Err(error) => return Err(failed("storing", &place)(error)),
        };
        sync_parent(&place)?;
        Ok(place)
    }

    /// Forgets an attachment.
    ///
    /// # Errors
    /// If a file can't be removed.
    pub fn remove(&self, found: &Found) -> Result<(), RuntimeError> {
        // The intent goes last: it says that the deletion began. A commit that
        // was cut short left one beside the record, too.
        let stored = found.attached.iter().chain(found.unfinished.iter());
        for stored in stored.clone() {
            if stored.record.state == State::Attached {
                remove_file(&stored.path)?;
            }
        }
        for stored in stored {
            remove_file(&self.paths.sandbox_file(&stored.record.key))?;
            remove_file(&self.paths.intent_file(&stored.record.key))?;
            remove_file(&stored.path)?;
        }
        Ok(())
    }

    /// Moves a file that can't be understood out of the way and returns where
    /// it lies now.
    ///
    /// # Errors
    /// If it can't be moved.
    pub fn set_aside(&self, unreadable: &Unreadable) -> Result<PathBuf, RuntimeError> {
        ensure(&self.paths.own())?;
        quarantine(&unreadable.path, &self.paths.quarantine())
            .map_err(|error| store_error("setting aside", &unreadable.path, error))
    }

    /// The files set aside so far.
    ///
    /// # Errors
    /// If the directory can't be listed.
    pub fn quarantined(&self) -> Result<Vec<PathBuf>, RuntimeError> {
        files_of(&self.paths.quarantine())
    }

    /// Removes what killed processes left half written, and what we know of
    /// attachments that libcni has deleted.
    ///
    /// # Errors
    /// If a directory can't be listed or a file not be removed.
    pub fn sweep(&self) -> Result<usize, RuntimeError> {
        let mut removed = 0;
        for directory in [self.paths.intents(), self.paths.sandboxes()] {
            removed += remove_abandoned_temporaries(&directory)
                .map_err(|error| store_error("sweeping", &directory, error))?;
        }
        for path in files_of(&self.paths.sandboxes())? {
            let Some(key) = Paths::key_of(&path) else { continue };
            // In the order in which a commit moves it, so that none is missed.
            let places = [
                self.paths.intent_file(&key),
                self.paths.libcni_file(&key),
                self.paths.own_file(&key),
            ];
            if !places.iter().any(|place| place.exists()) {
                remove_file(&path)?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// `None` if the file is not there; else the record, or why it is none.
    fn read(
        &self,
        path: &Path,
        asked: Option<&AttachmentKey>,
    ) -> Result<Option<Result<Stored, String>>, RuntimeError> {
        let bytes = match read_bounded(path, SIZE_LIMIT) {
            Ok(bytes) => bytes,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error)
                if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::FileTooLarge) =>
            {
                return Ok(Some(Err(error.source.to_string())));
            }
            Err(error) => return Err(store_error("reading", path, error)),
        };
        let text = String::from_utf8_lossy(&bytes);
        let parsed = match Record::parse(&text) {
            Ok(parsed) => parsed,
            Err(error) => return Ok(Some(Err(error.to_string()))),
        };
        let record = match (parsed, asked) {
            (Parsed::Record(record), _) => *record,
            (Parsed::BareResult, Some(key)) if path == self.paths.libcni_file(key) => {
                Record::from_bare_result(key.clone(), &text)
            }
            (Parsed::BareResult, _) => {
                let reason = "a bare result, as libcni before 0.8.0 wrote it: it doesn't say whose";
                return Ok(Some(Err(reason.to_owned())));
            }
        };
        if !self.paths.is_place_of(path, &record.key) {
            return Ok(Some(Err(format!("it is about {}, whose place is another", record.key))));
        }
        let sandbox = match record.state {
            State::Attached => sandbox::read(&self.paths.sandbox_file(&record.key), path),
            State::Adding | State::DeletePending => None,
        };
        Ok(Some(Ok(Stored { record, path: path.to_owned(), sandbox })))
    }

    fn belongs_to_another(&self, path: &Path, key: &AttachmentKey) -> Result<bool, RuntimeError> {
        let occupant = self.read(path, Some(key))?;
        Ok(matches!(occupant, Some(Ok(stored)) if stored.record.key != *key))
    }
}

/// The plain files of a directory, sorted, without temporary ones.
fn files_of(directory: &Path) -> Result<Vec<PathBuf>, RuntimeError> {
    let listing = match fs::read_dir(directory) {
        Ok(listing) => listing,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed("listing", directory)(error)),
    };
    let mut paths = Vec::new();
    for entry in listing {
        let entry = entry.map_err(failed("listing", directory))?;
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_directory && !is_temporary_name(&entry.file_name()) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

fn write(path: &Path, record: &Record, durability: Durability) -> Result<(), RuntimeError> {
    write_atomic(path, record.to_json().as_bytes(), 0o600, durability)
        .map_err(|error| store_error("writing", path, error))
}

/// Does what needs a directory, which is nearly always there; makes it if not.
fn making(
    directory: &Path,
    work: impl Fn() -> Result<(), RuntimeError>,
) -> Result<(), RuntimeError> {
    match work() {
        Err(RuntimeError::Store { source, .. }) if source.kind() == ErrorKind::NotFound => {
            ensure(directory)?;
            work()
        }
        other => other,
    }
}

fn ensure(directory: &Path) -> Result<(), RuntimeError> {
    create_dir_all(directory, 0o700)
        .map_err(|error| store_error("making the directory", directory, error))
}

fn remove_file(path: &Path) -> Result<(), RuntimeError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("removing", path)(error)),
        _ => Ok(()),
    }
}

/// Waits until the names beside `path` are on the disk.
fn sync_parent(path: &Path) -> Result<(), RuntimeError> {
    let Some(parent) = path.parent() else { return Ok(()) };
    fs::File::open(parent).and_then(|file| file.sync_all()).map_err(failed("syncing", parent))
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(IoError) -> RuntimeError {
    move |source| RuntimeError::Store { action, path: path.to_owned(), source }
}

fn store_error(action: &'static str, path: &Path, error: podwire_sys::PathError) -> RuntimeError {
    RuntimeError::Store { action, path: path.to_owned(), source: error.source }
}

#[cfg(test)]
mod tests;
