//! The tracing itself: ptrace(2), on the calling thread.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::Blow;
use super::thread::{Stop, Thread};

/// The bit that `PTRACE_O_TRACESYSGOOD` adds to the SIGTRAP of system call stops.
const SYSCALL_STOP: i32 = libc::SIGTRAP | 0x80;

/// A system call that is about to be made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Which one since exec, counted from 1.
    pub(super) count: u64,
    /// Its number in the kernel's table.
    pub(super) number: u64,
    pub(super) arguments: [u64; 6],
}

/// What is done with a process at a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reaction {
    GoOn,
    /// It is killed, and the call is not made.
    Kill(Blow),
}

/// Who looks on while a process runs.
pub(super) trait Watch {
    fn enter(&mut self, thread: Thread, entry: Entry) -> io::Result<Reaction>;

    /// The thread's last call has returned this.
    fn leave(&mut self, _thread: Thread, _returned: i64) -> io::Result<()> {
        Ok(())
    }

    /// A thread or a process has begun; only with [`Scope::Descendants`].
    fn begin(&mut self, _thread: Thread) -> io::Result<()> {
        Ok(())
    }

    /// A thread is about to end; only with [`Scope::Descendants`].
    fn end(&mut self, _thread: Thread) -> io::Result<()> {
        Ok(())
    }
}

/// Whom a tracer follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The process with its threads.
    Process,
    /// The programs that it starts as well.
    Descendants,
}

/// How a traced process ended.
pub(super) struct End {
    pub(super) calls: u64,
    /// As a shell counts: 128 and more for a signal.
    pub(super) code: i32,
}

/// Runs the command to its end, by itself or as `watch` wants it.
pub(super) fn run(command: &mut Command, scope: Scope, watch: &mut dyn Watch) -> io::Result<End> {
    command.process_group(0);
    let trace_me = || {
        // SAFETY: PTRACE_TRACEME uses none of its other arguments.
        let result = unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: between fork and exec only a system call is made.
    unsafe { command.pre_exec(trace_me) };
    let child = command.spawn()?;
    let pid = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    // From here on the child is reaped by `wait` below, never by `child`.
    let mut tracer = Tracer { group: pid, scope, known: BTreeSet::new(), calls: 0, killed: false };
    tracer.run(watch)
}

struct Tracer {
    /// The process, and the number of its group.
    group: libc::pid_t,
    scope: Scope,
    /// Threads whose first stop was seen.
    known: BTreeSet<libc::pid_t>,
    calls: u64,
    killed: bool,
}

impl Tracer {
    fn run(&mut self, watch: &mut dyn Watch) -> io::Result<End> {
        loop {
            let (pid, status) = self.wait()?;
            if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
                if pid != self.group {
                    continue;
                }
                let code = if libc::WIFEXITED(status) {
                    libc::WEXITSTATUS(status)
                } else {
                    128 + libc::WTERMSIG(status)
                };
                return Ok(End { calls: self.calls, code });
            }
            if !libc::WIFSTOPPED(status) {
                continue;
            }
            let signal = libc::WSTOPSIG(status);
            let is_new = self.known.insert(pid);
            let mut deliver = 0;
            if is_new && self.scope == Scope::Descendants {
                watch.begin(Thread(pid))?;
            }
            if is_new && pid == self.group {
                // The stop after exec.
                self.set_options(pid)?;
            } else if status >> 8 == libc::SIGTRAP | libc::PTRACE_EVENT_EXIT << 8 {
                watch.end(Thread(pid))?;
            } else if signal == SYSCALL_STOP {
                self.at_call(Thread(pid), watch)?;
            } else if !(is_new && signal == libc::SIGSTOP) && status >> 16 == 0 {
                deliver = signal;
            }
            Self::go_on(pid, deliver)?;
        }
    }

    fn at_call(&mut self, thread: Thread, watch: &mut dyn Watch) -> io::Result<()> {
        match thread.stop()? {
            Stop::Entry { number, arguments } => {
                self.calls += 1;
                let entry = Entry { count: self.calls, number, arguments };
                if !self.killed
                    && let Reaction::Kill(blow) = watch.enter(thread, entry)?
                {
                    self.killed = true;
                    self.kill(blow)?;
                }
                Ok(())
            }
            Stop::Exit { returned } if !self.killed => watch.leave(thread, returned),
            Stop::Exit { .. } | Stop::Other => Ok(()),
        }
    }

    fn set_options(&self, pid: libc::pid_t) -> io::Result<()> {
        let mut options =
            libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACECLONE;
        if self.scope == Scope::Descendants {
            options |= libc::PTRACE_O_TRACEFORK
                | libc::PTRACE_O_TRACEVFORK
                | libc::PTRACE_O_TRACEEXEC
                | libc::PTRACE_O_TRACEEXIT;
        }
        // SAFETY: the options are passed by value; no memory is touched.
        let result = unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Lets a stopped thread go on to its next system call stop.
    fn go_on(pid: libc::pid_t, signal: i32) -> io::Result<()> {
        // SAFETY: the signal is passed by value; no memory is touched.
        let result = unsafe { libc::ptrace(libc::PTRACE_SYSCALL, pid, 0, signal) };
        let error = io::Error::last_os_error();
        match result {
            0 => Ok(()),
            // Killed meanwhile; its end is reported by the next wait.
            _ if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            _ => Err(error),
        }
    }

    /// The next event of the group; with descendants, which may have groups of their
    /// own, of any child of this thread. Other threads' children are left alone.
    fn wait(&self) -> io::Result<(libc::pid_t, i32)> {
        let (whom, options) = match self.scope {
            Scope::Process => (-self.group, libc::__WALL),
            Scope::Descendants => (-1, libc::__WALL | libc::__WNOTHREAD),
        };
        loop {
            let mut status = 0;
            // SAFETY: the pointer is to a live local.
            let pid = unsafe { libc::waitpid(whom, &raw mut status, options) };
            if pid > 0 {
                return Ok((pid, status));
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    fn kill(&self, blow: Blow) -> io::Result<()> {
        let doomed = match blow {
            Blow::Process => vec![self.group],
            Blow::Group => vec![-self.group],
            // Looked for while their parent is stopped, so that none is missed.
            Blow::Family => {
                let mut doomed = descendants(self.group);
                doomed.push(-self.group);
                doomed
            }
        };
        for number in doomed {
            // SAFETY: the process and its group are our unreaped child's and its
            // children are not reaped while it is stopped: no number is reused.
            let result = unsafe { libc::kill(number, libc::SIGKILL) };
            let error = io::Error::last_os_error();
            if result != 0 && error.raw_os_error() != Some(libc::ESRCH) {
                return Err(error);
            }
        }
        Ok(())
    }
}

/// The processes that a process has started, and those that they have.
pub(super) fn descendants(process: libc::pid_t) -> Vec<libc::pid_t> {
    let mut found = Vec::new();
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    for thread in threads.into_iter().flatten().flatten() {
        let children = std::fs::read_to_string(thread.path().join("children"));
        for child in children.unwrap_or_default().split_whitespace() {
            let Ok(child) = child.parse() else { continue };
            found.push(child);
            found.extend(descendants(child));
        }
    }
    found
}
