//! Signals while the command runs: they are its, not ours.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Child;

use podwire_spec::error::Error;
use rustix::process::{Pid, Signal, getpgrp, kill_process};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator;

use crate::exit::Exit;
use crate::failure::Failure;

/// The signals that are handed on.
const HANDED_ON: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
/// Those of them that a terminal sends to the command itself.
const OF_TERMINAL: [i32; 2] = [SIGINT, SIGQUIT];

/// The signals that come in from now on.
pub(super) struct Signals {
    incoming: iterator::Signals,
}

impl Signals {
    /// Starts to take signals. Before the command starts, so that none is lost,
    /// nor the end of the command.
    pub(super) fn watch() -> Result<Self, Failure> {
        let wanted = HANDED_ON.iter().chain(&[SIGCHLD]);
        let incoming = iterator::Signals::new(wanted)
            .map_err(|error| Error::internal(format!("signals can't be watched: {error}")))?;
        Ok(Self { incoming })
    }

    /// Waits for the command to end and hands it the signals that come in
    /// meanwhile; gives its exit code.
    pub(super) fn wait_for(mut self, mut child: Child) -> Result<Exit, Failure> {
        let pid = Pid::from_child(&child);
        for signal in self.incoming.forever() {
            if signal != SIGCHLD {
                hand_on(pid, signal);
                continue;
            }
            let ended = child
                .try_wait()
                .map_err(|error| Error::internal(format!("waiting for the command: {error}")))?;
            if let Some(status) = ended {
                let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
                return Ok(Exit::Code(u8::try_from(code).unwrap_or(u8::MAX)));
            }
        }
        Err(Error::internal("waiting for the command ended before it did").into())
    }
}

/// Sends a signal to the command, unless its terminal has done so already. It
/// hasn't been waited for, so its id is still its own.
fn hand_on(pid: Pid, signal: i32) {
    if OF_TERMINAL.contains(&signal) && in_foreground() {
        return;
    }
    if let Some(signal) = Signal::from_named_raw(signal) {
        // It may just have ended, which SIGCHLD tells.
        let _ = kill_process(pid, signal);
    }
}

/// Whether we, and with us the command, are in the foreground of a terminal.
fn in_foreground() -> bool {
    std::fs::File::open("/dev/tty").is_ok_and(|terminal| {
        rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp())
    })
}
