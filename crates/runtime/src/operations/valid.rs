//! The attachments that GC must keep.

use std::collections::BTreeSet;

use podwire_spec::id::{AttachmentKey, ContainerId, IfName};

/// The attachments of one network that are valid: what GC keeps.
///
/// There is no default. A set that is empty because a list could not be had
/// would free everything that lives, so the empty one must be asked for by
/// [`ValidSet::none`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidSet(BTreeSet<(ContainerId, IfName)>);

impl ValidSet {
    /// These and no others.
    pub fn of(attachments: impl IntoIterator<Item = (ContainerId, IfName)>) -> Self {
        Self(attachments.into_iter().collect())
    }

    /// None: everything of the network goes.
    pub fn none() -> Self {
        Self(BTreeSet::new())
    }

    /// Whether it holds the attachment of its container and interface.
    pub fn contains(&self, key: &AttachmentKey) -> bool {
        self.0.contains(&(key.container_id.clone(), key.ifname.clone()))
    }

    /// The attachments, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &(ContainerId, IfName)> {
        self.0.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
