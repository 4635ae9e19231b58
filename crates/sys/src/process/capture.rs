//! The output of a child, kept up to a bound.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

/// What was read from one of a child's pipes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The first bytes, up to the limit.
    pub bytes: Vec<u8>,
    /// How many more came and were dropped.
    pub dropped: u64,
}

impl Captured {
    /// The bytes as text, what isn't UTF-8 replaced.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// One pipe that is being read.
pub(super) struct Capture {
    pipe: Option<OwnedFd>,
    limit: usize,
    captured: Captured,
}

/// What a read of a pipe came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Bytes were read.
    Read,
    /// Nothing is there at the moment.
    Empty,
    /// All writers are gone.
    Ended,
}

impl Capture {
    /// `pipe` must be non-blocking.
    pub(super) fn new(pipe: Option<OwnedFd>, limit: usize) -> Self {
        Self { pipe, limit, captured: Captured::default() }
    }

    /// The pipe, while it has writers.
    pub(super) fn pipe(&self) -> Option<&OwnedFd> {
        self.pipe.as_ref()
    }

    /// Reads once.
    pub(super) fn read(&mut self) -> Result<Progress, Errno> {
        let Some(pipe) = &self.pipe else { return Ok(Progress::Ended) };
        let mut buffer = [0_u8; 16 << 10];
        match rustix::io::read(pipe, &mut buffer) {
            Ok(0) => {
                self.pipe = None;
                Ok(Progress::Ended)
            }
            Ok(count) => {
                let new = buffer.get(..count).unwrap_or(&buffer);
                let room = self.limit.saturating_sub(self.captured.bytes.len());
                let kept = new.get(..room).unwrap_or(new);
                self.captured.bytes.extend_from_slice(kept);
                self.captured.dropped += (new.len() - kept.len()) as u64;
                Ok(Progress::Read)
            }
            Err(Errno::INTR) => Ok(Progress::Read),
            Err(Errno::WOULDBLOCK) => Ok(Progress::Empty),
            Err(error) => Err(error),
        }
    }

    pub(super) fn into_captured(self) -> Captured {
        self.captured
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_first_bytes_and_counts_the_rest() {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        let mut capture = Capture::new(Some(reader), 4);
        assert_eq!(capture.read(), Ok(Progress::Empty));
        rustix::io::write(&writer, b"abc").unwrap();
        assert_eq!(capture.read(), Ok(Progress::Read));
        rustix::io::write(&writer, b"defgh").unwrap();
        assert_eq!(capture.read(), Ok(Progress::Read));
        drop(writer);
        assert_eq!(capture.read(), Ok(Progress::Ended));
        assert!(capture.pipe().is_none());
        let captured = capture.into_captured();
        assert_eq!((captured.text().as_ref(), captured.dropped), ("abcd", 4));
    }
}
