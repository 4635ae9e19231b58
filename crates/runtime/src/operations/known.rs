//! What is known of an attachment when it is to be deleted or checked, and
//! the deletion itself: shared by DEL, GC and an ADD that replaces.

use std::path::PathBuf;

use podwire_spec::error::Error;
use podwire_spec::id::AttachmentKey;
use podwire_spec::operation::Operation;

use super::chain::{Chain, Target};
use super::sandbox;
use super::versions;
use crate::attachment::Attachment;
use crate::deadlines::Clock;
use crate::error::RuntimeError;
use crate::load::Network;
use crate::locks::NetworkLock;
use crate::observer::Notice;
use crate::runtime::Runtime;
use crate::store::{Found, Record, State, Stored};

/// Whose configuration and arguments count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// Those recorded at ADD, as the specification wants it; what the caller
    /// gives is used where nothing is recorded.
    #[default]
    Recorded,
    /// Those the caller gives, as libcni does it.
    Given,
}

/// The records of one attachment, under its container's lock.
pub(super) struct Known {
    pub(super) key: AttachmentKey,
    pub(super) found: Found,
}

/// A list to run over, what to tell of the attachment, and the result.
pub(super) struct Basis {
    pub(super) network: Network,
    pub(super) target: Target,
    /// The recorded result in the version of the network; `None` if there is
    /// none or the version has no place for it.
    pub(super) prev_result: Result<Option<String>, Error>,
}

impl Known {
    /// Looks an attachment up; files of it that can't be understood are set
    /// aside, so that they block nothing.
    pub(super) fn find(runtime: &Runtime, key: &AttachmentKey) -> Result<Self, RuntimeError> {
        let mut found = runtime.store.find(key)?;
        for unreadable in found.unreadable.drain(..) {
            let to = runtime.store.set_aside(&unreadable)?;
            runtime.observer.on_notice(&Notice::SetAside {
                from: unreadable.path,
                to,
                reason: unreadable.reason,
            });
        }
        Ok(Self { key: key.clone(), found })
    }

    /// What to run with. `None` if there is neither a usable record nor a
    /// network given.
    pub(super) fn basis(
        &self,
        runtime: &Runtime,
        given: Option<&Network>,
        attachment: &Attachment,
        source: Source,
    ) -> Option<Basis> {
        let record = self.found.best().map(|stored| &stored.record);
        let recorded = record.filter(|_| source == Source::Recorded);
        let network = recorded
            .and_then(|record| self.recorded_network(runtime, record))
            .map(|network| network.with_folder_of(given))
            .or_else(|| given.cloned())?;
        let mut target = match recorded {
            Some(record) => recorded_target(record, attachment),
            None => Target {
                key: self.key.clone(),
                netns: attachment.netns.clone().unwrap_or_default(),
                args: attachment.args_text(),
                capability_args: attachment.capability_args.clone(),
            },
        };
        target.netns = sandbox::unless_own(target.netns);
        let prev_result = record.map_or(Ok(None), |record| prev_result(record, &network));
        Some(Basis { network, target, prev_result })
    }

    /// Runs DEL over the list and forgets the attachment.
    pub(super) fn delete(
        &self,
        runtime: &Runtime,
        given: Option<&Network>,
        attachment: &Attachment,
        lock: &NetworkLock,
    ) -> Result<(), RuntimeError> {
        if let Some(basis) = self.basis(runtime, given, attachment, Source::Recorded) {
            self.run_delete(runtime, &basis, lock)
        } else {
            self.cannot_delete()
        }
    }

    /// Runs DEL on a basis and forgets the attachment.
    pub(super) fn run_delete(
        &self,
        runtime: &Runtime,
        basis: &Basis,
        lock: &NetworkLock,
    ) -> Result<(), RuntimeError> {
        let chain = Chain {
            runtime,
            list: basis.network.list(),
            operation: Operation::Del,
            target: Some(&basis.target),
            clock: Clock::start(runtime.deadlines.operation, runtime.deadlines.plugin),
            lock: Some(lock),
            cancellable: false,
        };
        let prev_result = match &basis.prev_result {
            Ok(prev_result) => prev_result.as_deref(),
            Err(error) => {
                runtime.observer.on_notice(&Notice::NoPreviousResult {
                    attachment: self.key.clone(),
                    reason: error.to_string(),
                });
                None
            }
        };
        // From here on it may be half gone. A deletion that can't be written
        // down, as on a full disk, is still better done than not.
        if let Some(Stored { record, .. }) = &self.found.attached {
            let pending = Record { state: State::DeletePending, ..record.clone() };
            let _ = runtime.store.write_intent(&pending);
        }
        super::del::run_all(&chain, prev_result)?;
        runtime.store.remove(&self.found)
    }

    /// There is no configuration to delete with: fine if nothing is recorded.
    pub(super) fn cannot_delete(&self) -> Result<(), RuntimeError> {
        match self.found.best() {
            None => Ok(()),
            Some(stored) => Err(RuntimeError::Record {
                path: stored.path.clone(),
                reason: format!(
                    "{} is recorded without a usable configuration; name the network's \
                     configuration to delete it",
                    self.key
                ),
            }),
        }
    }

    fn recorded_network(&self, runtime: &Runtime, record: &Record) -> Option<Network> {
        let config = record.config.as_deref()?;
        let unusable = |reason: String| {
            runtime.observer.on_notice(&Notice::RecordedConfigurationUnusable {
                attachment: self.key.clone(),
                reason,
            });
        };
        match Network::from_recorded(config) {
            Ok(network) if *network.name() == self.key.network => Some(network),
            Ok(network) => {
                unusable(format!("it is of network \"{}\"", network.name()));
                None
            }
            Err(error) => {
                unusable(error.to_string());
                None
            }
        }
    }
}

/// The recorded result as the plugins of `network` are to see it.
fn prev_result(record: &Record, network: &Network) -> Result<Option<String>, Error> {
    let list = network.list();
    // Before 0.4.0 DEL had no previous result.
    if record.result.is_empty() || !versions::supports(list, Operation::Check) {
        return Ok(None);
    }
    versions::recorded_result(&record.result, list).map(Some)
}

/// What was told at ADD. An empty path from the caller is news: the namespace
/// is gone. Another path is not believed before the recorded one, which may
/// be a stranger's by now but was ours.
fn recorded_target(record: &Record, attachment: &Attachment) -> Target {
    let said_gone = attachment.netns.as_ref().is_some_and(|path| path.as_os_str().is_empty());
    let netns = if said_gone {
        PathBuf::new()
    } else if record.netns.is_empty() {
        attachment.netns.clone().unwrap_or_default()
    } else {
        PathBuf::from(&record.netns)
    };
    let recorded = Attachment {
        container_id: record.key.container_id.clone(),
        ifname: record.key.ifname.clone(),
        netns: Some(netns.clone()),
        args: record.args.clone(),
        capability_args: record.capability_args.clone(),
    };
    Target {
        key: record.key.clone(),
        netns,
        args: recorded.args_text(),
        capability_args: recorded.capability_args,
    }
}
