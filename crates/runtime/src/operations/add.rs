//! ADD: attaching a container, or leaving nothing behind.

use podwire_spec::config::NetworkList;
use podwire_spec::error::{Error, ErrorCode};
use podwire_spec::operation::Operation;
use podwire_spec::request::RequestInputs;
use podwire_spec::result::{CniResult, VersionedResult};

use super::chain::{Chain, Target};
use super::known::Known;
use super::sandbox;
use super::versions;
use crate::attachment::Attachment;
use crate::deadlines::Clock;
use crate::error::{Rollback, RuntimeError};
use crate::exec::{Exit, Failure};
use crate::live::{Liveness, liveness};
use crate::load::Network;
use crate::locks::NetworkLock;
use crate::observer::Notice;
use crate::runtime::Runtime;
use crate::store::{Record, State, check_length};

/// What ADD does when the attachment is recorded already (B038).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It refuses: the specification forbids a second ADD without a DEL.
    #[default]
    Refuse,
    /// It deletes first what is left of an attachment whose namespace is
    /// gone, or whose ADD did not finish; refuses if it may be alive.
    ReplaceDead,
}

/// A finished ADD.
#[derive(Clone, Debug)]
pub struct Attached {
    /// The result in the newest shape.
    pub result: CniResult,
    /// The result as it is recorded, in the version of the configuration.
    pub raw: String,
}

impl Runtime {
    /// Attaches a container to a network.
    ///
    /// Every executable is found before the first plugin runs, and the intent
    /// is on the disk before it. If a plugin fails, DEL runs over the whole
    /// list, in reverse and with time of its own; what can't be removed stays
    /// recorded as a pending deletion.
    ///
    /// # Errors
    /// [`RuntimeError::AddFailed`] once a plugin has run; before that what
    /// was wrong, with nothing changed.
    pub fn add(
        &self,
        network: &Network,
        attachment: &Attachment,
        existing: Existing,
    ) -> Result<Attached, RuntimeError> {
        attachment.validate()?;
        let netns = attachment.netns.clone().filter(|path| !path.as_os_str().is_empty());
        let Some(netns) = netns else {
            let error = Error::environment("ADD needs the path of a network namespace");
            return Err(error.with_details("give it as CNI_NETNS or as an argument").into());
        };
        let target = Target {
            key: attachment.key(network.name()),
            netns,
            args: attachment.args_text(),
            capability_args: attachment.capability_args.clone(),
        };
        check_length(&target.key)?;
        let list = network.list();
        let mut chain = Chain {
            runtime: self,
            list,
            operation: Operation::Add,
            target: Some(&target),
            clock: Clock::start(self.deadlines.operation, self.deadlines.plugin),
            lock: None,
            cancellable: true,
        };
        let programs = list
            .plugins
            .iter()
            .map(|plugin| chain.find(&plugin.plugin_type))
            .collect::<Result<Vec<_>, _>>()?;

        sandbox::refuse_own(&target.netns)?;
        let container_lock = self.locks.container(&target.key.container_id)?;
        let network_lock = self.locks.network_shared(network.name())?;
        chain.lock = Some(&network_lock);
        // Waiting for a lock takes nothing from the plugins' time.
        chain.clock = Clock::start(self.deadlines.operation, self.deadlines.plugin);
        let mut record = Record {
            key: target.key.clone(),
            state: State::Adding,
            config: Some(network.recorded().to_vec()),
            netns: target.netns.to_string_lossy().into_owned(),
            args: attachment.args.clone(),
            capability_args: attachment.capability_args.clone(),
            result: String::new(),
        };
        let begun = self
            .make_room(network, attachment, &target, existing, &network_lock)
            .and_then(|()| sandbox::refuse_taken(list, &target))
            .and_then(|()| self.store.write_intent(&record));
        if let Err(error) = begun {
            drop(network_lock);
            container_lock.retire();
            self.locks.tidy_network(network.name());
            return Err(error);
        }

        let outcome = run_all(&chain, &programs).and_then(|(result, raw)| {
            record.state = State::Attached;
            record.result.clone_from(&raw);
            self.store.commit(&record).map(|_| Attached { result, raw })
        });
        let cause = match outcome {
            Ok(attached) => return Ok(attached),
            Err(cause) => cause,
        };
        let rollback = self.roll_back(list, &target, &network_lock, &cause, record);
        drop(network_lock);
        if !matches!(rollback, Rollback::Failed(_)) {
            container_lock.retire();
            self.locks.tidy_network(network.name());
        }
        Err(RuntimeError::AddFailed { attachment: target.key, cause: Box::new(cause), rollback })
    }

