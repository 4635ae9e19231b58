//! Why an operation of the runtime failed: each variant holds what a program
//! may act on, and says to a person what failed, on which object, why and
//! what to do.

use std::fmt;
use std::path::PathBuf;

use podwire_spec::error::{Error, ErrorCode};
use podwire_spec::id::{AttachmentKey, NetworkName, PluginType};
use podwire_spec::operation::Operation;

use crate::exec::{PluginFailure, Searched};
use crate::load::Problem;

/// What became of the cleaning up after a failed ADD.
#[derive(Debug)]
pub enum Rollback {
    /// Nothing had been made: no plugin ran, or the first one said that the
    /// container is unknown (code 3) or that what it is to make is there
    /// already ([`ErrorCode::ALREADY_EXISTS`]), which ask for no DEL.
    NotNeeded,
    /// DEL reached every plugin; nothing is left.
    Done,
    /// DEL failed as well. The attachment stays in the store as one whose
    /// deletion is pending; the next DEL or GC tries again.
    Failed(Box<RuntimeError>),
}

/// Why an operation of the runtime failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The caller gave a value that the protocol doesn't allow.
    Invalid(Error),
    /// A configuration file or directory can't be used.
    Load(Problem),
    /// No network of that name in the configuration directory.
    NetworkNotFound {
        /// The name asked for.
        name: String,
        /// Where it was looked for.
        directory: PathBuf,
        /// The files that could not be read: it may be in one of them.
        problems: Vec<Problem>,
    },
    /// A plugin has no executable.
    PluginNotFound {
        /// The network that wants it.
        network: NetworkName,
        /// The plugin.
        plugin: PluginType,
        /// Where it was looked for, with what lay there.
        searched: Vec<Searched>,
    },
    /// A plugin failed.
    Plugin(Box<PluginFailure>),
    /// An ADD failed; what it had made is removed, or marked for it.
    AddFailed {
        /// The attachment.
        attachment: AttachmentKey,
        /// Why.
        cause: Box<RuntimeError>,
        /// What became of the cleaning up.
        rollback: Rollback,
    },
    /// The attachment exists already.
    AlreadyAttached {
        /// The attachment.
        attachment: AttachmentKey,
        /// Its record.
        record: PathBuf,
        /// The record says that an earlier ADD did not finish.
        unfinished: bool,
    },
    /// The container has an interface of that name already, of which nothing
    /// is recorded here: another runtime, or one with another cache
    /// directory, may have made it. Nothing was run.
    InterfaceExists {
        /// The attachment.
        attachment: AttachmentKey,
        /// The namespace.
        netns: PathBuf,
    },
    /// CHECK of something that was never attached.
    NotAttached(AttachmentKey),
    /// The version of the network's configuration has no such operation.
    Unsupported {
        /// The network.
        network: NetworkName,
        /// The operation.
        operation: Operation,
        /// The version of the configuration.
        version: String,
    },
    /// Another operation holds the lock.
    Locked {
        /// What is locked.
        what: String,
        /// Who holds it and for how long was waited.
        reason: String,
    },
    /// A lock could not be taken for another reason than being held.
    Lock {
        /// The lock's file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The attachment store can't be read or written.
    Store {
        /// What was tried.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A record can't be understood.
    Record {
        /// The file, where it lies now.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The time for the whole operation ran out before this plugin started.
    DeadlineExceeded {
        /// The network.
        network: NetworkName,
        /// The operation.
        operation: Operation,
        /// The plugin that was not started.
        plugin: PluginType,
    },
    /// One attachment that GC found stale could not be removed.
    StaleNotRemoved {
        /// The attachment.
        attachment: AttachmentKey,
        /// Why.
        cause: Box<RuntimeError>,
    },
}

impl RuntimeError {
    /// The CNI code that fits: the plugin's own where one failed.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Invalid(error) => error.code,
            Self::Load(problem) => problem.code(),
            Self::NetworkNotFound { problems, .. } => {
                if problems.iter().any(|problem| problem.being_written) {
                    ErrorCode::TryAgainLater
                } else {
                    ErrorCode::InvalidConfiguration
                }
            }
            Self::Plugin(failure) => failure.code(),
            Self::AddFailed { cause, .. } | Self::StaleNotRemoved { cause, .. } => cause.code(),
            Self::NotAttached(_) => ErrorCode::UnknownContainer,
            Self::Unsupported { .. } => ErrorCode::IncompatibleVersion,
            Self::Locked { .. } | Self::DeadlineExceeded { .. } => ErrorCode::TryAgainLater,
            Self::Store { .. } | Self::Record { .. } | Self::Lock { .. } => ErrorCode::Io,
            Self::InterfaceExists { .. } => ErrorCode::ALREADY_EXISTS,
            Self::PluginNotFound { .. } | Self::AlreadyAttached { .. } => ErrorCode::Internal,
        }
    }

    /// The same as a CNI error object, for callers that print one.
    pub fn to_cni_error(&self) -> Error {
        Error::new(self.code(), self.to_string())
    }
}

