//! What an embedder may watch: every plugin call with its time and outcome,
//! what plugins write to standard error, and what the runtime had to put up
//! with. Watching changes nothing.

use std::time::Duration;

use podwire_spec::id::{AttachmentKey, NetworkName, PluginType};
use podwire_spec::operation::Operation;

use crate::exec::Failure;

/// The plugin call that is reported on.
#[derive(Clone, Copy, Debug)]
pub struct CallInfo<'a> {
    /// The network.
    pub network: &'a NetworkName,
    /// The plugin.
    pub plugin: &'a PluginType,
    /// Its place in the list, from 0.
    pub index: usize,
    /// What is asked of it.
    pub operation: Operation,
    /// The attachment, where the operation concerns one.
    pub attachment: Option<&'a AttachmentKey>,
}

/// Something that did not stop the operation, but that a person should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A state file could not be read and was set aside.
    SetAside {
        /// Where it lay.
        from: std::path::PathBuf,
        /// Where it lies now.
        to: std::path::PathBuf,
        /// What was wrong with it.
        reason: String,
    },
    /// The stored result can't be given to the plugins; they get none.
    NoPreviousResult {
        /// The attachment.
        attachment: AttachmentKey,
        /// Why.
        reason: String,
    },
    /// The stored configuration can't be used; the one given is.
    RecordedConfigurationUnusable {
        /// The attachment.
        attachment: AttachmentKey,
        /// Why.
        reason: String,
    },
    /// What a failed ADD had made is being removed.
    RollingBack {
        /// The attachment.
        attachment: AttachmentKey,
    },
    /// An earlier attachment whose namespace is gone is removed before the
    /// new ADD.
    ReplacingDead {
        /// The attachment.
        attachment: AttachmentKey,
    },
}

/// Watches a [`Runtime`](crate::Runtime). Every method does nothing unless
/// it is implemented; calls may come from several threads.
pub trait Observer: Send + Sync {
    /// A plugin is about to be started.
    fn on_call_start(&self, call: &CallInfo<'_>) {
        let _ = call;
    }

    /// A plugin has ended, after `duration`.
    fn on_call_end(&self, call: &CallInfo<'_>, duration: Duration, outcome: Result<(), &Failure>) {
        let _ = (call, duration, outcome);
    }

    /// One line that the plugin wrote to standard error, after it ended.
    fn on_stderr(&self, call: &CallInfo<'_>, line: &str) {
        let _ = (call, line);
    }

    /// Something worth a warning.
    fn on_notice(&self, notice: &Notice) {
        let _ = notice;
    }
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}
