//! CHECK: is an attachment still as ADD left it?

use podwire_spec::operation::Operation;
use podwire_spec::request::RequestInputs;

use super::chain::Chain;
use super::known::{Known, Source};
use super::network_ref::NetworkRef;
use super::versions;
use crate::attachment::Attachment;
use crate::deadlines::Clock;
use crate::error::RuntimeError;
use crate::runtime::Runtime;
use crate::store::check_length;

/// A CHECK without complaint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// Every plugin found what it left.
    Sound,
    /// The configuration says `disableCheck`: no plugin was asked.
    Disabled,
}

impl Runtime {
    /// Checks an attachment: each plugin of the list, in order, with the
    /// recorded result.
    ///
    /// As with DEL, what was recorded at ADD is used by default; but
    /// `disableCheck` counts wherever it stands, in the record or in the
    /// network as it is configured now.
    ///
    /// # Errors
    /// [`RuntimeError::NotAttached`] without the record of a finished ADD,
    /// [`RuntimeError::Unsupported`] before 0.4.0, else what the first plugin
    /// that found a difference said.
    pub fn check<'a>(
        &self,
        network: impl Into<NetworkRef<'a>>,
        attachment: &Attachment,
        source: Source,
    ) -> Result<Checked, RuntimeError> {
        let network = network.into();
        attachment.validate()?;
        let key = attachment.key(network.name());
        check_length(&key)?;
        if let Some(list) = network.loaded().map(crate::load::Network::list) {
            versions::require(list, Operation::Check)?;
            if list.disable_check {
                return Ok(Checked::Disabled);
            }
        }
        let container_lock = self.locks.container(&key.container_id)?;
        let found = self.store.find(&key)?;
        if let Some(stored) = found.pending() {
            return Err(RuntimeError::Record {
                path: stored.path.clone(),
                reason: format!(
                    "{key} is being deleted: a DEL began and did not finish; run it again"
                ),
            });
        }
        if found.attached.is_none() {
            if found.unfinished.is_none() {
                container_lock.retire();
            }
            return Err(match found.unreadable.into_iter().next() {
                Some(file) => RuntimeError::Record { path: file.path, reason: file.reason },
                None => RuntimeError::NotAttached(key),
            });
        }
        let known = Known { key, found };
        let Some(basis) = known.basis(self, network.loaded(), attachment, source) else {
            return Err(RuntimeError::NotAttached(known.key));
        };
        let list = basis.network.list();
        versions::require(list, Operation::Check)?;
        if list.disable_check {
            return Ok(Checked::Disabled);
        }
        let prev_result = match &basis.prev_result {
            Ok(Some(prev_result)) => prev_result,
            Ok(None) => return Err(RuntimeError::NotAttached(known.key)),
            Err(error) => {
                let path = known.found.attached.map(|stored| stored.path).unwrap_or_default();
                let reason = format!("its result can't be given to the plugins: {error}");
                return Err(RuntimeError::Record { path, reason });
            }
        };
        let chain = Chain {
            runtime: self,
            list,
            operation: Operation::Check,
            target: Some(&basis.target),
            clock: Clock::start(self.deadlines.operation, self.deadlines.plugin),
            lock: None,
            cancellable: true,
        };
        for (index, plugin) in list.plugins.iter().enumerate() {
            let inputs = RequestInputs {
                prev_result: Some(prev_result),
                capability_arguments: Some(&basis.target.capability_args),
                valid_attachments: None,
                strip_capabilities: self.strip_capabilities,
            };
            chain.call(index, plugin, &inputs)?;
        }
        Ok(Checked::Sound)
    }
}