impl fmt::Display for RuntimeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => error.fmt(formatter),
            Self::Load(problem) => problem.fmt(formatter),
            Self::NetworkNotFound { name, directory, problems } => {
                write!(
                    formatter,
                    "no network configuration with name {name:?} in {}",
                    directory.display()
                )?;
                if !problems.is_empty() {
                    formatter.write_str("; it may be in a file that can't be used: ")?;
                }
                for (index, problem) in problems.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "; " };
                    write!(formatter, "{separator}{problem}")?;
                }
                Ok(())
            }
            Self::PluginNotFound { network, plugin, searched } => {
                write!(formatter, "network \"{network}\": failed to find plugin \"{plugin}\": ")?;
                if searched.is_empty() {
                    return formatter.write_str(
                        "no plugin directories are given; set CNI_PATH or --plugin-dir",
                    );
                }
                formatter.write_str("searched ")?;
                for (index, place) in searched.iter().enumerate() {
                    let separator = if index == 0 { "" } else { ", " };
                    write!(formatter, "{separator}{place}")?;
                }
                formatter.write_str("; install it there, or name its directory")
            }
            Self::Plugin(failure) => failure.fmt(formatter),
            Self::AddFailed { attachment, cause, rollback } => {
                write!(formatter, "attaching {attachment}: {cause}")?;
                match rollback {
                    Rollback::NotNeeded => Ok(()),
                    Rollback::Done => formatter.write_str("; what it had made is removed again"),
                    Rollback::Failed(error) => write!(
                        formatter,
                        "; removing what it had made failed too: {error}; the deletion is pending \
                         and the next del or gc tries it again"
                    ),
                }
            }
            Self::AlreadyAttached { attachment, record, unfinished: false } => write!(
                formatter,
                "{attachment} is attached already (record {}); delete it first, the protocol \
                 forbids a second ADD",
                record.display()
            ),
            Self::AlreadyAttached { attachment, record, unfinished: true } => write!(
                formatter,
                "an earlier ADD of {attachment} did not finish (record {}); delete it first so \
                 that what it left is removed",
                record.display()
            ),
            Self::InterfaceExists { attachment, netns } => write!(
                formatter,
                "{attachment}: interface {} already exists in the container ({}), and nothing is \
                 recorded of it here; nothing was changed; delete the attachment with the runtime \
                 and cache directory that made it, or choose another interface name",
                attachment.ifname,
                netns.display()
            ),
            Self::NotAttached(attachment) => write!(
                formatter,
                "{attachment} is not attached: there is no record of a finished ADD to check \
                 against"
            ),
            Self::Unsupported { network, operation, version } => write!(
                formatter,
                "network \"{network}\" of version {version:?} does not support the {operation} \
                 command; it needs cniVersion {} or newer",
                operation.since()
            ),
            Self::Locked { what, reason } => {
                write!(
                    formatter,
                    "{what} is in use by another operation: {reason}; try again later"
                )
            }
            Self::Lock { path, reason } => {
                write!(formatter, "lock {}: {reason}", path.display())
            }
            Self::Store { action, path, source } => {
                write!(formatter, "attachment store: {action} {}: {source}", path.display())
            }
            Self::Record { path, reason } => {
                write!(formatter, "attachment record {}: {reason}", path.display())
            }
            Self::DeadlineExceeded { network, operation, plugin } => write!(
                formatter,
                "network \"{network}\": the time for {operation} ran out before plugin \
                 \"{plugin}\" was started; allow more time, or look at the slower ones before it"
            ),
            Self::StaleNotRemoved { attachment, cause } => {
                write!(formatter, "failed to delete stale attachment {attachment}: {cause}")
            }
        }
    }
}

impl std::error::Error for RuntimeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Invalid(error) => Some(error),
            Self::Plugin(failure) => Some(failure.as_ref()),
            Self::AddFailed { cause, .. } | Self::StaleNotRemoved { cause, .. } => Some(cause),
            Self::Store { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<Error> for RuntimeError {
    fn from(error: Error) -> Self {
        Self::Invalid(error)
    }
}
