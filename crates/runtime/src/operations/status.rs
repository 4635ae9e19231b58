//! STATUS: could a network serve an ADD now?

use podwire_spec::operation::Operation;
use podwire_spec::request::RequestInputs;

use super::chain::Chain;
use super::versions;
use crate::deadlines::Clock;
use crate::error::RuntimeError;
use crate::load::Network;
use crate::runtime::Runtime;

/// A STATUS without complaint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Every plugin says that it can serve an ADD.
    Ready,
    /// The configuration is older than 1.1.0, which brought STATUS: no plugin
    /// was asked.
    NotAsked,
}

impl Runtime {
    /// Asks each plugin of a network, in order, whether it could serve an ADD.
    ///
    /// # Errors
    /// What the first plugin that can't said; its code is kept (50 or 51).
    pub fn status(&self, network: &Network) -> Result<Status, RuntimeError> {
        let list = network.list();
        if !versions::supports(list, Operation::Status) {
            return Ok(Status::NotAsked);
        }
        let chain = Chain {
            runtime: self,
            list,
            operation: Operation::Status,
            target: None,
            clock: Clock::start(self.deadlines.operation, self.deadlines.plugin),
            lock: None,
            cancellable: true,
        };
        let inputs = RequestInputs {
            strip_capabilities: self.strip_capabilities,
            ..RequestInputs::default()
        };
        for (index, plugin) in list.plugins.iter().enumerate() {
            chain.call(index, plugin, &inputs)?;
        }
        Ok(Status::Ready)
    }
}
