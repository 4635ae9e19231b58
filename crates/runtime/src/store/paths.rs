//! Where in the cache directory what lies.
//!
//! libcni joins network, container and interface with `-`, which all three
//! may hold: `a-b` + `c` and `a` + `b-c` are one name (B046). So a record is
//! believed only if the names inside it are the ones asked for, and when
//! libcni's place is taken by another attachment ours lies under
//! `podwire/results`, joined with `:`, which none of the three can hold.

use std::path::{Path, PathBuf};

use podwire_spec::error::Error;
use podwire_spec::id::{AttachmentKey, ContainerId, IfName, NetworkName};

/// The longest file name of Linux file systems, in bytes.
const NAME_MAX: usize = 255;

/// The places of one cache directory.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    cache: PathBuf,
}

impl Paths {
    pub(crate) fn new(cache: PathBuf) -> Self {
        Self { cache }
    }

    /// Finished attachments, as libcni has them.
    pub(crate) fn results(&self) -> PathBuf {
        self.cache.join("results")
    }

    /// What is ours alone.
    pub(crate) fn own(&self) -> PathBuf {
        self.cache.join("podwire")
    }

    /// Finished attachments whose place under `results` is taken.
    pub(crate) fn own_results(&self) -> PathBuf {
        self.own().join("results")
    }

    /// Attachments whose ADD has begun.
    pub(crate) fn intents(&self) -> PathBuf {
        self.own().join("intents")
    }

    /// Which namespace finished attachments were in.
    pub(crate) fn sandboxes(&self) -> PathBuf {
        self.own().join("sandboxes")
    }

    /// The file that says which namespace an attachment was in.
    pub(crate) fn sandbox_file(&self, key: &AttachmentKey) -> PathBuf {
        self.sandboxes().join(own_name(key))
    }

    /// Files that could not be understood.
    pub(crate) fn quarantine(&self) -> PathBuf {
        self.own().join("quarantine")
    }

    /// libcni's file for an attachment.
    pub(crate) fn libcni_file(&self, key: &AttachmentKey) -> PathBuf {
        self.results().join(format!("{}-{}-{}", key.network, key.container_id, key.ifname))
    }

    /// The file for an attachment whose libcni file belongs to another.
    pub(crate) fn own_file(&self, key: &AttachmentKey) -> PathBuf {
        self.own_results().join(own_name(key))
    }

    /// The file for an attachment whose ADD has begun.
    pub(crate) fn intent_file(&self, key: &AttachmentKey) -> PathBuf {
        self.intents().join(own_name(key))
    }

    /// The attachment that a file of ours is about, by its name.
    pub(crate) fn key_of(path: &Path) -> Option<AttachmentKey> {
        let mut parts = path.file_name()?.to_str()?.split(':');
        let (network, container_id, ifname) = (parts.next()?, parts.next()?, parts.next()?);
        Some(AttachmentKey {
            network: NetworkName::parse(network).ok()?,
            container_id: ContainerId::parse(container_id).ok()?,
            ifname: IfName::parse(ifname).ok().filter(|_| parts.next().is_none())?,
        })
    }

    /// Whether a record about `key` belongs at `path`.
    pub(crate) fn is_place_of(&self, path: &Path, key: &AttachmentKey) -> bool {
        path == self.libcni_file(key) || path == self.own_file(key) || path == self.intent_file(key)
    }
}

fn own_name(key: &AttachmentKey) -> String {
    format!("{}:{}:{}", key.network, key.container_id, key.ifname)
}

/// Refuses names that together can't be a file name, before anything runs.
pub(crate) fn check_length(key: &AttachmentKey) -> Result<(), Error> {
    let length = own_name(key).len();
    if length <= NAME_MAX {
        return Ok(());
    }
    Err(Error::environment(format!(
        "network name, container id and interface name are {length} bytes with their separators; \
         a record's file name holds {NAME_MAX}"
    ))
    .with_details("use a shorter container id or network name"))
}
