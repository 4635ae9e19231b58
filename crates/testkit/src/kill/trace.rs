//! The tracing itself: ptrace(2), on the calling thread.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::SystemCall;

/// `PTRACE_GET_SYSCALL_INFO`, include/uapi/linux/ptrace.h (Linux 5.3).
#[cfg(target_env = "musl")]
const PTRACE_GET_SYSCALL_INFO: libc::c_int = 0x420e;
#[cfg(not(target_env = "musl"))]
const PTRACE_GET_SYSCALL_INFO: libc::c_uint = 0x420e;
/// The `op` of a stop before the call is made.
const ENTRY: u8 = 1;
/// The bit that `PTRACE_O_TRACESYSGOOD` adds to the SIGTRAP of system call stops.
const SYSCALL_STOP: i32 = libc::SIGTRAP | 0x80;

/// How a traced process ended.
pub(super) struct End {
    pub(super) calls: u64,
    pub(super) killed_at: Option<SystemCall>,
    /// As a shell counts: 128 and more for a signal.
    pub(super) code: i32,
}

/// The head of `struct ptrace_syscall_info` and of its `entry` part.
#[repr(C)]
struct SyscallInfo {
    op: u8,
    pad: [u8; 3],
    arch: u32,
    instruction_pointer: u64,
    stack_pointer: u64,
    number: u64,
    arguments: [u64; 6],
}

/// Runs the command until its `number`-th system call or its end.
pub(super) fn until(command: &mut Command, number: u64) -> io::Result<End> {
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
    let mut tracer = Tracer { group: pid, known: BTreeSet::new(), calls: 0 };
    tracer.run(number)
}

struct Tracer {
    /// The process, and the number of its group.
    group: libc::pid_t,
    /// Threads whose first stop was seen.
    known: BTreeSet<libc::pid_t>,
    calls: u64,
}

impl Tracer {
    fn run(&mut self, number: u64) -> io::Result<End> {
        let mut killed_at = None;
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
                return Ok(End { calls: self.calls, killed_at, code });
            }
            if !libc::WIFSTOPPED(status) {
                continue;
            }
            let signal = libc::WSTOPSIG(status);
            let is_new = self.known.insert(pid);
            let mut deliver = 0;
            if is_new && pid == self.group {
                // The stop after exec.
                Self::set_options(pid)?;
            } else if signal == SYSCALL_STOP {
                if let Some(call) = self.entry(pid)?
                    && killed_at.is_none()
                    && call.count == number
                {
                    killed_at = Some(call);
                    self.kill()?;
                }
            } else if !(is_new && signal == libc::SIGSTOP) && status >> 16 == 0 {
                deliver = signal;
            }
            Self::go_on(pid, deliver)?;
        }
    }

    /// Counts a call that is about to be made.
    fn entry(&mut self, pid: libc::pid_t) -> io::Result<Option<SystemCall>> {
        let mut info = std::mem::MaybeUninit::<SyscallInfo>::zeroed();
        // SAFETY: the kernel writes at most the given number of bytes to a buffer of
        // that size; every bit pattern is a valid value.
        let (written, info) = unsafe {
            let size = size_of::<SyscallInfo>();
            let written = libc::ptrace(PTRACE_GET_SYSCALL_INFO, pid, size, info.as_mut_ptr());
            (written, info.assume_init())
        };
        if written < 0 {
            // ESRCH: killed meanwhile.
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(libc::ESRCH) { Ok(None) } else { Err(error) };
        }
        if info.op != ENTRY {
            return Ok(None);
        }
        self.calls += 1;
        Ok(Some(SystemCall { count: self.calls, number: info.number }))
    }

    fn set_options(pid: libc::pid_t) -> io::Result<()> {
        let options =
            libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACECLONE;
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

    /// The next event of the group. Other children of this thread are left alone.
    fn wait(&self) -> io::Result<(libc::pid_t, i32)> {
        loop {
            let mut status = 0;
            // SAFETY: the pointer is to a live local.
            let pid = unsafe { libc::waitpid(-self.group, &raw mut status, libc::__WALL) };
            if pid > 0 {
                return Ok((pid, status));
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    fn kill(&self) -> io::Result<()> {
        // SAFETY: the group is our unreaped child's, so the number is not reused.
        let result = unsafe { libc::kill(-self.group, libc::SIGKILL) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