    /// Deals with what is recorded of the attachment already.
    fn make_room(
        &self,
        network: &Network,
        attachment: &Attachment,
        target: &Target,
        existing: Existing,
        lock: &NetworkLock,
    ) -> Result<(), RuntimeError> {
        let known = Known::find(self, &target.key)?;
        let Some(stored) = known.found.best() else { return Ok(()) };
        let unfinished = stored.record.state != State::Attached;
        let gone = unfinished || liveness(stored) == Liveness::Dead;
        if existing == Existing::Refuse || !gone {
            return Err(RuntimeError::AlreadyAttached {
                attachment: target.key.clone(),
                record: stored.path.clone(),
                unfinished,
            });
        }
        self.observer.on_notice(&Notice::ReplacingDead { attachment: target.key.clone() });
        known.delete(self, Some(network), attachment, lock)
    }

    /// Removes what a failed ADD has made, with a deadline of its own.
    fn roll_back(
        &self,
        list: &NetworkList,
        target: &Target,
        lock: &NetworkLock,
        cause: &RuntimeError,
        mut record: Record,
    ) -> Rollback {
        let mut outcome = Ok(Rollback::NotNeeded);
        let reached = reached(cause, list.plugins.len());
        if reached > 0 {
            self.observer.on_notice(&Notice::RollingBack { attachment: target.key.clone() });
            let chain = Chain {
                runtime: self,
                list,
                operation: Operation::Del,
                target: Some(target),
                clock: Clock::start(self.deadlines.rollback, self.deadlines.plugin),
                lock: Some(lock),
                cancellable: false,
            };
            outcome = super::del::run_first(&chain, reached, None).map(|()| Rollback::Done);
        }
        // A record that was committed but not synced goes as well.
        let outcome = outcome.and_then(|done| {
            let found = self.store.find(&target.key)?;
            self.store.remove(&found).map(|()| done)
        });
        match outcome {
            Ok(done) => done,
            Err(error) => {
                record.state = State::DeletePending;
                record.result.clear();
                // If this can't be written the intent of the ADD still stands,
                // which is acted on in the same way.
                let _ = self.store.write_intent(&record);
                Rollback::Failed(Box::new(error))
            }
        }
    }
}

/// Runs ADD over the list; gives the final result.
fn run_all(
    chain: &Chain<'_>,
    programs: &[std::path::PathBuf],
) -> Result<(CniResult, String), RuntimeError> {
    let mut previous: Option<(VersionedResult, String)> = None;
    for ((index, plugin), program) in chain.list.plugins.iter().enumerate().zip(programs) {
        let inputs = RequestInputs {
            prev_result: previous.as_ref().map(|(_, raw)| raw.as_str()),
            capability_arguments: chain.target.map(|target| &target.capability_args),
            valid_attachments: None,
            strip_capabilities: chain.runtime.strip_capabilities,
        };
        let printed = chain.call_program(index, plugin, program, &inputs)?;
        if let Some(error) = versions::error_instead(&printed.stdout) {
            let failure = Failure::Reported { error, exit: Exit::Code(0) };
            return Err(chain.failure(index, &plugin.plugin_type, failure, &printed.stderr));
        }
        let result = versions::read_result(&printed.stdout, chain.list).map_err(|error| {
            chain.failure(index, &plugin.plugin_type, Failure::BadResult(error), &printed.stderr)
        })?;
        previous = Some(result);
    }
    match previous {
        Some((result, raw)) => Ok((result.into_newest()?, raw)),
        None => {
            Err(Error::config(format!("network \"{}\" has no plugins", chain.list.name)).into())
        }
    }
}

/// How many plugins of the list, from the first on, may have made something.
///
/// Usually all: DEL goes over the whole list. Code 3 of the first plugin says
/// that no DEL is due. A plugin that found there already what it is to make has
/// made nothing, and its DEL would remove what lives: another runtime's
/// attachment, or one in another cache directory.
fn reached(cause: &RuntimeError, all: usize) -> usize {
    let RuntimeError::Plugin(failure) = cause else { return all };
    let Failure::Reported { error, .. } = &failure.failure else { return all };
    match error.code {
        ErrorCode::ALREADY_EXISTS => failure.index,
        ErrorCode::UnknownContainer if failure.index == 0 => 0,
        // The words of the Go host-local, whose errors carry no code.
        ErrorCode::Internal
            if failure.index == 0 && error.msg.contains("duplicate allocation is not allowed") =>
        {
            0
        }
        _ => all,
    }
}
