//! Feeding a child, reading it, and ending it in time.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};

use super::capture::{Capture, Progress};
use super::spawn::{FLAG_PERIOD, must_stop, timespec};
use super::{Cancel, ChildSpec, Exit, Group, Outcome, ProcessError, Stopped};

/// How long output is still collected after the child has ended. What it wrote is
/// already in the pipe; only others that keep writing could prolong this.
const DRAIN: Duration = Duration::from_millis(100);
/// How long a killed child may take to disappear.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// What has been done to end the child.
#[derive(Clone, Copy)]
enum Phase {
    Running,
    /// SIGTERM was sent; SIGKILL follows at this time.
    Terminating(Instant),
    /// SIGKILL was sent; at this time we give up.
    Killed(Instant),
}

struct Watched<'a> {
    spec: &'a ChildSpec<'a>,
    started: Instant,
    pid: Pid,
    pidfd: OwnedFd,
    stdin: Option<(OwnedFd, &'a [u8])>,
    stdout: Capture,
    stderr: Capture,
    phase: Phase,
    stopped: Option<Stopped>,
}

/// Watches a started child to its end.
pub(super) fn watch(
    spec: &ChildSpec<'_>,
    mut child: Child,
    started: Instant,
) -> Result<Outcome, ProcessError> {
    let program = || spec.program.clone();
    let pid = child.id();
    let mut watched = match prepare(spec, &mut child, started) {
        Ok(watched) => watched,
        Err(source) => return Err(abandon(spec, &mut child, source)),
    };
    match watched.until_ended() {
        Ok(true) => {}
        Ok(false) => return Err(ProcessError::Unkillable { program: program(), pid }),
        Err(source) => return Err(abandon(spec, &mut child, source.into())),
    }
    // Reaped only here: until now the zombie kept the group's number from reuse.
    let status =
        child.wait().map_err(|source| ProcessError::Watch { program: program(), source })?;
    let exit = match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or_default()),
    };
    Ok(Outcome {
        exit,
        stopped: watched.stopped,
        stdout: watched.stdout.into_captured(),
        stderr: watched.stderr.into_captured(),
        elapsed: started.elapsed(),
    })
}

/// Kills what can't be watched.
fn abandon(spec: &ChildSpec<'_>, child: &mut Child, source: io::Error) -> ProcessError {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let (Some(pid), Group::Own) = (pid, spec.group) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
    ProcessError::Watch { program: spec.program.clone(), source }
}

fn prepare<'a>(
    spec: &'a ChildSpec<'a>,
    child: &mut Child,
    started: Instant,
) -> io::Result<Watched<'a>> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or(io::ErrorKind::InvalidData)?;
    // The child is not reaped yet, so the number is still its own.
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let stdin = child.stdin.take().map(OwnedFd::from);
    let stdout = child.stdout.take().map(OwnedFd::from);
    let stderr = child.stderr.take().map(OwnedFd::from);
    for pipe in [&stdin, &stdout, &stderr].into_iter().flatten() {
        rustix::fs::fcntl_setfl(pipe, rustix::fs::fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
    }
    Ok(Watched {
        spec,
        started,
        pid,
        pidfd,
        stdin: stdin.map(|pipe| (pipe, spec.stdin)),
        stdout: Capture::new(stdout, spec.stdout_limit),
        stderr: Capture::new(stderr, spec.stderr_limit),
        phase: Phase::Running,
        stopped: None,
    })
}

