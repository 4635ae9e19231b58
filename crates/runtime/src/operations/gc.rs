//! GC: removing what belongs to no valid attachment.

use podwire_spec::id::{AttachmentKey, ContainerId, IfName, PluginType};
use podwire_spec::operation::Operation;
use podwire_spec::request::{RequestInputs, ValidAttachment};

use super::ValidSet;
use super::chain::Chain;
use super::known::Known;
use super::versions;
use crate::attachment::Attachment;
use crate::deadlines::Clock;
use crate::error::RuntimeError;
use crate::live;
use crate::load::Network;
use crate::locks::NetworkLock;
use crate::runtime::Runtime;
use crate::store::{Listing, State, Stored};

/// How GC is to go about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GcMode {
    /// It collects.
    #[default]
    Collect,
    /// It only says what it would collect.
    DryRun,
}

/// One attachment that GC found not to be valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    /// The attachment.
    pub attachment: AttachmentKey,
    /// How far its record says it had come.
    pub state: State,
    /// What became of it.
    pub outcome: StaleOutcome,
}

/// What became of an attachment that is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleOutcome {
    /// It is removed.
    Removed,
    /// A dry run: it would be tried.
    WouldBeRemoved,
    /// Another operation holds its container; the next GC tries again.
    Busy,
    /// It could not be removed; why, is among the failures.
    Failed,
}

impl StaleOutcome {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::WouldBeRemoved => "would be removed",
            Self::Busy => "busy, left for the next GC",
            Self::Failed => "NOT removed",
        }
    }
}

/// What GC did, or would do.
#[derive(Debug, Default)]
pub struct GcReport {
    /// The configuration says `disableGC`: nothing was done.
    pub disabled: bool,
    /// The attachments that were taken for valid.
    pub kept: Vec<(ContainerId, IfName)>,
    /// Recorded attachments that are not valid.
    pub stale: Vec<Stale>,
    /// Plugins that were (or would be) told to collect what they know of.
    pub plugins: Vec<PluginType>,
    /// All that went wrong; GC goes on after each (B056).
    pub failures: Vec<RuntimeError>,
    /// What is wrong in the store, but by its place no record of this network.
    pub warnings: Vec<RuntimeError>,
}

impl GcReport {
    /// Whether nothing went wrong.
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty()
    }
}

impl Runtime {
    /// Removes what belongs to attachments of `network` that are not in
    /// `valid`: first those that are recorded, finished or not, each by a DEL
    /// with its own recorded configuration and arguments (B037); then, from
    /// 1.1.0 on, every plugin is told to collect by itself.
    ///
    /// No ADD or DEL of the network runs beside it. A failure stops nothing;
    /// all are in the report, which the caller must look at.
    ///
    /// # Errors
    /// Only if nothing could be begun: the network is in use, or the store
    /// can't be listed (a store that can't be read is no empty one).
    pub fn gc(
        &self,
        network: &Network,
        valid: &ValidSet,
        mode: GcMode,
    ) -> Result<GcReport, RuntimeError> {
        self.gc_choosing(network, mode, |_| Ok(valid.clone()))
    }

    /// The same, keeping what [`live::keep_live`] keeps. The choice is made
    /// while no ADD runs: one made before could miss an attachment that was
    /// finished meanwhile, and free what lives (B005).
    ///
    /// # Errors
    /// As [`Runtime::gc`], and if a record can't be understood that may be one
    /// of this network.
    pub fn gc_dead(&self, network: &Network, mode: GcMode) -> Result<GcReport, RuntimeError> {
        self.gc_choosing(network, mode, |listing| live::keep_live(network.name(), listing))
    }

    fn gc_choosing(
        &self,
        network: &Network,
        mode: GcMode,
        choose: impl FnOnce(&Listing) -> Result<ValidSet, RuntimeError>,
    ) -> Result<GcReport, RuntimeError> {
        let mut report = GcReport::default();
        let list = network.list();
        if list.disable_gc {
            report.disabled = true;
            return Ok(report);
        }
        let lock = match mode {
            GcMode::Collect => Some(self.locks.network_exclusive(network.name())?),
            GcMode::DryRun => None,
        };
        let listing = self.store.list()?;
        let valid = &choose(&listing)?;
        report.kept = valid.iter().cloned().collect();
        for file in listing.unreadable {
            // What it tells of can't be collected; that of another network is no
            // affair of this GC.
            if file.may_be_of(network.name()) {
                let reason = format!(
                    "{}; what it tells of is not collected; delete the attachment to have the \
                     file set aside",
                    file.reason
                );
                report.failures.push(RuntimeError::Record { path: file.path, reason });
            } else {
                report.warnings.push(RuntimeError::Record { path: file.path, reason: file.reason });
            }
        }
        let is_stale = |stored: &Stored| {
            stored.record.key.network == *network.name() && !valid.contains(&stored.record.key)
        };
        for stored in listing.attachments.into_iter().filter(is_stale) {
            let attachment = stored.record.key;
            let outcome = match &lock {
                None => StaleOutcome::WouldBeRemoved,
                Some(lock) => match self.collect(network, &attachment, lock) {
                    Ok(outcome) => outcome,
                    Err(cause) => {
                        report.failures.push(RuntimeError::StaleNotRemoved {
                            attachment: attachment.clone(),
                            cause: Box::new(cause),
                        });
                        StaleOutcome::Failed
                    }
                },
            };
            report.stale.push(Stale { attachment, state: stored.record.state, outcome });
        }
        if versions::supports(list, Operation::Gc) {
            self.tell_plugins(network, valid, lock.as_ref(), &mut report);
        }
        if let Some(lock) = lock {
            if let Err(error) = self.store.sweep() {
                report.failures.push(error);
            }
            drop(lock);
            self.locks.tidy_containers();
            self.locks.tidy_network(network.name());
        }
        Ok(report)
    }

    /// Deletes one stale attachment.
    fn collect(
        &self,
        network: &Network,
        key: &AttachmentKey,
        lock: &NetworkLock,
    ) -> Result<StaleOutcome, RuntimeError> {
        let container_lock = match self.locks.container_for_gc(&key.container_id) {
            Err(RuntimeError::Locked { .. }) => return Ok(StaleOutcome::Busy),
            other => other?,
        };
        let known = Known::find(self, key)?;
        let attachment = Attachment::new(key.container_id.clone(), key.ifname.clone());
        known.delete(self, Some(network), &attachment, lock)?;
        container_lock.retire();
        Ok(StaleOutcome::Removed)
    }

    /// Runs GC over the list; every plugin, whatever the others say.
    fn tell_plugins(
        &self,
        network: &Network,
        valid: &ValidSet,
        lock: Option<&NetworkLock>,
        report: &mut GcReport,
    ) {
        let list = network.list();
        let valid: Vec<ValidAttachment> = valid
            .iter()
            .map(|(container_id, ifname)| ValidAttachment {
                container_id: container_id.to_string(),
                ifname: ifname.to_string(),
            })
            .collect();
        let chain = Chain {
            runtime: self,
            list,
            operation: Operation::Gc,
            target: None,
            clock: Clock::start(self.deadlines.operation, self.deadlines.plugin),
            lock,
            cancellable: false,
        };
        let inputs = RequestInputs {
            valid_attachments: Some(&valid),
            strip_capabilities: self.strip_capabilities,
            ..RequestInputs::default()
        };
        for (index, plugin) in list.plugins.iter().enumerate() {
            report.plugins.push(plugin.plugin_type.clone());
            if lock.is_some()
                && let Err(error) = chain.call(index, plugin, &inputs)
            {
                report.failures.push(error);
            }
        }
    }
}
