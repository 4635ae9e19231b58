//! Which descriptors are ready, and what time it is.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::machine::Millis;

/// Events taken at once.
const BATCH: usize = 64;

/// Which descriptor is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Token {
    /// A signal has come.
    Signals,
    /// A client waits to be accepted.
    Listener,
    /// A client's connection, by its number.
    Connection(u64),
    /// A lease's socket, by its number.
    Lease(u64),
}

impl Token {
    fn pack(self) -> u64 {
        match self {
            Self::Signals => 0,
            Self::Listener => 1,
            Self::Connection(number) => number << 2 | 2,
            Self::Lease(number) => number << 2 | 3,
        }
    }

    fn unpack(packed: u64) -> Self {
        match packed & 3 {
            0 => Self::Signals,
            1 => Self::Listener,
            2 => Self::Connection(packed >> 2),
            _ => Self::Lease(packed >> 2),
        }
    }
}

/// The set of descriptors.
#[derive(Debug)]
pub(super) struct Poll {
    fd: OwnedFd,
}

impl Poll {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { fd: epoll::create(epoll::CreateFlags::CLOEXEC)? })
    }

    /// Watches for input. It ends when the descriptor is closed.
    pub(super) fn watch(&self, source: impl AsFd, token: Token) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token.pack());
        Ok(epoll::add(&self.fd, source, data, epoll::EventFlags::IN | epoll::EventFlags::RDHUP)?)
    }

    /// Watches for room to write only.
    pub(super) fn watch_room(&self, source: impl AsFd, token: Token) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token.pack());
        Ok(epoll::modify(&self.fd, source, data, epoll::EventFlags::OUT)?)
    }

    /// Waits until a descriptor is ready or it is `until`.
    pub(super) fn wait(&self, until: Option<Millis>) -> io::Result<Vec<Token>> {
        let timeout = until.map(|until| {
            let left = until.saturating_sub(now());
            Timespec {
                tv_sec: i64::try_from(left / 1000).unwrap_or(i64::MAX),
                tv_nsec: i64::try_from(left % 1000).unwrap_or(0) * 1_000_000,
            }
        });
        let mut events = Vec::with_capacity(BATCH);
        match epoll::wait(&self.fd, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(events.iter().map(|event: &epoll::Event| Token::unpack(event.data.u64())).collect())
    }
}

/// Milliseconds since the machine started, sleep included.
pub(super) fn now() -> Millis {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = Millis::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1000 + Millis::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn tokens_are_packed_and_back() {
        for token in [Token::Signals, Token::Listener, Token::Connection(7), Token::Lease(1 << 40)]
        {
            assert_eq!(Token::unpack(token.pack()), token);
        }
    }

    #[test]
    fn what_is_ready_is_told_and_time_ends_the_wait() {
        let poll = Poll::new().unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        poll.watch(&ours, Token::Lease(3)).unwrap();
        let before = now();
        assert_eq!(poll.wait(Some(before + 20)).unwrap(), []);
        assert!(now() >= before + 19);
        theirs.write_all(b"x").unwrap();
        assert_eq!(poll.wait(None).unwrap(), [Token::Lease(3)]);
    }
}
