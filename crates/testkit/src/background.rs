//! A program that runs beside a test: a server, a daemon. Its log is an event
//! source, so that nobody has to sleep and hope.

use std::io::{BufRead as _, BufReader, PipeReader};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

/// How long an ordinary event may take, such as an orderly end.
const PATIENCE: Duration = Duration::from_secs(20);

/// What one program, or several in turn, wrote to standard output and error.
///
/// Lines are numbered from 0 over all programs that wrote here, so that a test
/// remembers a place ([`Log::mark`]) and waits for what comes after it, also
/// across a restart.
#[derive(Debug, Clone, Default)]
pub struct Log {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    written: Mutex<Written>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Written {
    lines: Vec<String>,
    /// Programs that may still write.
    writers: usize,
}

impl Log {
    /// The number of the next line.
    pub fn mark(&self) -> usize {
        self.lock().lines.len()
    }

    /// Everything, for messages.
    pub fn text(&self) -> String {
        self.lock().lines.join("\n")
    }

    /// The lines from `mark` on.
    pub fn since(&self, mark: usize) -> Vec<String> {
        self.lock().lines.iter().skip(mark).cloned().collect()
    }

    /// Whether nobody writes any more.
    pub fn is_over(&self) -> bool {
        self.lock().writers == 0
    }

    /// Waits for the first line from `mark` on that `is_it`; returns it and the
    /// number of the line after it. Panics with the whole log when it doesn't come
    /// within `patience`, or can't come since nobody writes any more.
    #[track_caller]
    pub fn wait_for(
        &self,
        mark: usize,
        what: &str,
        patience: Duration,
        is_it: impl Fn(&str) -> bool,
    ) -> (usize, String) {
        let deadline = Instant::now() + patience;
        let mut written = self.lock();
        let mut next = mark;
        loop {
            while let Some(line) = written.lines.get(next) {
                next += 1;
                if is_it(line) {
                    return (next, line.clone());
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if written.writers == 0 || left.is_zero() {
                let over = if left.is_zero() { "it did not come" } else { "the program ended" };
                let log = written.lines.join("\n");
                drop(written); // Or nobody could write any more.
                panic!("waited for {what} from line {mark} on, but {over}; the log:\n{log}");
            }
            written = self.shared.changed.wait_timeout(written, left).unwrap().0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.shared.written.lock().unwrap()
    }

    fn follow(&self, reader: PipeReader) -> JoinHandle<()> {
        self.lock().writers += 1;
        let log = self.clone();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(reader);
            let mut bytes = Vec::new();
            while reader.read_until(b'\n', &mut bytes).is_ok_and(|read| read > 0) {
                let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
                bytes.clear();
                log.lock().lines.push(line);
                log.shared.changed.notify_all();
            }
            log.lock().writers -= 1;
            log.shared.changed.notify_all();
        })
    }
}

/// A running program. It is killed when this goes, and by the kernel when the
/// thread that started it goes without a chance to.
#[derive(Debug)]
pub struct Background {
    child: Child,
    log: Log,
    /// Reads to the end of what it writes.
    reader: Option<JoinHandle<()>>,
    shown: String,
}

impl Background {
    /// Starts it in the calling thread's namespaces; what it writes goes to `log`.
    #[track_caller]
    pub fn spawn(command: Command, log: &Log) -> Self {
        Self::start(command, Stdio::null(), log)
    }

    /// The same with a descriptor as standard input, such as a listening socket.
    #[track_caller]
    pub fn spawn_with_input(command: Command, input: OwnedFd, log: &Log) -> Self {
        Self::start(command, input.into(), log)
    }

    #[track_caller]
    fn start(mut command: Command, input: Stdio, log: &Log) -> Self {
        let shown = format!("{command:?}");
        let (reader, writer) = std::io::pipe().unwrap();
        command.stdin(input);
        command.stdout(writer.try_clone().unwrap()).stderr(writer);
        // SAFETY: between fork and exec only one system call is made, which is
        // async-signal-safe; no memory is allocated.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        let child = command.spawn().unwrap_or_else(|error| panic!("{shown}: {error}"));
        drop(command); // It holds the pipe's writing end.
        let reader = Some(log.follow(reader));
        Self { child, log: log.clone(), reader, shown }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Where it writes.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Whether it hasn't ended.
    #[track_caller]
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends it a signal.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Kills it with signal 9, which it can't see coming, and waits until it is gone.
    #[track_caller]
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end (signal 15) and waits for that.
    #[track_caller]
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// Waits until it ended by itself and all that it wrote is in the log; panics if
    /// it doesn't within 20 s.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        let process = rustix::process::pidfd_open(
            Pid::from_child(&self.child),
            rustix::process::PidfdFlags::empty(),
        );
        let process = process.unwrap();
        let mut events = [rustix::event::PollFd::new(&process, rustix::event::PollFlags::IN)];
        let left = deadline.saturating_duration_since(Instant::now());
        let left = rustix::event::Timespec::try_from(left).unwrap();
        let ended = rustix::event::poll(&mut events, Some(&left)).unwrap();
        assert_eq!(ended, 1, "{} does not end; its log:\n{}", self.shown, self.log.text());
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.child.wait().unwrap()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_line_is_waited_for_and_an_end_too() {
        let log = Log::default();
        let mut first = Background::spawn(shell("echo one; echo two >&2; exec sleep 100"), &log);
        let (next, line) = log.wait_for(0, "two", PATIENCE, |line| line == "two");
        assert_eq!((next, line.as_str()), (2, "two"));
        assert!(first.is_running());
        assert!(!first.terminate().success());
        let mut second = Background::spawn(shell("echo three"), &log);
        assert_eq!(log.wait_for(next, "three", PATIENCE, |line| line == "three").0, 3);
        assert!(second.wait().success());
    }

    #[test]
    #[should_panic(expected = "the program ended")]
    fn waiting_for_a_program_that_ended_is_over_at_once() {
        let log = Log::default();
        let _program = Background::spawn(shell("echo bye"), &log);
        log.wait_for(0, "hello", Duration::from_mins(1), |line| line == "hello");
    }
}
