//! Starting a child.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::FdFlags;

use super::{Cancel, ChildSpec, Group, ProcessError, Stopped};

/// How long to wait before each further try of a program that is being written
/// (B095), in milliseconds: about two seconds in all.
const BUSY_PAUSES: [u64; 9] = [5, 10, 20, 40, 80, 160, 320, 600, 800];
/// How often a cancel flag is looked at.
pub(super) const FLAG_PERIOD: Duration = Duration::from_millis(20);

/// Starts the child, trying again while its file is open for writing.
pub(super) fn start(spec: &ChildSpec<'_>, started: Instant) -> Result<Child, ProcessError> {
    let not_started = |reason| ProcessError::NotStarted { program: spec.program.clone(), reason };
    let mut pauses = BUSY_PAUSES.iter();
    let mut attempts = 0;
    loop {
        if let Some(reason) = must_stop(spec, started) {
            return Err(not_started(reason));
        }
        attempts += 1;
        let source = match command(spec).spawn() {
            Ok(child) => return Ok(child),
            Err(error) => error,
        };
        match pauses.next() {
            Some(pause) if source.kind() == io::ErrorKind::ExecutableFileBusy => {
                wait(spec, started, Duration::from_millis(*pause));
            }
            _ => {
                let program = spec.program.clone();
                return Err(ProcessError::Start { program, attempts, source });
            }
        }
    }
}

/// Whether deadline or caller say that the child must not run (any longer).
pub(super) fn must_stop(spec: &ChildSpec<'_>, started: Instant) -> Option<Stopped> {
    let cancelled = match spec.cancel {
        Cancel::Never => false,
        Cancel::Flag(flag) => flag.load(Ordering::Acquire),
        Cancel::Readable(fd) => {
            let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
            poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
        }
    };
    if cancelled {
        return Some(Stopped::Cancelled);
    }
    let deadline = spec.deadline?;
    (started.elapsed() >= deadline).then_some(Stopped::Deadline(deadline))
}

/// Waits for `pause`, or until the child must not run any longer.
fn wait(spec: &ChildSpec<'_>, started: Instant, pause: Duration) {
    let end = Instant::now() + pause;
    while must_stop(spec, started).is_none() {
        let mut left = end.saturating_duration_since(Instant::now());
        if let Some(deadline) = spec.deadline {
            left = left.min(deadline.saturating_sub(started.elapsed()));
        }
        if left.is_zero() {
            return;
        }
        let mut fds = Vec::new();
        match spec.cancel {
            Cancel::Never => {}
            Cancel::Flag(_) => left = left.min(FLAG_PERIOD),
            Cancel::Readable(fd) => fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN)),
        }
        // An interrupted poll only shortens this turn.
        let _ = poll(&mut fds, Some(&timespec(left)));
    }
}

/// The kernel's form of a duration.
pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

fn command(spec: &ChildSpec<'_>) -> Command {
    let mut command = Command::new(&spec.program);
    command.args(&spec.arguments);
    if spec.group == Group::Own {
        command.process_group(0);
    }
    if !spec.inherit_environment {
        command.env_clear();
    }
    command.envs(spec.environment.iter().map(|(name, value)| (name, value)));
    if let Some(directory) = &spec.directory {
        command.current_dir(directory);
    }
    // An empty pipe would do too; /dev/null is one descriptor less to watch.
    command.stdin(if spec.stdin.is_empty() { Stdio::null() } else { Stdio::piped() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if !spec.inherit.is_empty() {
        let kept: Vec<RawFd> = spec.inherit.iter().map(AsRawFd::as_raw_fd).collect();
        let keep_open = move || {
            for fd in &kept {
                // SAFETY: the spec borrows the descriptors for as long as the command
                // lives, so they are open here, in the forked copy of our process.
                let fd = unsafe { BorrowedFd::borrow_raw(*fd) };
                rustix::io::fcntl_setfd(fd, FdFlags::empty())?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec the closure makes system calls only, which is
        // async-signal-safe: it neither allocates nor takes a lock.
        unsafe { command.pre_exec(keep_open) };
    }
    command
}

/// Text for an error about more than one try.
pub(super) fn tries(attempts: u32) -> String {
    if attempts > 1 { format!(" ({attempts} tries)") } else { String::new() }
}

/// Names of the signals that end plugins in practice, signal(7).
pub(super) fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return None,
    })
}
