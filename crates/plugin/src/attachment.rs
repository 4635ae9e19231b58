//! The attachment that ADD, CHECK and DEL are about.

use podwire_spec::id::{AttachmentKey, ContainerId, IfName, NetworkName};

use crate::owner::OwnerMark;
use crate::sandbox::Sandbox;

/// One container's interface on one network.
#[derive(Debug)]
pub struct Attachment {
    /// Network, container id and interface: the key of everything on the host.
    pub key: AttachmentKey,
    /// Where the container's interface lives.
    pub sandbox: Sandbox,
    /// The owner of what is made for it.
    pub owner: OwnerMark,
}

impl Attachment {
    /// An attachment with its owner mark.
    pub fn new(key: AttachmentKey, sandbox: Sandbox) -> Self {
        let owner = OwnerMark::of(&key);
        Self { key, sandbox, owner }
    }

    /// The container's id.
    pub fn container_id(&self) -> &ContainerId {
        &self.key.container_id
    }

    /// The interface's name inside the container.
    pub fn ifname(&self) -> &IfName {
        &self.key.ifname
    }

    /// The network's name.
    pub fn network(&self) -> &NetworkName {
        &self.key.network
    }

    /// The sandbox path as text, for the result's `sandbox` field.
    pub fn sandbox_text(&self) -> String {
        self.sandbox.path().map(|path| path.display().to_string()).unwrap_or_default()
    }
}
