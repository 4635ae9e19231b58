//! The executor that every runtime wants: a child process per call.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

use podwire_spec::id::PluginType;
use podwire_sys::process::{Cancel, ChildSpec, ProcessError, Stopped, run};

use super::{CallError, Executor, PluginCall, PluginOutput, Searched, find};

/// What a plugin may print at most, in bytes; results are some kilobytes.
const STDOUT_LIMIT: usize = 4 << 20;
/// What of its standard error is kept, in bytes; the rest is dropped.
const STDERR_LIMIT: usize = 1 << 20;

/// Runs plugins as child processes, each in a process group of its own.
///
/// At the end of its time the group gets SIGTERM and then SIGKILL; processes
/// that outlive the plugin and hold its pipes are not waited for (B041). A
/// program that is just being written is tried again (B095).
#[derive(Clone, Copy, Debug)]
pub struct ProcessExecutor {
    /// The time between SIGTERM and SIGKILL.
    pub grace: Duration,
}

impl Default for ProcessExecutor {
    fn default() -> Self {
        Self { grace: podwire_sys::process::DEFAULT_GRACE }
    }
}

impl Executor for ProcessExecutor {
    fn find(
        &self,
        plugin_type: &PluginType,
        directories: &[PathBuf],
    ) -> Result<PathBuf, Vec<Searched>> {
        find::find(plugin_type.as_str(), directories)
    }

    fn run(&self, call: &PluginCall<'_>) -> Result<PluginOutput, CallError> {
        let mut spec = ChildSpec::new(call.program);
        spec.environment =
            call.environment.iter().map(|(key, value)| (key.into(), value.clone())).collect();
        spec.stdin = call.request;
        spec.inherit = call.inherit.map(|fd: BorrowedFd<'_>| vec![fd]).unwrap_or_default();
        spec.deadline = Some(call.time_limit);
        spec.grace = self.grace;
        spec.stdout_limit = STDOUT_LIMIT;
        spec.stderr_limit = STDERR_LIMIT;
        spec.cancel = call.cancel.map_or(Cancel::Never, Cancel::Flag);
        let outcome = run(&spec).map_err(|error| match error {
            ProcessError::Start { source, attempts, .. } => {
                CallError::NotStarted { error: source, attempts }
            }
            ProcessError::NotStarted { reason: Stopped::Deadline(limit), .. } => {
                CallError::TimedOut { limit, stderr: Vec::new() }
            }
            ProcessError::NotStarted { reason: Stopped::Cancelled, .. } => {
                CallError::Cancelled { stderr: Vec::new() }
            }
            error @ (ProcessError::Watch { .. } | ProcessError::Unkillable { .. }) => {
                CallError::Lost(error.to_string())
            }
        })?;
        let stderr = outcome.stderr.bytes;
        match outcome.stopped {
            Some(Stopped::Deadline(limit)) => Err(CallError::TimedOut { limit, stderr }),
            Some(Stopped::Cancelled) => Err(CallError::Cancelled { stderr }),
            None if outcome.stdout.dropped > 0 => {
                Err(CallError::TooMuchOutput { limit: STDOUT_LIMIT, stderr })
            }
            None => Ok(PluginOutput { exit: outcome.exit, stdout: outcome.stdout.bytes, stderr }),
        }
    }
}
