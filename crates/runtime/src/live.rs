//! Which recorded attachments still have their namespace: for `--keep-live`,
//! where an operator asks to keep what lives.
//!
//! Conservative in what it calls dead: a namespace counts as dead only if its
//! path was recorded and now leads to nothing, to something that is no
//! namespace, or to one of which boot id and cookie prove that it is another
//! (the runtime writes both down beside the record). Without that proof, as for
//! what libcni has recorded, it counts as alive if any namespace is there, even
//! a stranger's, and as unknown (so kept) if the path can't be looked at or the directory
//! that held it is missing too, as it is in another mount namespace. Where no path
//! was recorded, the one in the result is looked at.

use std::cell::OnceCell;
use std::path::Path;

use podwire_spec::id::{AttachmentKey, NetworkName};
use podwire_sys::boot::{BootId, boot_id};
use podwire_sys::netns::{NetNs, OpenError};

use crate::error::RuntimeError;
use crate::operations::ValidSet;
use crate::store::{Listing, State, Stored};

/// Whether an attachment's namespace is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// A namespace is at the recorded path.
    Alive,
    /// None is.
    Dead,
    /// It can't be told.
    Unknown,
}

impl Liveness {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Dead => "dead",
            Self::Unknown => "unknown",
        }
    }
}

/// Looks for the namespace of one recorded attachment.
pub fn liveness(stored: &Stored) -> Liveness {
    Watcher::new().liveness(stored)
}

/// Looks for the namespaces of many: it asks the kernel once which boot this is, if
/// that matters to any.
#[derive(Debug, Default)]
pub struct Watcher {
    /// `None` where the kernel doesn't tell, and then no boot proves anything.
    boot: OnceCell<Option<BootId>>,
}

impl Watcher {
    /// One that has looked at nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn boot(&self) -> Option<&BootId> {
        self.boot.get_or_init(|| boot_id().ok()).as_ref()
    }

    /// Looks for the namespace of a recorded attachment.
    pub fn liveness(&self, stored: &Stored) -> Liveness {
        let path = stored.record.namespace_path();
        if path.is_empty() {
            return Liveness::Unknown;
        }
        if let Some(recorded) = &stored.sandbox
            && self.boot().is_some_and(|boot| boot != recorded.boot())
        {
            // No namespace outlives its boot, whatever is at the path.
            return Liveness::Dead;
        }
        let path = Path::new(&*path);
        match NetNs::open(path) {
            Ok(netns) if self.is_another(&netns, stored) => Liveness::Dead,
            Ok(_) => Liveness::Alive,
            // What only a result names may be a virtual machine's socket.
            Err(OpenError::NotANamespace { .. }) if stored.record.netns.is_empty() => {
                Liveness::Unknown
            }
            Err(OpenError::NotANamespace { .. }) => Liveness::Dead,
            Err(OpenError::Missing { .. }) if path.starts_with("/proc") => Liveness::Dead,
            Err(OpenError::Missing { .. }) => {
                if path.parent().is_some_and(Path::is_dir) {
                    Liveness::Dead
                } else {
                    Liveness::Unknown
                }
            }
            Err(OpenError::Io { .. }) => Liveness::Unknown,
        }
    }

    /// Whether a namespace is proven not to be the one that was recorded.
    fn is_another(&self, present: &NetNs, stored: &Stored) -> bool {
        let Some(recorded) = &stored.sandbox else { return false };
        let present = self.boot().and_then(|boot| present.identity_in(boot));
        present.is_some_and(|present| *recorded != present)
    }
}

/// The attachments of `network` to keep when those without a namespace are to
/// go: finished ones that are alive or can't be told. To collect the others use
/// [`Runtime::gc_dead`](crate::Runtime::gc_dead), which chooses while no ADD runs.
///
/// # Errors
/// If a record that may be one of this network can't be understood: what it
/// tells of may live, and plugins would remove it. `podwire doctor` shows
/// such files; a DEL of the attachment sets them aside.
pub fn keep_live(network: &NetworkName, listing: &Listing) -> Result<ValidSet, RuntimeError> {
    if let Some(unreadable) = listing.unreadable.iter().find(|one| one.may_be_of(network)) {
        return Err(RuntimeError::Record {
            path: unreadable.path.clone(),
            reason: format!(
                "{}; whether its attachment lives can't be told, so nothing is collected; name \
                 what to keep, or delete the attachment",
                unreadable.reason
            ),
        });
    }
    let watcher = Watcher::new();
    let keys = listing.attachments.iter().filter_map(|stored| {
        let record = &stored.record;
        let keep = record.key.network == *network
            && record.state == State::Attached
            && watcher.liveness(stored) != Liveness::Dead;
        keep.then(|| record.key.clone())
    });
    Ok(ValidSet::of(keys.map(|AttachmentKey { container_id, ifname, .. }| (container_id, ifname))))
}
