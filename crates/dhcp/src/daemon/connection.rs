//! One client of the socket, from its first byte to the last of the answer.
//! Never blocks; what it reads and holds is bounded.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use crate::protocol::{
    self, Call, GREETING, GREETING_OF_ANY_VERSION, GREETING_OF_GO, LONGEST_GREETING, Reply, WELCOME,
};

/// What the client came to.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// Nothing yet.
    Nothing,
    /// A call, which wants a reply.
    Call(Call),
    /// A request for the counters.
    Metrics,
    /// It has gone, or is to be dropped.
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Greeting,
    Document,
    /// Its call is being worked on.
    Waiting,
    /// The answer is on its way; it's over when all is written.
    Leaving,
}

#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    stage: Stage,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Connection {
    /// Takes over a client that was accepted.
    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, stage: Stage::Greeting, input: Vec::new(), output: Vec::new() })
    }

    /// Whether it waits for a reply.
    pub(crate) fn is_waiting(&self) -> bool {
        self.stage == Stage::Waiting
    }

    /// Whether there is something to write that didn't fit yet.
    pub(crate) fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Whether all is said.
    pub(crate) fn is_over(&self) -> bool {
        self.stage == Stage::Leaving && self.output.is_empty()
    }

    /// Reads what is there.
    pub(crate) fn read(&mut self) -> Incoming {
        let mut chunk = [0; 4096];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => {
                    return if self.stage == Stage::Leaving {
                        Incoming::Nothing
                    } else {
                        Incoming::Over
                    };
                }
                Ok(length) => {
                    // What comes behind a call has no meaning.
                    if matches!(self.stage, Stage::Waiting | Stage::Leaving) {
                        return Incoming::Over;
                    }
                    self.input.extend(chunk.get(..length).unwrap_or_default());
                    match self.advance() {
                        Incoming::Nothing => {}
                        other => return other,
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Incoming::Nothing;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Incoming::Over,
            }
        }
    }

    /// Understands what has come.
    fn advance(&mut self) -> Incoming {
        if self.stage == Stage::Greeting {
            let Some(end) = end_of_head(&self.input) else {
                return if self.input.len() > LONGEST_GREETING {
                    Incoming::Over
                } else {
                    Incoming::Nothing
                };
            };
            let head: Vec<u8> = self.input.drain(..end).collect();
            let head = String::from_utf8_lossy(&head);
            let first = head.lines().next().unwrap_or_default();
            if first.starts_with("GET /metrics") {
                self.stage = Stage::Waiting;
                return Incoming::Metrics;
            }
            let (answer, stage) = answer_to(first);
            self.output.extend(answer.as_bytes());
            self.output.extend(b"\r\n\r\n");
            self.stage = stage;
            if self.write().is_err() {
                return Incoming::Over;
            }
        }
        if self.stage == Stage::Document {
            return self.document();
        }
        Incoming::Nothing
    }

    fn document(&mut self) -> Incoming {
        let length = match protocol::length(&self.input) {
            Ok(Some(length)) => length,
            Ok(None) => return Incoming::Nothing,
            Err(error) => return self.misunderstood(&error.to_string()),
        };
        let Some(document) = self.input.get(4..4 + length) else { return Incoming::Nothing };
        let call = serde_json::from_slice(document);
        self.input = Vec::new();
        match call {
            Ok(call) => {
                self.stage = Stage::Waiting;
                Incoming::Call(call)
            }
            Err(error) => self.misunderstood(&error.to_string()),
        }
    }

    fn misunderstood(&mut self, why: &str) -> Incoming {
        self.reply(&Reply::Failed {
            code: podwire_spec::error::ErrorCode::Decode.number(),
            message: format!("the DHCP daemon can't read the call: {why}"),
            details: "plugin and daemon may be of different versions: restart the daemon".into(),
        });
        if self.is_over() { Incoming::Over } else { Incoming::Nothing }
    }

    /// Answers the call; the connection is over when that is written.
    pub(crate) fn reply(&mut self, reply: &Reply) {
        self.stage = Stage::Leaving;
        match protocol::encode(reply) {
            Ok(bytes) => self.output.extend(bytes),
            Err(error) => log::error!("a reply can't be written: {error}"),
        }
        if self.write().is_err() {
            self.output.clear();
        }
    }

    /// Answers in HTTP.
    pub(crate) fn page(&mut self, text: &str) {
        self.stage = Stage::Leaving;
        let head = format!(
            "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\r\n",
            text.len()
        );
        self.output.extend(head.as_bytes());
        self.output.extend(text.as_bytes());
        if self.write().is_err() {
            self.output.clear();
        }
    }

    /// Writes what fits.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => drop(self.output.drain(..length)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Where the blank line behind a greeting ends.
