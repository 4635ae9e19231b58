//! Asking the daemon: what the plugin does.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use podwire_spec::error::{Error, ErrorCode};

use crate::protocol::{self, Call, GREETING, LONGEST_GREETING, Reply, WELCOME};

/// How long the daemon may take for everything but the search for a server.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why the daemon gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nobody listens.
    #[error("error dialing DHCP daemon: no daemon listens at {}: {source}", path.display())]
    Down {
        /// The socket.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Somebody else listens.
    #[error("at {} listens another daemon than Podwire's, which answers {answer:?}", path.display())]
    Stranger {
        /// The socket.
        path: PathBuf,
        /// Its answer.
        answer: String,
    },
    /// It went away, or took too long.
    #[error("the DHCP daemon at {} gave no answer: {source}", path.display())]
    Silent {
        /// The socket.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
}

impl CallError {
    /// Whether there is no daemon at all.
    pub fn is_down(&self) -> bool {
        matches!(self, Self::Down { .. })
    }

    /// Whether it went away in the middle, so that another may be there already.
    pub fn is_interrupted(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        matches!(self, Self::Silent { source, .. }
            if matches!(source.kind(), BrokenPipe | ConnectionReset | UnexpectedEof))
    }

    /// Whether there is one of which nobody knows what it did.
    pub fn is_silent(&self) -> bool {
        matches!(self, Self::Silent { .. })
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        let (code, details) = match &error {
            CallError::Down { .. } => (
                ErrorCode::TryAgainLater,
                "start it: `dhcp daemon`, or the service cni-dhcp; another socket is set with \
                 ipam.daemonSocketPath",
            ),
            CallError::Stranger { .. } => (
                ErrorCode::Internal,
                "the daemon of the Go plugins is still running: stop it and start `dhcp daemon` of \
                 Podwire; servers give the same addresses again",
            ),
            CallError::Silent { .. } => (
                ErrorCode::TryAgainLater,
                "it may have been restarted just now; its log tells. Try again",
            ),
        };
        Self::new(code, error.to_string()).with_details(details)
    }
}

/// Asks the daemon that listens at `socket` and waits for its reply, which it
/// gives at the latest after `extra` beyond the usual time.
///
/// # Errors
/// [`CallError`]. What the daemon refused is a [`Reply::Failed`].
pub fn call(socket: &Path, call: &Call, extra: Duration) -> Result<Reply, CallError> {
    let until = Instant::now() + PATIENCE + extra;
    let connection = UnixStream::connect(socket)
        .map_err(|source| CallError::Down { path: socket.to_owned(), source })?;
    converse(Deadline { connection, until }, socket, call)
}

/// All that is said on a connection.
pub(crate) fn converse(
    mut stream: Deadline,
    socket: &Path,
    call: &Call,
) -> Result<Reply, CallError> {
    let path = || socket.to_owned();
    let silent = |source| CallError::Silent { path: path(), source };
    // In two steps: a stranger refuses the greeting, and is not sent the rest.
    stream.write_all(format!("{GREETING}\r\n\r\n").as_bytes()).map_err(silent)?;
    let head = stream.head().map_err(silent)?;
    let status = head.lines().next().unwrap_or_default();
    if status != WELCOME {
        return Err(CallError::Stranger { path: path(), answer: status.to_owned() });
    }
    stream.write_all(&protocol::encode(call).map_err(silent)?).map_err(silent)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length).map_err(silent)?;
    let length = protocol::length(&length).map_err(silent)?.unwrap_or_default();
    let mut document = vec![0; length];
    stream.read_exact(&mut document).map_err(silent)?;
    serde_json::from_slice(&document).map_err(|error| silent(error.into()))
}

/// A connection on which everything together must be over at a moment.
#[derive(Debug)]
pub(crate) struct Deadline {
    pub(crate) connection: UnixStream,
    pub(crate) until: Instant,
}

impl Deadline {
    fn left(&self) -> io::Result<Duration> {
        match self.until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::Error::new(io::ErrorKind::TimedOut, "it took too long")),
            left => Ok(left),
        }
    }

    /// The lines up to the blank one.
    fn head(&mut self) -> io::Result<String> {
        let mut head = Vec::new();
        // Byte by byte: what follows isn't ours to take.
        while !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\n\n") {
            if head.len() == LONGEST_GREETING {
                return Err(io::Error::other("its greeting doesn't end"));
            }
            let mut byte = [0];
            match self.read(&mut byte)? {
                // A stranger may close right behind its answer.
                0 if head.contains(&b'\n') => break,
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ => head.extend(byte),
            }
        }
        Ok(String::from_utf8_lossy(&head).into_owned())
    }
}

impl Read for Deadline {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.connection.set_read_timeout(Some(self.left()?))?;
        match self.connection.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "it took too long"))
            }
            other => other,
        }
    }
}

impl Write for Deadline {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.connection.set_write_timeout(Some(self.left()?))?;
        self.connection.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// A daemon that answers one connection with fixed bytes.
    fn answering(answer: &'static [u8]) -> (tempfile::TempDir, Result<Reply, CallError>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let daemon = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut greeting = [0; GREETING.len() + 4];
            stream.read_exact(&mut greeting).unwrap();
            stream.write_all(answer).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            // Until the client has gone.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let reply = call(&path, &Call::Status, Duration::ZERO);
        daemon.join().unwrap();
        (folder, reply)
    }

    #[test]
    fn a_daemon_of_ours_is_understood() {
        let (_folder, reply) = answering(b"HTTP/1.0 200 podwire dhcp 1\r\n\r\n\0\0\0\x06\"Done\"");
        assert_eq!(reply.unwrap(), Reply::Done);
    }

    #[test]
    fn a_daemon_of_go_is_named_with_what_to_restart() {
        let (_folder, reply) =
            answering(b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n\r\n404 page");
        let error = Error::from(reply.unwrap_err());
        assert!(error.msg.contains("HTTP/1.1 404 Not Found"), "{error}");
        assert!(error.details.contains("stop it and start"), "{}", error.details);
    }

    #[test]
    fn no_daemon_and_a_silent_one_are_told_apart() {
        let missing = call(Path::new("/nonexistent/socket"), &Call::Status, Duration::ZERO);
        let error = missing.unwrap_err();
        assert!(error.is_down());
        assert_eq!(Error::from(error).code, ErrorCode::TryAgainLater);
        for cut in [&b""[..], b"HTTP/1.0 200 podwire dhcp 1\r\n\r\n\0\0\0\x06\"Do"] {
            let (_folder, reply) = answering(cut);
            assert!(matches!(reply, Err(CallError::Silent { .. })), "{reply:?}");
        }
        let (_folder, reply) = answering(b"HTTP/1.0 200 podwire dhcp 1\r\n\r\n\xff\xff\xff\xff");
        assert!(reply.unwrap_err().to_string().contains("more than"));
    }
}
