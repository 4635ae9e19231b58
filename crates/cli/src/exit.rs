//! The exit codes, the same for every command.

use std::process::ExitCode;

/// How `podwire` ends. `run` ends as its command did, or with 125 to 127.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: done.
    Done,
    /// 1: it failed; what, stands on standard error.
    Failed,
    /// 2: it was called wrongly; nothing was tried.
    Usage,
    /// 3: the answer is no. CHECK found a difference, or STATUS says that the
    /// network can't take a container now.
    No,
    /// Another: that of a command that was run, or 128 and a signal's number.
    Code(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::No => 3,
            Exit::Code(code) => code,
        })
    }
}
