//! Who holds a lock, from /proc/locks (proc(5)).

use std::fmt;
use std::os::fd::OwnedFd;
use std::path::Path;

/// More of /proc/locks than this (4 MiB, about 70,000 locks) is not read.
const LIMIT: usize = 4 << 20;

/// A process that took a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its id in our pid namespace.
    pub pid: u32,
    /// Its name; `None` when it has ended and a process that it started, and that
    /// inherited the lock, may be the one that holds it.
    pub command: Option<String>,
}

impl fmt::Display for Holder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.command {
            Some(command) => write!(formatter, "pid {} ({command})", self.pid),
            None => write!(formatter, "pid {} (ended; a child of it may hold it)", self.pid),
        }
    }
}

/// Text for an error.
pub(super) fn list(holders: &[Holder]) -> String {
    if holders.is_empty() {
        return "a process that /proc/locks does not show".to_owned();
    }
    holders.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The holders of flock locks on the open file; empty when unknown.
pub(super) fn of(fd: &OwnedFd) -> Vec<Holder> {
    let Ok(stat) = rustix::fs::fstat(fd) else { return Vec::new() };
    let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
    let Ok(table) = crate::file::read_bounded(Path::new("/proc/locks"), LIMIT) else {
        return Vec::new();
    };
    let file = format!("{major:02x}:{minor:02x}:{}", stat.st_ino);
    String::from_utf8_lossy(&table)
        .lines()
        .filter_map(|line| pid_of(line, &file))
        .map(|pid| Holder { pid, command: command_of(pid) })
        .collect()
}

/// The pid of a line such as `1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF` if it
/// is about `file`; waiting processes (`1: -> FLOCK ...`) hold nothing.
pub(crate) fn pid_of(line: &str, file: &str) -> Option<u32> {
    let mut fields = line.split_ascii_whitespace();
    let kind = fields.nth(1)?;
    let pid = fields.nth(2)?;
    let about = fields.next()?;
    // A lock of another pid namespace is listed with pid 0 or -1.
    (kind == "FLOCK" && about == file).then(|| pid.parse().ok().filter(|pid| *pid != 0))?
}

/// The name of a process, bounded and with control characters made visible.
fn command_of(pid: u32) -> Option<String> {
    let path = format!("/proc/{pid}/comm");
    let bytes = crate::file::read_bounded(Path::new(&path), 256).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_end().escape_debug().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_line_of_a_holder_and_skips_the_others() {
        let file = "fe:00:5678";
        assert_eq!(pid_of("1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF", file), Some(1234));
        for other in [
            "1: -> FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF",
            "2: POSIX  ADVISORY  WRITE 1234 fe:00:5678 0 EOF",
            "3: FLOCK  ADVISORY  WRITE 1234 fe:00:56789 0 EOF",
            "4: FLOCK  ADVISORY  WRITE 0 fe:00:5678 0 EOF",
            "4: FLOCK",
            "",
        ] {
            assert_eq!(pid_of(other, file), None, "{other}");
        }
    }

    #[test]
    fn an_ended_holder_is_said_to_be_one() {
        let text = list(&[Holder { pid: 7, command: None }]);
        assert_eq!(text, "pid 7 (ended; a child of it may hold it)");
        assert!(list(&[]).contains("/proc/locks"));
    }
}
