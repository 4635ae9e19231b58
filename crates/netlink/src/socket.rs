//! A netlink socket: opening, sending, receiving with a deadline.
//!
//! What the bytes mean is [`exchange`](crate::exchange)'s matter.

#![allow(unsafe_code)] // setsockopt(SOL_NETLINK), which rustix doesn't offer.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, netlink, recvfrom, send,
    socket_with, sockopt,
};

use crate::error::{Cause, Error, Malformed, Subject};
use crate::message::Requests;

/// How long an answer may take unless [`Socket::set_deadline`] says otherwise.
///
/// The kernel answers within the send, but may wait for the lock of its
/// network configuration, which a busy host holds for seconds.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// Room for one datagram: the most that the kernel puts into one when it lists.
const DATAGRAM: usize = 32 * 1024;
/// No answer may be longer, whatever its header says.
const LONGEST_DATAGRAM: usize = 16 * 1024 * 1024;
/// Sends up to this size fit the default send buffer (`net.core.wmem_default`).
const UNREMARKABLE_SEND: usize = 64 * 1024;
/// Acknowledgements up to this number fit the default receive buffer.
const UNREMARKABLE_ANSWERS: usize = 64;
/// What one acknowledgement takes of the receive buffer, its bookkeeping
/// (`skb->truesize`) included.
const ANSWER_SIZE: usize = 2048;

/// Options of linux/netlink.h.
const NETLINK_ADD_MEMBERSHIP: libc::c_int = 1;
const NETLINK_CAP_ACK: libc::c_int = 10;
const NETLINK_EXT_ACK: libc::c_int = 11;
const NETLINK_GET_STRICT_CHK: libc::c_int = 12;

/// The netlink families that this crate speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Links, addresses, routes, rules, neighbours, traffic control.
    Route,
    /// nftables and conntrack.
    Netfilter,
}

/// A blocking netlink socket of the network namespace it was opened in.
///
/// It stays in that namespace when the thread moves to another.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    sequence: u32,
    datagram: Vec<u8>,
    deadline: Duration,
    send_buffer: usize,
    answer_buffer: usize,
}

/// One receive: a datagram, or the news that one was lost.
pub(crate) enum Received {
    /// Its bytes are in [`Socket::datagram`].
    Datagram,
    /// It was dropped by the kernel or didn't fit. The room has been made for
    /// the next try.
    Lost,
}

