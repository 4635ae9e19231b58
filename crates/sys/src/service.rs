//! What a long-lived program needs of the system: signals as events, and
//! sockets that systemd opened for it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

/// The first descriptor that systemd passes (`sd_listen_fds(3)`).
const FIRST_PASSED: i32 = 3;

/// Signals that become readable instead of interrupting (signalfd(2)).
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// Takes over SIGTERM and SIGINT of the calling thread. Threads that are
    /// started afterwards have them blocked too.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn termination() -> io::Result<Self> {
        // SAFETY: the set is initialised by sigemptyset before it is read; all
        // calls only use it for their own length, and a null old set is allowed.
        let raw = unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGTERM);
            libc::sigaddset(&raw mut set, libc::SIGINT);
            let failed =
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            if failed != 0 {
                return Err(io::Error::from_raw_os_error(failed));
            }
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just returned this descriptor to us alone.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(raw) } })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Why sockets that were passed can't be used.
#[derive(Debug, thiserror::Error)]
pub enum PassedError {
    /// `LISTEN_FDS` isn't a number.
    #[error("LISTEN_FDS is {text:?}, not a number")]
    NotANumber {
        /// The variable's value.
        text: String,
    },
    /// Another number than one was passed.
    #[error("{count} sockets were passed (LISTEN_FDS), and exactly one is wanted")]
    NotOne {
        /// How many.
        count: u32,
    },
    /// The descriptor isn't open.
    #[error("the passed socket (descriptor {FIRST_PASSED}) can't be used: {0}")]
    Unusable(#[source] io::Error),
}

/// The one socket that systemd passed, if it passed any (`LISTEN_PID`,
/// `LISTEN_FDS`). Call it once, before other descriptors are opened.
///
/// # Errors
/// When more than one was passed, or the descriptor isn't open.
pub fn passed_socket(
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<Option<OwnedFd>, PassedError> {
    let own = rustix::process::getpid().as_raw_nonzero().to_string();
    if lookup("LISTEN_PID").as_deref() != Some(own.as_str()) {
        return Ok(None);
    }
    let Some(text) = lookup("LISTEN_FDS") else { return Ok(None) };
    let Ok(count) = text.parse::<u32>() else { return Err(PassedError::NotANumber { text }) };
    match count {
        0 => return Ok(None),
        1 => {}
        count => return Err(PassedError::NotOne { count }),
    }
    // SAFETY: only borrowed for the one call; whether it is open, the call says.
    let passed = unsafe { BorrowedFd::borrow_raw(FIRST_PASSED) };
    let unusable = |error: Errno| PassedError::Unusable(error.into());
    // A copy of our own, close-on-exec, so that nobody else's view of descriptor
    // 3 matters.
    rustix::io::fcntl_dupfd_cloexec(passed, FIRST_PASSED + 1).map(Some).map_err(unusable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_become_readable() {
        let signals = Signals::termination().unwrap();
        let mut buffer = [0_u8; 128];
        assert_eq!(rustix::io::read(&signals, &mut buffer), Err(Errno::AGAIN));
        let own = rustix::thread::gettid();
        // SAFETY: a signal that is blocked in this thread is sent to this thread.
        unsafe { libc::syscall(libc::SYS_tkill, own.as_raw_nonzero().get(), libc::SIGTERM) };
        assert_eq!(rustix::io::read(&signals, &mut buffer), Ok(128));
    }

    #[test]
    fn only_sockets_for_this_process_count() {
        let own = std::process::id().to_string();
        let passed = |pid: &str, count: &str| {
            let (pid, count) = (pid.to_owned(), count.to_owned());
            passed_socket(move |name| match name {
                "LISTEN_PID" => Some(pid.clone()),
                "LISTEN_FDS" => Some(count.clone()),
                _ => None,
            })
        };
        assert!(passed_socket(|_| None).unwrap().is_none());
        assert!(passed("1", "1").unwrap().is_none());
        assert!(passed(&own, "0").unwrap().is_none());
        assert!(matches!(passed(&own, "2"), Err(PassedError::NotOne { count: 2 })));
        assert!(matches!(passed(&own, "x"), Err(PassedError::NotANumber { .. })));
    }
}
