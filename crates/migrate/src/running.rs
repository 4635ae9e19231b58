//! Calls of a plugin that run at this moment.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::place::{Identity, target};

/// Processes that execute one of these files, this one left out.
///
/// Only what /proc shows can be seen: the processes of this pid namespace.
pub(crate) fn running(programs: &BTreeSet<Identity>) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if id != std::process::id() && executes(id, programs) {
            found.push(id);
        }
    }
    found.sort_unstable();
    found
}

fn executes(id: u32, programs: &BTreeSet<Identity>) -> bool {
    // The link leads to the file itself, also when its name is gone.
    let link = format!("/proc/{id}/exe");
    target(Path::new(&link)).is_some_and(|found| programs.contains(&found))
}

/// Waits until those that run now have ended; names those that still run when the
/// time is over.
pub(crate) fn wait_for(programs: &BTreeSet<Identity>, patience: Duration) -> Vec<u32> {
    let end = Instant::now() + patience;
    running(programs).into_iter().filter(|id| !ends(*id, programs, end)).collect()
}

fn ends(id: u32, programs: &BTreeSet<Identity>, end: Instant) -> bool {
    let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) else { return true };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
        return !executes(id, programs);
    };
    // The number may have gone to another process before the handle was ours.
    if !executes(id, programs) {
        return true;
    }
    let left = end.saturating_duration_since(Instant::now());
    let limit = Timespec::try_from(left).unwrap_or_default();
    let mut waiting = [PollFd::new(&handle, PollFlags::IN)];
    poll(&mut waiting, Some(&limit)).is_ok_and(|ended| ended > 0) || !executes(id, programs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_call_is_seen_under_a_name_that_is_gone_and_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("cat");
        std::fs::copy("/bin/cat", &program).unwrap();
        let programs = BTreeSet::from([target(&program).unwrap()]);
        assert!(running(&programs).is_empty());
        let mut child =
            Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        std::fs::remove_file(&program).unwrap();
        assert_eq!(running(&programs), [child.id()]);
        assert_eq!(wait_for(&programs, Duration::from_millis(10)), [child.id()]);
        drop(child.stdin.take());
        assert!(wait_for(&programs, Duration::from_secs(10)).is_empty());
        child.wait().unwrap();
        assert!(running(&programs).is_empty());
    }
}
