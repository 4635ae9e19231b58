//! Executing plugins: behind a trait, so that an embedder can put plugins in
//! a container or a virtual machine, and a test can do without processes.

mod find;
mod outcome;
mod process;

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use podwire_spec::id::PluginType;

pub use find::{FoundInstead, Searched};
pub use outcome::{Failure, PluginFailure};
pub(crate) use outcome::{read_success, stderr_tail};
pub use podwire_sys::process::Exit;
pub use process::ProcessExecutor;

/// Finds and runs plugins.
pub trait Executor: Send + Sync {
    /// The executable of a plugin type, looked up anew at each call.
    ///
    /// # Errors
    /// The places searched, with what was found there.
    fn find(
        &self,
        plugin_type: &PluginType,
        directories: &[PathBuf],
    ) -> Result<PathBuf, Vec<Searched>>;

    /// Runs one plugin to its end, or to the end of its time.
    ///
    /// # Errors
    /// [`CallError`] if it couldn't be started or didn't end by itself; a
    /// plugin that ended with a failure is an [`PluginOutput`].
    fn run(&self, call: &PluginCall<'_>) -> Result<PluginOutput, CallError>;
}

/// One execution of a plugin.
#[derive(Clone, Debug)]
pub struct PluginCall<'a> {
    /// The executable, as [`Executor::find`] gave it.
    pub program: &'a Path,
    /// The `CNI_` variables; they come on top of the runtime's own environment.
    pub environment: &'a [(&'static str, OsString)],
    /// What the plugin reads from its standard input.
    pub request: &'a [u8],
    /// How long it may take.
    pub time_limit: Duration,
    /// A descriptor that stays open in the plugin: the network's lock.
    pub inherit: Option<BorrowedFd<'a>>,
    /// Set by the embedder to end the call before its time.
    pub cancel: Option<&'a AtomicBool>,
}

/// What a plugin that ended by itself (or by somebody's signal) left.
#[derive(Clone, Debug)]
pub struct PluginOutput {
    /// How it ended.
    pub exit: Exit,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error; when there was very much, the end of it.
    pub stderr: Vec<u8>,
}

/// Why a plugin gave no output of its own accord.
#[derive(Debug)]
pub enum CallError {
    /// It didn't start; after retries if the file was being written.
    NotStarted {
        /// The kernel's answer.
        error: std::io::Error,
        /// How often it was tried.
        attempts: u32,
    },
    /// It ran out of time and was ended, with all processes of its group.
    TimedOut {
        /// The time it was given.
        limit: Duration,
        /// What it had written to standard error until then.
        stderr: Vec<u8>,
    },
    /// The embedder's cancel flag ended it.
    Cancelled {
        /// What it had written to standard error until then.
        stderr: Vec<u8>,
    },
    /// It wrote more to standard output than is taken.
    TooMuchOutput {
        /// The limit, in bytes.
        limit: usize,
        /// What it wrote to standard error.
        stderr: Vec<u8>,
    },
    /// It started, and what became of it can't be told; says why.
    Lost(String),
}
