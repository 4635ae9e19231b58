//! Killing a process at a counted system call.
//!
//! The process is traced (ptrace(2)); when it is about to make its n-th system call
//! it gets SIGKILL, alone or with all that it has started, and that call is not made. Its
//! threads are counted with it, programs that it starts are not.

pub mod census;
mod names;
pub(crate) mod netlink;
pub mod storage;
mod thread;
mod trace;

use std::io::{self, Read, Seek, Write};
use std::process::Command;

pub use names::syscall_name;

use self::thread::Thread;
use self::trace::{Entry, Reaction, Scope, Watch};
use crate::command::Output;

/// What became of a process that was to be killed.
#[derive(Debug, Clone)]
pub enum Killed {
    /// It was killed.
    At {
        /// The system call that it did not make any more, with its count.
        call: SystemCall,
        /// Whether nothing that it had started was alive: whoever dies with it then
        /// makes no difference.
        is_alone: bool,
        /// What it had printed until then, exit code 137.
        output: Output,
    },
    /// It ended by itself before.
    Finished {
        /// How many system calls it made.
        calls: u64,
        /// What it printed and how it ended.
        output: Output,
    },
}

/// Who dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blow {
    /// The process alone: what it has started lives on.
    Process,
    /// Its group: what it has started in another lives on.
    Group,
    /// Its group, and everything that it has started, in whatever group that is.
    Family,
}

/// A system call of a traced process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemCall {
    /// Which one since exec, counted from 1.
    pub count: u64,
    /// Its number in the kernel's table.
    pub number: u64,
}

impl std::fmt::Display for SystemCall {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match syscall_name(self.number) {
            Some(name) => write!(formatter, "{name} (call {})", self.count),
            None => write!(formatter, "system call {} (call {})", self.number, self.count),
        }
    }
}

impl Killed {
    /// Whether it was killed, as opposed to ended.
    pub fn is_killed(&self) -> bool {
        matches!(self, Self::At { .. })
    }
}

/// Counts the system calls of a whole run: the upper bound for places to kill at.
#[track_caller]
pub fn count(command: Command, stdin: &[u8]) -> u64 {
    match run_and_kill(command, stdin, u64::MAX) {
        Killed::Finished { calls, .. } => calls,
        Killed::At { call, .. } => panic!("made {call}"),
    }
}

/// Runs a command and kills it, with its group, when it is about to make its
/// `number`-th system call after exec.
#[track_caller]
pub fn run_and_kill(command: Command, stdin: &[u8], number: u64) -> Killed {
    run_and_strike(command, stdin, number, Blow::Group)
}

/// The same, saying who dies.
#[track_caller]
pub fn run_and_strike(command: Command, stdin: &[u8], number: u64, blow: Blow) -> Killed {
    let mut watch = KillAt { number, blow, killed_at: None, is_alone: true };
    let (calls, output) = watched(command, stdin, Scope::Process, &mut watch);
    match watch.killed_at {
        Some(call) => Killed::At { call, is_alone: watch.is_alone, output },
        None => Killed::Finished { calls, output },
    }
}

/// Waits for a count.
struct KillAt {
    number: u64,
    blow: Blow,
    killed_at: Option<SystemCall>,
    is_alone: bool,
}

impl Watch for KillAt {
    fn enter(&mut self, thread: Thread, entry: Entry) -> io::Result<Reaction> {
        if entry.count != self.number {
            return Ok(Reaction::GoOn);
        }
        self.is_alone = trace::descendants(thread.0).is_empty();
        self.killed_at = Some(SystemCall { count: entry.count, number: entry.number });
        Ok(Reaction::Kill(self.blow))
    }
}

/// Runs a command while somebody looks on; says how many system calls it made, and
/// what it printed.
#[track_caller]
fn watched(
    mut command: Command,
    stdin: &[u8],
    scope: Scope,
    watch: &mut dyn Watch,
) -> (u64, Output) {
    // Files instead of pipes: no one has to read while the process is traced.
    let mut input = tempfile::tempfile().unwrap();
    input.write_all(stdin).unwrap();
    input.rewind().unwrap();
    let (mut output, mut errors) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
    command.stdin(input);
    command.stdout(output.try_clone().unwrap());
    command.stderr(errors.try_clone().unwrap());
    let shown = format!("{command:?}");
    let end = trace::run(&mut command, scope, watch)
        .unwrap_or_else(|error| panic!("tracing {shown}: {error}"));
    let read = |file: &mut std::fs::File| {
        let mut text = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut text).unwrap();
        String::from_utf8_lossy(&text).into_owned()
    };
    let (stdout, stderr) = (read(&mut output), read(&mut errors));
    (end.calls, Output { command: shown, code: end.code, stdout, stderr })
}
