//! Counting what a call asks of the kernel: exact where a clock is not.
//!
//! The call is traced with all that it starts. The same call in the same state has
//! the same counts on a noisy machine, so that a regression shows without a clock.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::process::Command;

use super::thread::Thread;
use super::trace::{Entry, Reaction, Scope, Watch};
use super::{syscall_name, watched};
use crate::command::Output;

/// `AF_NETLINK`, as an argument of socket(2).
const NETLINK: u64 = 16;
/// `sizeof(struct nlmsghdr)`, linux/netlink.h.
const HEADER: usize = 16;
/// The most that is read of one request.
const MOST: u64 = 1 << 20;

/// What a call and the programs that it started asked of the kernel.
#[derive(Debug, Clone, Default)]
pub struct Census {
    /// Programs executed, the call itself included.
    pub processes: u64,
    /// System calls by their numbers.
    pub by_number: BTreeMap<u64, u64>,
    /// Netlink messages sent.
    pub messages: u64,
    /// The largest resident memory of one of the processes, in bytes.
    pub peak_memory: u64,
}

impl Census {
    /// All system calls.
    pub fn system_calls(&self) -> u64 {
        self.by_number.values().sum()
    }

    /// How often a system call was made, by its number (`libc::SYS_…`).
    pub fn calls(&self, number: i64) -> u64 {
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        self.by_number.get(&number).copied().unwrap_or_default()
    }

    /// The counts by name, the most frequent first: `openat 12, close 9`.
    pub fn histogram(&self) -> String {
        let mut counts: Vec<_> = self.by_number.iter().collect();
        counts.sort_by_key(|(number, count)| (std::cmp::Reverse(**count), **number));
        let words = counts.into_iter().map(|(number, count)| match syscall_name(*number) {
            Some(name) => format!("{} {count}", name.trim_start_matches("SYS_")),
            None => format!("[{number}] {count}"),
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

/// Runs a command to its end and counts.
#[track_caller]
pub fn take(command: Command, stdin: &[u8]) -> (Census, Output) {
    let mut counting = Counting::default();
    let (_, output) = watched(command, stdin, Scope::Descendants, &mut counting);
    (counting.census, output)
}

#[derive(Default)]
struct Counting {
    census: Census,
    /// Threads, and the processes that they are of.
    process_of: BTreeMap<Thread, i32>,
    /// Netlink sockets: process and descriptor.
    sockets: BTreeSet<(i32, u64)>,
    /// Threads that are about to make one.
    opening: BTreeSet<Thread>,
}

impl Watch for Counting {
    fn begin(&mut self, thread: Thread) -> io::Result<()> {
        let process = status_number(thread, "Tgid:")?.unwrap_or_default();
        let process = i32::try_from(process).map_err(io::Error::other)?;
        self.census.processes += u64::from(process == thread.0);
        self.process_of.insert(thread, process);
        Ok(())
    }

    fn enter(&mut self, thread: Thread, entry: Entry) -> io::Result<Reaction> {
        *self.census.by_number.entry(entry.number).or_default() += 1;
        let [first, second, third, ..] = entry.arguments;
        let number = i64::try_from(entry.number).unwrap_or(-1);
        if number == libc::SYS_socket && first == NETLINK {
            self.opening.insert(thread);
            return Ok(Reaction::GoOn);
        }
        let socket = (self.process_of.get(&thread).copied().unwrap_or_default(), first);
        if !self.sockets.contains(&socket) {
            return Ok(Reaction::GoOn);
        }
        if number == libc::SYS_close {
            self.sockets.remove(&socket);
        } else if number == libc::SYS_sendto || number == libc::SYS_write {
            let request = read(thread, second, third)?;
            self.census.messages += messages(&request);
        } else if number == libc::SYS_sendmsg {
            self.census.messages += messages(&gathered(thread, second)?);
        }
        Ok(Reaction::GoOn)
    }

    fn leave(&mut self, thread: Thread, returned: i64) -> io::Result<()> {
        if self.opening.remove(&thread)
            && let (Ok(socket), Some(process)) =
                (u64::try_from(returned), self.process_of.get(&thread))
        {
            self.sockets.insert((*process, socket));
        }
        Ok(())
    }

    fn end(&mut self, thread: Thread) -> io::Result<()> {
        // The high-water mark of resident memory (proc_pid_status(5)), in KiB.
        let peak = status_number(thread, "VmHWM:")?.unwrap_or_default() * 1024;
        self.census.peak_memory = self.census.peak_memory.max(peak);
        Ok(())
    }
}

/// The bytes that a `struct msghdr` points to.
fn gathered(thread: Thread, header: u64) -> io::Result<Vec<u8>> {
    // msg_iov and msg_iovlen stand behind msg_name and msg_namelen, 8 bytes each.
    let header = words(&read(thread, header, 32)?);
    let [.., parts, count] = header[..] else { return Ok(Vec::new()) };
    let mut bytes = Vec::new();
    for part in words(&read(thread, parts, count.min(64) * 16)?).chunks_exact(2) {
        bytes.extend(read(thread, part[0], part[1])?);
    }
    Ok(bytes)
}

fn read(thread: Thread, address: u64, length: u64) -> io::Result<Vec<u8>> {
    thread.read(address, usize::try_from(length.min(MOST)).map_err(io::Error::other)?)
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    bytes.chunks_exact(8).map(word).collect()
}

/// How many messages a request has (linux/netlink.h: aligned to four bytes).
fn messages(mut request: &[u8]) -> u64 {
    let mut count = 0;
    while let Some(head) = request.get(..HEADER) {
        let length = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if length < HEADER || length > request.len() {
            break;
        }
        count += 1;
        request = request.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    count
}

/// A number of `/proc/PID/status`; `None` if the line isn't there.
fn status_number(thread: Thread, line: &str) -> io::Result<Option<u64>> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", thread.0))?;
    let word = status
        .lines()
        .find_map(|found| found.strip_prefix(line))
        .and_then(|value| value.split_whitespace().next());
    Ok(word.and_then(|word| word.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_started_count_with_the_call() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "/bin/true; /bin/true; exit 3"]);
        let (census, output) = take(command, b"");
        assert_eq!((census.processes, output.code), (3, 3));
        assert_eq!(census.calls(libc::SYS_execve), 2, "{}", census.histogram());
        assert!(census.peak_memory > 100_000, "{census:?}");
        assert_eq!(census.messages, 0);
    }

    #[test]
    fn netlink_messages_of_any_program_are_counted() {
        let mut command = Command::new("ip");
        command.args(["link", "show", "lo"]);
        let (census, output) = take(command, b"");
        output.success();
        assert!(census.messages >= 1, "{}", census.histogram());
    }

    #[test]
    fn messages_are_counted_by_their_lengths() {
        let mut request = vec![0; 40];
        request[0] = 17;
        request[20] = 20;
        assert_eq!(messages(&request), 2);
        assert_eq!(messages(&request[..30]), 1);
        assert_eq!(messages(&[0; 64]), 0);
    }
}
