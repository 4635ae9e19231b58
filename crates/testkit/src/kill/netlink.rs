//! The kernel refusing what it is asked over netlink, at a counted request.

use std::collections::BTreeMap;
use std::io;
use std::process::Command;

use super::thread::Thread;
use super::trace::{Entry, Reaction, Scope, Watch};
use super::watched;
use crate::command::Output;

/// `AF_NETLINK`, as an argument of socket(2).
const NETLINK: u64 = 16;
/// No message type of any netlink family that is used here has this number: the kernel
/// refuses the message, and with it the batch that it is in.
const UNKNOWN_TYPE: u16 = 0x0fff;
/// `NLMSG_ERROR`, linux/netlink.h.
const ERROR: u16 = 2;
/// `NETLINK_NETFILTER`, linux/netlink.h: requests of this protocol may be batches.
const NETFILTER: u64 = 12;
/// `NFNL_MSG_BATCH_BEGIN`, linux/netfilter/nfnetlink.h.
const BATCH_BEGIN: u16 = 16;
/// `NFNL_MSG_BATCH_END`.
const BATCH_END: u16 = 17;
/// `sizeof(struct nlmsghdr)`.
const HEADER: usize = 16;

/// How a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It can't be sent: send(2) returns this error (`ENOBUFS`, `EINTR`).
    Unsent(i32),
    /// The kernel answers with this error and has done nothing (`EBUSY`, `ERESTART`).
    Answered(i32),
    /// The same, but what stood before the last message of the request is done, unless
    /// it was a batch of nftables.
    AnsweredLast(i32),
}

/// What became of a call with a refused request.
#[derive(Debug, Clone)]
pub struct Refused {
    /// How many requests it made in all.
    pub requests: u64,
    /// Whether there was one to refuse.
    pub was_refused: bool,
    /// What it printed and how it ended.
    pub output: Output,
}

/// Runs a command whose `number`-th netlink request, counted from 1, fails.
#[track_caller]
pub(crate) fn run_and_refuse(
    command: Command,
    stdin: &[u8],
    number: u64,
    refusal: Refusal,
) -> Refused {
    let mut watch = Refuse { number, refusal, ..Refuse::default() };
    let (_, output) = watched(command, stdin, Scope::Process, &mut watch);
    Refused { requests: watch.requests, was_refused: watch.requests >= number, output }
}

/// What a thread's call will do, decided when it was entered.
#[derive(Debug, Clone, Copy)]
enum Pending {
    /// The call makes a netlink socket of this protocol.
    Socket { protocol: u64 },
    /// The call was not made and fails.
    Fail(i32),
    /// The call receives into this buffer.
    Receive { socket: u64, buffer: u64, room: u64 },
}

struct Refuse {
    number: u64,
    refusal: Refusal,
    requests: u64,
    /// Descriptors that are netlink sockets, with their protocols.
    sockets: BTreeMap<u64, u64>,
    /// The descriptor whose next error is ours, and which.
    expected: Option<(u64, i32)>,
    pending: BTreeMap<Thread, Pending>,
}

impl Default for Refuse {
    fn default() -> Self {
        Self {
            number: 0,
            refusal: Refusal::Unsent(0),
            requests: 0,
            sockets: BTreeMap::new(),
            expected: None,
            pending: BTreeMap::new(),
        }
    }
}

impl Watch for Refuse {
    fn enter(&mut self, thread: Thread, entry: Entry) -> io::Result<Reaction> {
        let [first, second, third, ..] = entry.arguments;
        let number = i64::try_from(entry.number).unwrap_or(-1);
        let pending = if number == libc::SYS_socket && first == NETLINK {
            Some(Pending::Socket { protocol: third })
        } else if !self.sockets.contains_key(&first) {
            None
        } else if number == libc::SYS_close {
            self.sockets.remove(&first);
            None
        } else if number == libc::SYS_sendto {
            self.send(thread, first, second, third)?
        } else if number == libc::SYS_recvfrom {
            Some(Pending::Receive { socket: first, buffer: second, room: third })
        } else {
            let unseen = [libc::SYS_sendmsg, libc::SYS_recvmsg, libc::SYS_write, libc::SYS_read];
            assert!(!unseen.contains(&number), "netlink by system call {number} is not watched");
            None
        };
        match pending {
            Some(pending) => self.pending.insert(thread, pending),
            None => self.pending.remove(&thread),
        };
        Ok(Reaction::GoOn)
    }

