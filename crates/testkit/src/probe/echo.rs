//! TCP and UDP servers that say whom they see, and their clients.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::world::Netns;

/// A TCP server in a namespace: it greets with the client's address as it sees it,
/// then sends back what comes. Ends when dropped.
#[derive(Debug)]
pub struct TcpEcho {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    namespace: Netns,
    thread: Option<JoinHandle<()>>,
}

impl TcpEcho {
    /// Listens on `address`; port 0 chooses one.
    #[track_caller]
    pub fn start(namespace: &Netns, address: impl Into<SocketAddr>) -> Self {
        let wanted = address.into();
        let listener = namespace
            .run(|| TcpListener::bind(wanted))
            .unwrap_or_else(|error| panic!("listening on {wanted}: {error}"));
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::Acquire) {
                    return;
                }
                // Each connection ends by itself: its client is a test of bounded time.
                std::thread::spawn(move || serve(&stream));
            }
        });
        Self { address, stop, namespace: namespace.clone(), thread: Some(thread) }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for TcpEcho {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // A last connection wakes the accept. Where the address is no longer there to
        // connect to, the thread ends with the test's process.
        let woken = podwire_sys::netns::NetNs::open(self.namespace.path())
            .ok()
            .and_then(|open| open.run(|| connect(self.address, Duration::from_secs(1))).ok())
            .is_some_and(|result| result.is_ok());
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

/// A connection's failure is its client's to see.
fn serve(mut stream: &TcpStream) {
    let Ok(peer) = stream.peer_addr() else { return };
    if writeln!(stream, "{peer}").is_err() {
        return;
    }
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}

/// A client's connection to a [`TcpEcho`] that has answered.
#[derive(Debug)]
pub struct Connection {
    /// Our address as the server sees it: after masquerading.
    pub seen_as: SocketAddr,
    /// The connection itself.
    pub stream: TcpStream,
}

impl Connection {
    /// Sends bytes and reads them back.
    ///
    /// # Errors
    /// When the connection no longer works.
    pub fn exchange(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        let mut answer = vec![0; bytes.len()];
        self.stream.read_exact(&mut answer)?;
        assert_eq!(answer, bytes);
        Ok(())
    }
}

/// Connects from a namespace to a [`TcpEcho`], by whatever address and port, and
/// waits for its greeting.
///
/// # Errors
/// When it is refused, unreachable or silent for `patience`.
pub fn tcp_connect(
    from: &Netns,
    to: impl Into<SocketAddr>,
    patience: Duration,
) -> io::Result<Connection> {
    let to = to.into();
    let stream = from.run(|| connect(to, patience))?;
    let mut line = String::new();
    // Unbuffered beyond the line: the server says nothing more on its own.
    BufReader::new((&stream).take(128)).read_line(&mut line)?;
    let seen_as = line.trim().parse().map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{to} greeted with {line:?}"))
    })?;
    Ok(Connection { seen_as, stream })
}

fn connect(to: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&to, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    Ok(stream)
}

/// A UDP server in a namespace: it answers each datagram with the sender's address as
/// it sees it, a blank, and the datagram. Ends when dropped.
#[derive(Debug)]
pub struct UdpEcho {
    socket: UdpSocket,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl UdpEcho {
    /// Receives on `address`; port 0 chooses one.
    #[track_caller]
    pub fn start(namespace: &Netns, address: impl Into<SocketAddr>) -> Self {
        let wanted = address.into();
        let socket = namespace
            .run(|| UdpSocket::bind(wanted))
            .unwrap_or_else(|error| panic!("receiving on {wanted}: {error}"));
        let own = socket.try_clone().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            loop {
                let received = own.recv_from(&mut buffer);
                if stopped.load(Ordering::Acquire) {
                    return;
                }
                // Errors are those of earlier answers (ICMP); the next receive goes on.
                if let Ok((count, peer)) = received {
                    let mut answer = format!("{peer} ").into_bytes();
                    answer.extend_from_slice(&buffer[..count]);
                    let _ = own.send_to(&answer, peer);
                }
            }
        });
        Self { socket, stop, thread: Some(thread) }
    }

    /// Where it receives.
    #[track_caller]
    pub fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }
}

impl Drop for UdpEcho {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // Wakes a receive that waits.
        let socket = std::os::fd::OwnedFd::from(self.socket.try_clone().unwrap());
        let _ = TcpStream::from(socket).shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Sends a datagram from a namespace to a [`UdpEcho`]; returns the address that the
/// server saw. The datagram is sent once: what is lost is lost.
///
/// # Errors
/// When no answer comes within `patience`, or it is refused.
pub fn udp_exchange(
    from: &Netns,
    to: impl Into<SocketAddr>,
    patience: Duration,
) -> io::Result<SocketAddr> {
    let to = to.into();
    let any: SocketAddr = if to.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = from.run(|| UdpSocket::bind(any))?;
    socket.connect(to)?;
    socket.set_read_timeout(Some(patience))?;
    socket.send(b"probe")?;
    let mut buffer = [0; 256];
    let count = socket.recv(&mut buffer)?;
    let answer = String::from_utf8_lossy(&buffer[..count]).into_owned();
    let seen = answer.strip_suffix(" probe").and_then(|seen| seen.parse().ok());
    seen.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, answer))
}
