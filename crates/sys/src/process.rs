//! Child processes that can't hang us.
//!
//! A child runs in a process group of its own, with a deadline for it and for all
//! that it started: SIGTERM to the group, a grace, SIGKILL to the group. What it
//! prints is kept up to a bound. When the child itself has ended we do not wait for
//! others that hold its pipes (B041).
//!
//! ```no_run
//! use std::time::Duration;
//! use podwire_sys::process::{ChildSpec, run};
//!
//! let mut spec = ChildSpec::new("/opt/cni/bin/bridge");
//! spec.stdin = br#"{"cniVersion":"1.1.0"}"#;
//! spec.deadline = Some(Duration::from_secs(60));
//! spec.environment = vec![("CNI_COMMAND".into(), "VERSION".into())];
//! let outcome = run(&spec)?;
//! println!("{}: {} bytes", outcome.exit, outcome.stdout.bytes.len());
//! # Ok::<(), podwire_sys::process::ProcessError>(())
//! ```

mod capture;
mod pump;
mod size_limit;
mod spawn;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use capture::Captured;
pub use size_limit::{BeyondSizeLimit, beyond_size_limit};

/// What of stdout and of stderr is kept if the spec does not say otherwise.
pub const DEFAULT_OUTPUT_LIMIT: usize = 8 << 20;
/// The time between SIGTERM and SIGKILL if the spec does not say otherwise.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(2);

/// Stops a child from outside, on Ctrl-C for instance.
#[derive(Debug, Clone, Copy, Default)]
pub enum Cancel<'a> {
    /// Only the deadline stops the child.
    #[default]
    Never,
    /// Stop when the flag is set; looked at every 20 ms.
    Flag(&'a AtomicBool),
    /// Stop when the descriptor becomes readable (a pipe, eventfd or signalfd). It is
    /// not read from.
    Readable(BorrowedFd<'a>),
}

/// Which process group a child is in, and so who ends when it must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Group {
    /// One of its own, which is signalled as a whole.
    #[default]
    Own,
    /// Ours: whoever ends us ends it. Only the child itself is signalled.
    Inherited,
}

/// What to run and within which bounds.
#[derive(Debug, Clone)]
pub struct ChildSpec<'a> {
    /// The file to execute; also the child's `argv[0]`. Not looked up in PATH.
    pub program: PathBuf,
    /// Further arguments.
    pub arguments: Vec<OsString>,
    /// Variables set for the child.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether the child sees our environment below those variables.
    pub inherit_environment: bool,
    /// The working directory, ours if `None`.
    pub directory: Option<PathBuf>,
    /// What the child reads, followed by the end of file.
    pub stdin: &'a [u8],
    /// The child's process group.
    pub group: Group,
    /// Descriptors that stay open in the child, under the same numbers. All others
    /// of ours are close-on-exec.
    pub inherit: Vec<BorrowedFd<'a>>,
    /// After this long the group is told to end; `None` waits as long as it takes.
    pub deadline: Option<Duration>,
    /// How long the group may take to end before it is killed.
    pub grace: Duration,
    /// How many bytes of stdout are kept; the rest is read and dropped.
    pub stdout_limit: usize,
    /// How many bytes of stderr are kept; the rest is read and dropped.
    pub stderr_limit: usize,
    /// Stops the child before its deadline.
    pub cancel: Cancel<'a>,
}

impl ChildSpec<'_> {
    /// Runs `program` with our environment, no input, no deadline and the default
    /// limits.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            inherit_environment: true,
            directory: None,
            stdin: &[],
            group: Group::Own,
            inherit: Vec::new(),
            deadline: None,
            grace: DEFAULT_GRACE,
            stdout_limit: DEFAULT_OUTPUT_LIMIT,
            stderr_limit: DEFAULT_OUTPUT_LIMIT,
            cancel: Cancel::Never,
        }
    }
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this status, 0 to 255.
    Code(i32),
    /// A signal of this number ended it.
    Signal(i32),
}

impl Exit {
    /// Whether it exited with status 0.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "exit status {code}"),
            Self::Signal(number) => match spawn::signal_name(*number) {
                Some(name) => write!(formatter, "ended by {name}"),
                None => write!(formatter, "ended by signal {number}"),
            },
        }
    }
}

/// Why we stopped a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// It ran longer than this, its deadline.
    Deadline(Duration),
    /// The caller's [`Cancel`] said so.
    Cancelled,
}

impl fmt::Display for Stopped {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadline(after) => write!(formatter, "stopped after its deadline of {after:?}"),
            Self::Cancelled => formatter.write_str("stopped because the call was cancelled"),
        }
    }
}

/// A child that has ended and what it said.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// How it ended.
    pub exit: Exit,
    /// Set when we told it to end, whatever `exit` says.
    pub stopped: Option<Stopped>,
    /// What it wrote to its standard output.
    pub stdout: Captured,
    /// What it wrote to its standard error.
    pub stderr: Captured,
    /// From before the start to after the end.
    pub elapsed: Duration,
}

impl Outcome {
    /// Whether it exited with status 0 without being stopped.
    pub fn is_success(&self) -> bool {
        self.stopped.is_none() && self.exit.is_success()
    }
}

/// Why there is no [`Outcome`].
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The program did not start: missing, not executable, still being written
    /// after all tries (`ExecutableFileBusy`, B095), no memory.
    #[error("starting {}{}: {source}", program.display(), spawn::tries(*attempts))]
    Start {
        /// The file that was to be executed.
        program: PathBuf,
        /// How often it was tried.
        attempts: u32,
        /// The kernel's answer.
        source: io::Error,
    },
    /// We were cancelled or the deadline passed before the program had started.
    #[error("starting {}: {reason}", program.display())]
    NotStarted {
        /// The file that was to be executed.
        program: PathBuf,
        /// Which of the two.
        reason: Stopped,
    },
    /// The child started but could not be watched; its group was killed.
    #[error("watching {}: {source}", program.display())]
    Watch {
        /// The program that ran.
        program: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// SIGKILL had no effect for seconds: the child is stuck inside the kernel.
    #[error("{} (pid {pid}) does not end even when killed; it is stuck in the kernel", program.display())]
    Unkillable {
        /// The program that runs.
        program: PathBuf,
        /// Its process id.
        pid: u32,
    },
}

/// Runs a child to its end, or to its deadline.
///
/// # Errors
/// [`ProcessError`] when it did not start or could not be watched. A child that
/// failed or was stopped is an [`Outcome`].
pub fn run(spec: &ChildSpec<'_>) -> Result<Outcome, ProcessError> {
    let started = std::time::Instant::now();
    let child = spawn::start(spec, started)?;
    pump::watch(spec, child, started)
}

#[cfg(test)]
mod tests;
