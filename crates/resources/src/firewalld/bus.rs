//! A client of the D-Bus system bus for one call after another.
//!
//! Written here, since the crates that could do it are asynchronous and large
//! (`zbus`), need a C library (`dbus`), or bring a second, unmaintained set of
//! system crates (`rustbus`). What firewalld needs of the protocol is an
//! authentication of one line and method calls with strings.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use podwire_spec::error::Error;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::message::{Answer, Call, FIXED, Value, decode, total_length};

/// Where the bus listens unless `DBUS_SYSTEM_BUS_ADDRESS` says otherwise.
const DEFAULT_PATHS: [&str; 2] = ["/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket"];
/// How long all calls of one connection may take together: firewalld answers
/// no one while it reloads.
const PATIENCE: Duration = Duration::from_secs(15);
/// Messages for others that are passed over while waiting for an answer.
const MESSAGES_LIMIT: usize = 256;
/// The longest line of the authentication.
const LINE_LIMIT: usize = 1024;

/// The bus itself, as a peer.
const BUS: Call<'static> = Call {
    destination: "org.freedesktop.DBus",
    path: "/org/freedesktop/DBus",
    interface: "org.freedesktop.DBus",
    member: "",
    arguments: &[],
};

/// A connection.
#[derive(Debug)]
pub(super) struct Bus {
    stream: UnixStream,
    serial: u32,
    until: Instant,
}

impl Bus {
    /// Connects to the system bus; `None` if there is none.
    ///
    /// # Errors
    /// There is one that doesn't let us in.
    pub(super) fn connect() -> Result<Option<Self>, Error> {
        let configured = std::env::var("DBUS_SYSTEM_BUS_ADDRESS").unwrap_or_default();
        let addresses = match configured.as_str() {
            "" => DEFAULT_PATHS.iter().filter_map(|path| SocketAddrUnix::new(*path).ok()).collect(),
            text => addresses(text),
        };
        for address in addresses {
            match Self::open(&address) {
                Ok(stream) => return Self::greet(stream).map(Some),
                Err(error) => log::debug!("no D-Bus system bus at {address:?}: {error}"),
            }
        }
        Ok(None)
    }

