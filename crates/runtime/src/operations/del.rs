//! DEL: detaching a container.

use podwire_spec::request::RequestInputs;

use super::chain::Chain;
use super::known::{Known, Source};
use super::network_ref::NetworkRef;
use crate::attachment::Attachment;
use crate::error::RuntimeError;
use crate::runtime::Runtime;
use crate::store::check_length;

/// A finished DEL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// Whether the attachment was recorded. If it wasn't, DEL still ran over
    /// the given list: something may have been left by a runtime that died.
    pub was_recorded: bool,
}

impl Runtime {
    /// Detaches a container from a network.
    ///
    /// By default the plugins get what was recorded at ADD: configuration,
    /// arguments, capability arguments, namespace and result. Without a record
    /// the given network is used, with no result; with neither there is
    /// nothing to do, which is a success.
    ///
    /// The plugins run in reverse; the first failure ends the operation and
    /// keeps the record, as the specification asks: a plugin further on may
    /// free an address that the failed one still forwards to (B017).
    ///
    /// # Errors
    /// What the first plugin that failed said, or why the record can't be read
    /// or removed.
    pub fn del<'a>(
        &self,
        network: impl Into<NetworkRef<'a>>,
        attachment: &Attachment,
        source: Source,
    ) -> Result<Deleted, RuntimeError> {
        let network = network.into();
        attachment.validate()?;
        let key = attachment.key(network.name());
        if check_length(&key).is_err() {
            // ADD refuses such names before anything runs, so there is nothing
            // to delete; and a DEL that fails for ever blocks its container.
            return Ok(Deleted { was_recorded: false });
        }
        let container_lock = self.locks.container(&key.container_id)?;
        let network_lock = self.locks.network_shared(&key.network)?;
        let known = Known::find(self, &key)?;
        let was_recorded = known.found.best().is_some();
        match known.basis(self, network.loaded(), attachment, source) {
            Some(basis) => known.run_delete(self, &basis, &network_lock)?,
            None => known.cannot_delete()?,
        }
        drop(network_lock);
        container_lock.retire();
        self.locks.tidy_network(&key.network);
        Ok(Deleted { was_recorded })
    }
}

/// Runs DEL over the list, last plugin first, up to the first failure.
pub(super) fn run_all(chain: &Chain<'_>, prev_result: Option<&str>) -> Result<(), RuntimeError> {
    run_first(chain, chain.list.plugins.len(), prev_result)
}

/// The same over the first `count` plugins of the list only.
pub(super) fn run_first(
    chain: &Chain<'_>,
    count: usize,
    prev_result: Option<&str>,
) -> Result<(), RuntimeError> {
    for (index, plugin) in chain.list.plugins.iter().enumerate().take(count).rev() {
        let inputs = RequestInputs {
            prev_result,
            capability_arguments: chain.target.map(|target| &target.capability_args),
            valid_attachments: None,
            strip_capabilities: chain.runtime.strip_capabilities,
        };
        chain.call(index, plugin, &inputs)?;
    }
    Ok(())
}