impl Socket {
    /// Opens a socket in the thread's current network namespace.
    ///
    /// # Errors
    /// The kernel lacks the protocol, or the process is out of descriptors.
    pub fn open(protocol: Protocol) -> Result<Self, Error> {
        // NETLINK_ROUTE is 0, which rustix writes as no protocol.
        let (number, name) = match protocol {
            Protocol::Route => (None, "NETLINK_ROUTE"),
            Protocol::Netfilter => (Some(netlink::NETFILTER), "NETLINK_NETFILTER"),
        };
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, number)
            .map_err(|errno| {
                Subject::new("opening", &name).error(Cause::Socket { call: "socket", errno })
            })?;
        // Each of these only improves error texts or strictness, so a kernel
        // without it is served all the same. Strict checks come with 4.20.
        for option in [NETLINK_EXT_ACK, NETLINK_CAP_ACK, NETLINK_GET_STRICT_CHK] {
            let _unsupported = set_option(fd.as_fd(), option, 1);
        }
        Ok(Self {
            fd,
            sequence: 0,
            datagram: Vec::new(),
            deadline: DEADLINE,
            send_buffer: UNREMARKABLE_SEND,
            answer_buffer: UNREMARKABLE_ANSWERS * ANSWER_SIZE,
        })
    }

    /// How long one exchange may take, from now on.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    /// How long one exchange may take.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Joins a multicast group by number, after binding to an address of its
    /// own: the kernel sends no notifications to an unbound socket.
    ///
    /// # Errors
    /// The kernel lacks the group, or the privilege is missing.
    pub fn join(&self, group: u32) -> Result<(), Cause> {
        // Binding twice is refused (EINVAL) and harmless: the address stays.
        match bind(&self.fd, &SocketAddrNetlink::new(0, 0)) {
            Ok(()) | Err(Errno::INVAL) => {}
            Err(errno) => return Err(Cause::Socket { call: "bind", errno }),
        }
        set_option(self.fd.as_fd(), NETLINK_ADD_MEMBERSHIP, group.cast_signed())
            .map_err(|errno| Cause::Socket { call: "setsockopt NETLINK_ADD_MEMBERSHIP", errno })
    }

    /// Numbers and sends the requests in one system call; returns the first
    /// one's sequence number, which the others follow.
    pub(crate) fn transmit(&mut self, requests: &mut Requests) -> Result<u32, Cause> {
        if let Some(fault) = requests.fault() {
            return Err(Cause::Unrepresentable(fault));
        }
        let first = self.sequence.wrapping_add(1);
        let count = u32::try_from(requests.len())
            .map_err(|_| Cause::Unrepresentable("more than 4 billion requests"))?;
        self.sequence = self.sequence.wrapping_add(count);
        requests.number(first);
        self.make_room(requests)?;
        loop {
            match send(&self.fd, requests.bytes(), SendFlags::empty()) {
                Ok(sent) if sent == requests.bytes().len() => return Ok(first),
                Ok(_) => return Err(Cause::Socket { call: "send", errno: Errno::MSGSIZE }),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Cause::Socket { call: "send", errno }),
            }
        }
    }

    /// Grows the socket's buffers for a big batch and its acknowledgements,
    /// past the system's limits where the privilege allows.
    fn make_room(&mut self, requests: &Requests) -> Result<(), Cause> {
        let bytes = requests.bytes().len().saturating_add(1024);
        if bytes > self.send_buffer {
            // The kernel doubles the value, for its bookkeeping.
            sockopt::set_socket_send_buffer_size_force(&self.fd, bytes)
                .or_else(|_| sockopt::set_socket_send_buffer_size(&self.fd, bytes))
                .map_err(|errno| Cause::Socket { call: "setsockopt SO_SNDBUF", errno })?;
            self.send_buffer = bytes;
        }
        let answers = requests.len().saturating_mul(ANSWER_SIZE);
        if answers > self.answer_buffer {
            sockopt::set_socket_recv_buffer_size_force(&self.fd, answers)
                .or_else(|_| sockopt::set_socket_recv_buffer_size(&self.fd, answers))
                .map_err(|errno| Cause::Socket { call: "setsockopt SO_RCVBUF", errno })?;
            self.answer_buffer = answers;
        }
        Ok(())
    }

    /// Waits for one datagram of the kernel's, until the given moment.
    pub(crate) fn receive(&mut self, until: Instant) -> Result<Received, Cause> {
        if self.datagram.capacity() < DATAGRAM {
            self.datagram.reserve_exact(DATAGRAM);
        }
        loop {
            self.datagram.clear();
            let flags = RecvFlags::TRUNC | RecvFlags::DONTWAIT;
            // The kernel answers within the send, so there is mostly
            // something to read already; poll only when there isn't.
            let room = rustix::buffer::spare_capacity(&mut self.datagram);
            match recvfrom(&self.fd, room, flags) {
                Ok((read, length, sender)) => {
                    let sender = sender.map(SocketAddrNetlink::try_from);
                    if !matches!(sender, Some(Ok(address)) if address.pid() == 0) {
                        // Another process may send to our port: not the kernel.
                        continue;
                    }
                    if length <= read {
                        return Ok(Received::Datagram);
                    }
                    if length > LONGEST_DATAGRAM {
                        return Err(Cause::Malformed(Malformed("a reply of more than 16 MiB")));
                    }
                    self.datagram.clear();
                    self.datagram.reserve_exact(length);
                    return Ok(Received::Lost);
                }
                Err(Errno::AGAIN) => self.wait(until)?,
                Err(Errno::INTR) => {}
                Err(Errno::NOBUFS) => return Ok(Received::Lost),
                Err(errno) => return Err(Cause::Socket { call: "recvfrom", errno }),
            }
        }
    }

    /// The datagram received last.
    pub(crate) fn datagram(&self) -> &[u8] {
        &self.datagram
    }

    fn wait(&self, until: Instant) -> Result<(), Cause> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Cause::Deadline(self.deadline));
            }
            let left = Timespec::try_from(left).ok();
            match poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], left.as_ref()) {
                Ok(0) => return Err(Cause::Deadline(self.deadline)),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Cause::Socket { call: "poll", errno }),
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn set_option(fd: BorrowedFd<'_>, option: libc::c_int, value: libc::c_int) -> Result<(), Errno> {
    let size = size_of::<libc::c_int>();
    let length = libc::socklen_t::try_from(size).map_err(|_| Errno::INVAL)?;
    // SAFETY: the descriptor is open for the length of the borrow, and the
    // pointer and length describe `value`, which outlives the call; the
    // kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_NETLINK,
            option,
            std::ptr::from_ref(&value).cast(),
            length,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL))
    }
}