fn end_of_head(input: &[u8]) -> Option<usize> {
    let find = |mark: &[u8]| {
        input.windows(mark.len()).position(|window| window == mark).map(|at| at + mark.len())
    };
    match (find(b"\r\n\r\n"), find(b"\n\n")) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    }
}

/// The status line for a greeting, and what comes next.
fn answer_to(greeting: &str) -> (&'static str, Stage) {
    if greeting == GREETING {
        (WELCOME, Stage::Document)
    } else if greeting.starts_with(GREETING_OF_GO) {
        (
            "HTTP/1.0 501 this is the DHCP daemon of Podwire and the plugin is the Go one: install \
             the dhcp plugin of Podwire, or stop this daemon and start that of the Go plugins",
            Stage::Leaving,
        )
    } else if greeting.starts_with(GREETING_OF_ANY_VERSION) {
        (
            "HTTP/1.0 505 the DHCP daemon of Podwire speaks version 1 and the plugin another: \
             restart the daemon from the same release as the plugin",
            Stage::Leaving,
        )
    } else {
        ("HTTP/1.0 400 this is the DHCP daemon of Podwire", Stage::Leaving)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Connection, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Connection::new(ours).unwrap(), theirs)
    }

    fn answer(theirs: &mut UnixStream) -> String {
        let mut buffer = [0; 4096];
        let length = theirs.read(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[test]
    fn a_call_may_come_in_pieces() {
        let (mut ours, mut theirs) = pair();
        let mut bytes = format!("{GREETING}\r\n\r\n").into_bytes();
        bytes.extend(protocol::encode(&Call::Status).unwrap());
        let (last, others) = bytes.split_last().unwrap();
        for byte in others {
            theirs.write_all(&[*byte]).unwrap();
            assert!(matches!(ours.read(), Incoming::Nothing));
        }
        assert_eq!(answer(&mut theirs), format!("{WELCOME}\r\n\r\n"));
        theirs.write_all(&[*last]).unwrap();
        assert!(matches!(ours.read(), Incoming::Call(Call::Status)));
        assert!(ours.is_waiting());
        ours.reply(&Reply::Done);
        assert!(ours.is_over());
        assert_eq!(answer(&mut theirs), "\0\0\0\u{6}\"Done\"");
    }

    #[test]
    fn a_plugin_of_go_is_told_what_to_do() {
        let (mut ours, mut theirs) = pair();
        theirs.write_all(b"CONNECT /_goRPC_ HTTP/1.0\n\n").unwrap();
        assert!(matches!(ours.read(), Incoming::Nothing));
        assert!(ours.is_over());
        let text = answer(&mut theirs);
        assert!(text.starts_with("HTTP/1.0 501 ") && text.contains("install"), "{text}");
        assert_eq!(text.matches('\n').count(), 2, "one status line and a blank one: {text}");
    }

    #[test]
    fn other_versions_and_strangers_are_refused() {
        for (greeting, status) in [
            ("CONNECT /podwire/dhcp/2 HTTP/1.0\r\n\r\n", "505"),
            ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
        ] {
            let (mut ours, mut theirs) = pair();
            theirs.write_all(greeting.as_bytes()).unwrap();
            ours.read();
            assert!(ours.is_over());
            assert!(answer(&mut theirs).starts_with(&format!("HTTP/1.0 {status} ")));
        }
    }

    #[test]
    fn too_much_is_dropped() {
        let (mut ours, mut theirs) = pair();
        theirs.write_all(&vec![b'x'; LONGEST_GREETING + 1]).unwrap();
        assert!(matches!(ours.read(), Incoming::Over));
        for body in [&[0xff; 4][..], b"\0\0\0\x01x", b"\0\0\0\x06\"Nope\""] {
            let (mut ours, mut theirs) = pair();
            theirs.write_all(format!("{GREETING}\r\n\r\n").as_bytes()).unwrap();
            theirs.write_all(body).unwrap();
            assert!(matches!(ours.read(), Incoming::Over));
            let text = answer(&mut theirs);
            assert!(text.contains("can't read the call"), "{text}");
        }
        let (mut ours, theirs) = pair();
        drop(theirs);
        assert!(matches!(ours.read(), Incoming::Over));
    }

    #[test]
    fn counters_are_a_page() {
        let (mut ours, mut theirs) = pair();
        theirs.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        assert!(matches!(ours.read(), Incoming::Metrics));
        ours.page("x 1\n");
        assert!(ours.is_over());
        assert!(answer(&mut theirs).ends_with("Content-Length: 4\r\n\r\nx 1\n"));
    }
}
