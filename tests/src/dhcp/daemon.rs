//! `dhcp daemon`, of ours or of Go.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use podwire_testkit::{Background, Log};

use crate::node::wait_until;

/// Where the daemon listens unless it is told otherwise.
pub(super) const SOCKET: &str = "/run/cni/dhcp.sock";

/// A daemon and everything it ever wrote, over restarts too.
#[derive(Debug)]
pub struct Daemon {
    program: PathBuf,
    options: Vec<String>,
    log: Log,
    process: Option<Background>,
}

impl Daemon {
    /// Starts `PROGRAM daemon OPTIONS` and waits until it answers the phone.
    #[track_caller]
    pub(crate) fn start(program: &Path, options: &[&str]) -> Self {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let program = program.to_owned();
        let mut daemon = Self { program, options, log: Log::default(), process: None };
        daemon.resume();
        daemon
    }

    /// Starts it again after its end.
    #[track_caller]
    pub fn resume(&mut self) {
        assert!(self.process.is_none(), "it runs");
        let process = Background::spawn(self.command(), &self.log);
        wait_until("the daemon's socket", || {
            assert!(!self.log.is_over(), "the daemon ended:\n{}", self.log.text());
            UnixStream::connect(self.socket()).is_ok()
        });
        self.process = Some(process);
    }

    fn socket(&self) -> &str {
        let mut options = self.options.iter().skip_while(|option| *option != "-socketpath");
        options.nth(1).map_or(SOCKET, String::as_str)
    }

    /// The command that starts it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("daemon").args(&self.options);
        command
    }

    /// Kills it with signal 9.
    #[track_caller]
    pub fn kill(&mut self) {
        self.process.take().expect("it runs").kill();
    }

    /// Ends it in good order.
    #[track_caller]
    pub fn terminate(&mut self) -> ExitStatus {
        self.process.take().expect("it runs").terminate()
    }

    /// Its process id.
    #[track_caller]
    pub fn id(&self) -> u32 {
        self.process.as_ref().expect("it runs").id()
    }

    /// All it wrote.
    pub fn log(&self) -> &Log {
        &self.log
    }
}
