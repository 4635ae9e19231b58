//! Doors to what reads the socket, for fuzzing. No part of the API.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::call::{Deadline, converse};
use crate::daemon::connection::{Connection, Incoming};
use crate::protocol::{Call, Reply};

/// More than is ever in flight.
const PATIENCE: Duration = Duration::from_secs(5);

/// Gives the daemon what a client wrote, in pieces of so many bytes, and has every call
/// done at once. Returns how many calls and requests for counters it made of it, and
/// what it answered.
///
/// # Errors
/// What the sockets say, which are a pair in this process.
pub fn client(bytes: &[u8], piece: usize) -> io::Result<(usize, Vec<u8>)> {
    let (ours, mut theirs) = UnixStream::pair()?;
    let mut connection = Connection::new(ours)?;
    let (mut count, mut answer) = (0, Vec::new());
    for piece in bytes.chunks(piece.max(1)) {
        theirs.write_all(piece)?;
        match connection.read() {
            Incoming::Nothing => {}
            Incoming::Call(_) => {
                count += 1;
                connection.reply(&Reply::Done);
            }
            Incoming::Metrics => {
                count += 1;
                connection.page("none 0\n");
            }
            Incoming::Over => break,
        }
        if connection.is_over() {
            break;
        }
    }
    drop(connection);
    match theirs.read_to_end(&mut answer) {
        // It went away with something of ours unread.
        Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(error),
        _ => Ok((count, answer)),
    }
}

/// Gives the plugin what a daemon answered; says what it made of it, if anything.
///
/// # Errors
/// What the sockets say, which are a pair in this process.
pub fn answer(bytes: &[u8]) -> io::Result<Option<Reply>> {
    let (connection, mut theirs) = UnixStream::pair()?;
    theirs.write_all(bytes)?;
    theirs.shutdown(Shutdown::Write)?;
    let stream = Deadline { connection, until: Instant::now() + PATIENCE };
    Ok(converse(stream, Path::new("pair"), &Call::Status).ok())
}