impl Watched<'_> {
    /// Returns when the child has ended and, if it was told to end, its group was
    /// killed; `false` when not even that ended it.
    fn until_ended(&mut self) -> Result<bool, Errno> {
        let mut exited = false;
        loop {
            if exited && self.is_finished() {
                return Ok(true);
            }
            self.advance_phase()?;
            if let Phase::Killed(until) = self.phase {
                if exited {
                    self.drain()?;
                    return Ok(true);
                }
                if Instant::now() >= until {
                    return Ok(false);
                }
            }
            exited |= self.poll_once(exited)?;
            if exited {
                self.stdin = None;
                if matches!(self.phase, Phase::Running) {
                    self.drain()?;
                    return Ok(true);
                }
            }
        }
    }

    /// Whether a group that was told to end has let go of the pipes: then no one is
    /// left to grant the rest of the grace to.
    fn is_finished(&mut self) -> bool {
        let let_go = self.stdout.pipe().is_none() && self.stderr.pipe().is_none();
        if let_go && matches!(self.phase, Phase::Terminating(_)) {
            // Members that closed their pipes.
            let _ = self.signal(Signal::KILL);
        }
        let_go
    }

    fn advance_phase(&mut self) -> Result<(), Errno> {
        match self.phase {
            Phase::Running => {
                if let Some(reason) = must_stop(self.spec, self.started) {
                    self.stopped = Some(reason);
                    self.stdin = None;
                    self.signal(Signal::TERM)?;
                    self.phase = Phase::Terminating(Instant::now() + self.spec.grace);
                }
            }
            Phase::Terminating(until) if Instant::now() >= until => {
                self.signal(Signal::KILL)?;
                self.phase = Phase::Killed(Instant::now() + KILL_PATIENCE);
            }
            Phase::Terminating(_) | Phase::Killed(_) => {}
        }
        Ok(())
    }

    /// To the whole group, or to the child in ours; the unreaped child keeps
    /// its number from reuse.
    fn signal(&self, signal: Signal) -> Result<(), Errno> {
        let sent = match self.spec.group {
            Group::Own => kill_process_group(self.pid, signal),
            Group::Inherited => kill_process(self.pid, signal),
        };
        match sent {
            // EPERM: every member changed its user; the grace and the end of the
            // child still bound the wait.
            Ok(()) | Err(Errno::SRCH | Errno::PERM) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Waits for one event and handles it; whether the child has (just) ended.
    fn poll_once(&mut self, exited: bool) -> Result<bool, Errno> {
        let mut timeout = self.next_timeout();
        let mut fds = Vec::with_capacity(5);
        let end = add(&mut fds, (!exited).then_some(&self.pidfd), PollFlags::IN);
        let input = add(&mut fds, self.stdin.as_ref().map(|(pipe, _)| pipe), PollFlags::OUT);
        let output = add(&mut fds, self.stdout.pipe(), PollFlags::IN);
        let errors = add(&mut fds, self.stderr.pipe(), PollFlags::IN);
        if matches!(self.phase, Phase::Running) {
            match self.spec.cancel {
                Cancel::Never => {}
                Cancel::Flag(_) => {
                    timeout = Some(timeout.map_or(FLAG_PERIOD, |left| left.min(FLAG_PERIOD)));
                }
                Cancel::Readable(fd) => fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN)),
            }
        }
        match poll(&mut fds, timeout.map(timespec).as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(error),
        }
        let ready = |place: Option<usize>| {
            place.and_then(|place| fds.get(place)).is_some_and(|fd| !fd.revents().is_empty())
        };
        let (ended, input) = (ready(end), ready(input));
        let (output, errors) = (ready(output), ready(errors));
        if input {
            self.feed()?;
        }
        if output {
            self.stdout.read()?;
        }
        if errors {
            self.stderr.read()?;
        }
        Ok(ended)
    }

    fn next_timeout(&self) -> Option<Duration> {
        match self.phase {
            Phase::Running => {
                self.spec.deadline.map(|deadline| deadline.saturating_sub(self.started.elapsed()))
            }
            Phase::Terminating(until) | Phase::Killed(until) => {
                Some(until.saturating_duration_since(Instant::now()))
            }
        }
    }

    /// Writes what the child's input takes; closes it at the end.
    fn feed(&mut self) -> Result<(), Errno> {
        let Some((pipe, rest)) = &mut self.stdin else { return Ok(()) };
        match rustix::io::write(pipe, rest) {
            Ok(count) => *rest = rest.get(count..).unwrap_or_default(),
            Err(Errno::INTR | Errno::WOULDBLOCK) => return Ok(()),
            // A child need not read its input.
            Err(Errno::PIPE) => *rest = &[],
            Err(error) => return Err(error),
        }
        if rest.is_empty() {
            self.stdin = None;
        }
        Ok(())
    }

    /// Takes what is in the pipes now, without waiting for writers that live on.
    fn drain(&mut self) -> Result<(), Errno> {
        let end = Instant::now() + DRAIN;
        for capture in [&mut self.stdout, &mut self.stderr] {
            while capture.read()? == Progress::Read && Instant::now() < end {}
        }
        Ok(())
    }
}

/// Adds a descriptor to watch, if there is one; returns its place.
fn add<'fd>(
    fds: &mut Vec<PollFd<'fd>>,
    fd: Option<&'fd OwnedFd>,
    flags: PollFlags,
) -> Option<usize> {
    fds.push(PollFd::from_borrowed_fd(fd?.as_fd(), flags));
    Some(fds.len() - 1)
}
