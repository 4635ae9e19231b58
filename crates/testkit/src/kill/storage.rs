//! The disk refusing what a process asks of it, at a counted call.
//!
//! Only calls about files below the directories of state count: opening, reading,
//! writing, syncing, naming and removing them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::syscall_name;
use super::thread::Thread;
use super::trace::{Entry, Reaction, Scope, Watch};
use super::watched;
use crate::command::Output;

/// Where state is kept.
pub const STATE: [&str; 2] = ["/var/lib/cni", "/run/podwire"];

/// Longer paths are cut.
const PATH_LIMIT: usize = 4096;
const PAGE: u64 = 4096;

/// What is wrong with the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFault {
    /// It is full from the counted call on, until the process ends: nothing is made,
    /// written or synced (`ENOSPC`), but files can be removed.
    Full,
    /// It can only be read from the counted call on (`EROFS`).
    ReadOnly,
    /// The counted call fails, reading too (`EIO`).
    Broken,
    /// The counted call finds no space; the next one does.
    FullOnce,
}

/// What became of a call on a bad disk.
#[derive(Debug, Clone)]
pub struct Spoiled {
    /// The first call that failed, by name and file; `None` if there were fewer.
    pub at: Option<String>,
    /// What it printed and how it ended.
    pub output: Output,
}

/// Runs a command for which the disk is bad from its `number`-th call on that the fault
/// can meet, counted from 1.
#[track_caller]
pub fn run_and_spoil(command: Command, stdin: &[u8], number: u64, fault: DiskFault) -> Spoiled {
    let mut watch = Spoil { number, fault, seen: 0, at: None, pending: BTreeMap::new() };
    let (_, output) = watched(command, stdin, Scope::Process, &mut watch);
    Spoiled { at: watch.at, output }
}

/// What a call does to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Read,
    Make,
    Remove,
}

struct Spoil {
    number: u64,
    fault: DiskFault,
    seen: u64,
    at: Option<String>,
    pending: BTreeMap<Thread, i32>,
}

impl Spoil {
    fn meets(&self, deed: Deed) -> bool {
        match self.fault {
            DiskFault::Full | DiskFault::FullOnce => deed == Deed::Make,
            DiskFault::ReadOnly => deed != Deed::Read,
            DiskFault::Broken => true,
        }
    }

    fn error(&self) -> i32 {
        match self.fault {
            DiskFault::Full | DiskFault::FullOnce => libc::ENOSPC,
            DiskFault::ReadOnly => libc::EROFS,
            DiskFault::Broken => libc::EIO,
        }
    }

    fn is_due(&self) -> bool {
        match self.fault {
            DiskFault::Full | DiskFault::ReadOnly => self.seen >= self.number,
            DiskFault::Broken | DiskFault::FullOnce => self.seen == self.number,
        }
    }
}

impl Watch for Spoil {
    fn enter(&mut self, thread: Thread, entry: Entry) -> io::Result<Reaction> {
        let Some((deed, path)) = deed(thread, &entry)? else { return Ok(Reaction::GoOn) };
        if !self.meets(deed) || !STATE.iter().any(|root| path.starts_with(root)) {
            return Ok(Reaction::GoOn);
        }
        self.seen += 1;
        if self.is_due() {
            thread.skip_call()?;
            self.pending.insert(thread, self.error());
            let name = syscall_name(entry.number).unwrap_or("a call");
            self.at.get_or_insert_with(|| format!("{name} of {}", path.display()));
        }
        Ok(Reaction::GoOn)
    }

    fn leave(&mut self, thread: Thread, _returned: i64) -> io::Result<()> {
        match self.pending.remove(&thread) {
            Some(error) => thread.set_returned(i64::from(-error)),
            None => Ok(()),
        }
    }
}

/// What a call is about to do, and to which file; `None` for those about no file.
fn deed(thread: Thread, entry: &Entry) -> io::Result<Option<(Deed, PathBuf)>> {
    let number = i64::try_from(entry.number).unwrap_or(-1);
    let [first, second, third, fourth, ..] = entry.arguments;
    let at_path = |deed, address| Ok(Some((deed, path_at(thread, address)?)));
    let at_descriptor = |deed| {
        let link = format!("/proc/{}/fd/{first}", thread.0);
        // A descriptor that is none is the process's own trouble.
        Ok(std::fs::read_link(link).ok().map(|path| (deed, path)))
    };
    #[cfg(target_arch = "x86_64")]
    match number {
        libc::SYS_open => return at_path(opening(second), first),
        libc::SYS_mkdir => return at_path(Deed::Make, first),
        libc::SYS_rename | libc::SYS_link => return at_path(Deed::Make, second),
        libc::SYS_unlink | libc::SYS_rmdir => return at_path(Deed::Remove, first),
        _ => {}
    }
    match number {
        libc::SYS_openat => at_path(opening(third), second),
        libc::SYS_mkdirat => at_path(Deed::Make, second),
        libc::SYS_renameat | libc::SYS_renameat2 | libc::SYS_linkat => at_path(Deed::Make, fourth),
        libc::SYS_unlinkat => at_path(Deed::Remove, second),
        libc::SYS_utimensat if second != 0 => at_path(Deed::Make, second),
        libc::SYS_write
        | libc::SYS_pwrite64
        | libc::SYS_writev
        | libc::SYS_ftruncate
        | libc::SYS_fsync
        | libc::SYS_fdatasync
        | libc::SYS_fchmod
        | libc::SYS_utimensat => at_descriptor(Deed::Make),
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_getdents64 => at_descriptor(Deed::Read),
        _ => Ok(None),
    }
}

fn opening(flags: u64) -> Deed {
    let makes = u64::from((libc::O_CREAT | libc::O_TMPFILE & !libc::O_DIRECTORY).unsigned_abs());
    if flags & makes == 0 { Deed::Read } else { Deed::Make }
}

/// The path that is written at an address, page by page: the next may not be there.
fn path_at(thread: Thread, address: u64) -> io::Result<PathBuf> {
    let (mut text, mut next) = (Vec::new(), address);
    while text.len() < PATH_LIMIT {
        let room = usize::try_from(PAGE - next % PAGE).map_err(io::Error::other)?;
        let part = thread.read(next, room)?;
        if let Some(end) = part.iter().position(|byte| *byte == 0) {
            text.extend_from_slice(&part[..end]);
            break;
        }
        text.extend_from_slice(&part);
        next += room as u64;
    }
    Ok(Path::new(String::from_utf8_lossy(&text).as_ref()).to_owned())
}
