//! A page of a server.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::world::Netns;

/// Asks a server for its page, `/` in HTTP/1.0, and returns the whole answer with its
/// head. `connecting` bounds the wait for the connection, `answer` that for each part
/// of what comes.
///
/// # Errors
/// What the kernel said: refused, unreachable, timed out.
pub fn http_page(
    from: &Netns,
    address: SocketAddr,
    connecting: Duration,
    answer: Duration,
) -> io::Result<String> {
    from.run(|| {
        let mut stream = TcpStream::connect_timeout(&address, connecting)?;
        stream.set_read_timeout(Some(answer))?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    })
}