    fn open(address: &SocketAddrUnix) -> rustix::io::Result<UnixStream> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        // Holds for connecting too, where a bus that hangs lets callers queue.
        for side in [Timeout::Send, Timeout::Recv] {
            set_socket_timeout(&socket, side, Some(PATIENCE))?;
        }
        rustix::net::connect(&socket, address)?;
        Ok(UnixStream::from(socket))
    }

    fn greet(stream: UnixStream) -> Result<Self, Error> {
        let mut bus = Self { stream, serial: 0, until: Instant::now() + PATIENCE };
        let mut user = String::new();
        for digit in rustix::process::geteuid().as_raw().to_string().bytes() {
            let _ = write!(user, "{digit:02x}");
        }
        bus.write(format!("\0AUTH EXTERNAL {user}\r\n").as_bytes())?;
        let line = bus.line()?;
        if !line.starts_with("OK ") {
            return Err(Error::internal(format!("the D-Bus system bus refused us: {line}"))
                .with_details("run as root"));
        }
        bus.write(b"BEGIN\r\n")?;
        bus.call(&Call { member: "Hello", ..BUS })?;
        Ok(bus)
    }

    /// Whether anybody on the bus has this name.
    ///
    /// # Errors
    /// The bus doesn't answer.
    pub(super) fn has_owner(&mut self, name: &str) -> Result<bool, Error> {
        let call = Call { member: "NameHasOwner", arguments: &[name], ..BUS };
        Ok(self.call(&call)? == Answer::Return(Some(Value::Truth(true))))
    }

    /// Calls a method and waits for its answer.
    ///
    /// # Errors
    /// The bus doesn't answer in time, or not in its own language. An error
    /// that the method answers with is an answer.
    pub(super) fn call(&mut self, call: &Call<'_>) -> Result<Answer, Error> {
        self.serial += 1;
        let message = call.encode(self.serial);
        self.write(&message)?;
        for _ in 0..MESSAGES_LIMIT {
            let mut message = vec![0; FIXED];
            self.read(&mut message)?;
            let total = total_length(&message)?;
            message.resize(total, 0);
            let rest = message.get_mut(FIXED..).unwrap_or_default();
            self.read(rest)?;
            if let Some(answer) = decode(&message, self.serial)? {
                return Ok(answer);
            }
        }
        Err(Error::internal(format!(
            "the D-Bus system bus sends other things than the answer to {}.{}",
            call.interface, call.member
        )))
    }

    fn left(&self) -> Result<Duration, Error> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(late()) } else { Ok(left) }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let left = self.left()?;
        self.stream.set_write_timeout(Some(left)).map_err(|error| failed(&error))?;
        self.stream.write_all(bytes).map_err(|error| failed(&error))
    }

    fn read(&mut self, mut buffer: &mut [u8]) -> Result<(), Error> {
        while !buffer.is_empty() {
            let left = self.left()?;
            self.stream.set_read_timeout(Some(left)).map_err(|error| failed(&error))?;
            match self.stream.read(buffer) {
                Ok(0) => return Err(failed(&std::io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => buffer = buffer.get_mut(count..).unwrap_or_default(),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&error)),
            }
        }
        Ok(())
    }

    fn line(&mut self) -> Result<String, Error> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            self.read(&mut byte)?;
            line.extend(byte);
            if line.len() > LINE_LIMIT {
                return Err(Error::internal("the D-Bus system bus sends an endless line"));
            }
        }
        Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
    }
}

fn late() -> Error {
    Error::try_again(format!("the D-Bus system bus didn't answer within {PATIENCE:?}"))
}

fn failed(error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => late(),
        _ => Error::internal(format!("talking to the D-Bus system bus: {error}")),
    }
}

/// The sockets that an address names: `unix:path=/run/x;unix:abstract=y`.
pub(super) fn addresses(text: &str) -> Vec<SocketAddrUnix> {
    let socket = |address: &str| {
        let keys = address.strip_prefix("unix:")?;
        keys.split(',').find_map(|pair| match pair.split_once('=')? {
            ("path", value) => SocketAddrUnix::new(unescaped(value)?).ok(),
            ("abstract", value) => SocketAddrUnix::new_abstract_name(&unescaped(value)?).ok(),
            _ => None,
        })
    };
    text.split(';').filter_map(socket).collect()
}

/// `%2F` and the like as bytes.
fn unescaped(value: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut left = value.as_bytes();
    while let Some((first, rest)) = left.split_first() {
        if *first == b'%' {
            let (digits, rest) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            left = rest;
        } else {
            bytes.push(*first);
            left = rest;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_the_specification_says() {
        let path = |text: &str| SocketAddrUnix::new(text).unwrap();
        assert_eq!(addresses("unix:path=/run/bus,guid=12"), [path("/run/bus")]);
        assert_eq!(
            addresses("tcp:host=x;unix:guid=1,path=/a%20b;unix:path=/c"),
            [path("/a b"), path("/c")]
        );
        assert_eq!(addresses("unix:abstract=x").len(), 1);
        for nothing in ["", "unix:", "unix:path=%2", "unix:path=%zz", "launchd:"] {
            assert!(addresses(nothing).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn a_bus_that_hangs_up_or_babbles_is_an_error() {
        for script in [&b""[..], b"REJECTED EXTERNAL\r\n", b"OK 1\r\nxxxxxxxxxxxxxxxxxxxxxx"] {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            theirs.write_all(script).unwrap();
            theirs.shutdown(std::net::Shutdown::Write).unwrap();
            assert!(Bus::greet(ours).is_err());
        }
    }
}