    fn leave(&mut self, thread: Thread, returned: i64) -> io::Result<()> {
        match self.pending.remove(&thread) {
            Some(Pending::Socket { protocol }) => {
                self.sockets.extend(u64::try_from(returned).ok().map(|socket| (socket, protocol)));
                Ok(())
            }
            Some(Pending::Fail(error)) => thread.set_returned(i64::from(-error)),
            Some(Pending::Receive { socket, buffer, room }) => {
                // A look at the length of what is to come has no room.
                let length = u64::try_from(returned).unwrap_or_default().min(room);
                let length = usize::try_from(length).map_err(io::Error::other)?;
                self.receive(thread, socket, buffer, length)
            }
            None => Ok(()),
        }
    }
}

impl Refuse {
    fn send(
        &mut self,
        thread: Thread,
        socket: u64,
        buffer: u64,
        length: u64,
    ) -> io::Result<Option<Pending>> {
        self.requests += 1;
        if self.requests != self.number {
            return Ok(None);
        }
        match self.refusal {
            Refusal::Unsent(error) => {
                thread.skip_call()?;
                Ok(Some(Pending::Fail(error)))
            }
            Refusal::Answered(error) | Refusal::AnsweredLast(error) => {
                self.expected = Some((socket, error));
                let length = usize::try_from(length).map_err(io::Error::other)?;
                let mut bytes = thread.read(buffer, length)?;
                let may_be_batch = self.sockets.get(&socket) == Some(&NETFILTER);
                let is_last = matches!(self.refusal, Refusal::AnsweredLast(_));
                spoil(&mut bytes, may_be_batch, is_last);
                thread.write(buffer, &bytes)?;
                Ok(None)
            }
        }
    }

    /// Puts the wanted error in place of the kernel's.
    fn receive(
        &mut self,
        thread: Thread,
        socket: u64,
        buffer: u64,
        length: usize,
    ) -> io::Result<()> {
        let Some((expected, error)) = self.expected.filter(|(expected, _)| *expected == socket)
        else {
            return Ok(());
        };
        debug_assert_eq!(expected, socket);
        let mut bytes = thread.read(buffer, length)?;
        let mut found = false;
        each_message(&mut bytes, |kind, message| {
            let code = message.get_mut(HEADER..HEADER + 4);
            if let Some(code) = code.filter(|code| kind == ERROR && **code != [0; 4]) {
                code.copy_from_slice(&(-error).to_ne_bytes());
                found = true;
            }
        });
        if found {
            self.expected = None;
            thread.write(buffer, &bytes)?;
        }
        Ok(())
    }
}

/// Makes a request one that the kernel refuses: its first or its last message that is
/// not the begin or end of a batch.
fn spoil(bytes: &mut [u8], may_be_batch: bool, is_last: bool) {
    let is_frame = |kind: u16| may_be_batch && [BATCH_BEGIN, BATCH_END].contains(&kind);
    let mut count = 0;
    each_message(bytes, |kind, _| count += usize::from(!is_frame(kind)));
    assert!(count > 0, "an empty netlink request");
    let wanted = if is_last { count - 1 } else { 0 };
    let mut number = 0;
    each_message(bytes, |kind, message| {
        if is_frame(kind) {
            return;
        }
        if number == wanted {
            // Behind the length. The subsystem of nfnetlink stays, in the upper byte.
            let upper = kind & 0xff00;
            let kind = if upper == 0 { UNKNOWN_TYPE } else { upper | 0xff };
            message[4..6].copy_from_slice(&kind.to_ne_bytes());
        }
        number += 1;
    });
}

/// Each message with its type.
fn each_message(mut bytes: &mut [u8], mut work: impl FnMut(u16, &mut [u8])) {
    while bytes.len() >= HEADER {
        let length = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
        if length < HEADER || length > bytes.len() {
            return;
        }
        work(u16::from_ne_bytes([bytes[4], bytes[5]]), &mut bytes[..length]);
        let next = length.next_multiple_of(4).min(bytes.len());
        bytes = &mut bytes[next..];
    }
}
