//! The process namespace that a runtime and all that it starts live in.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use podwire_testkit::{Background, Log, World};

/// Reads its own number as the outside knows it, before it has a `/proc` of its own;
/// then collects the dead of all the others until it is killed.
const INIT: &str = "set -e; read -r number rest < /proc/self/stat; \
    mount -t proc proc /proc; echo \"init $number\"; sleep 1000000 & wait";

/// Leaves its number where a later command finds it, and becomes the service.
const SERVICE: &str = "echo $$ > /run/world/service.pid; exec \"$@\"";

/// How long a start or an end may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Kills it.
const KILL: &str = "kill -9 $(cat /run/world/service.pid)";

/// A process namespace; everything in it dies with it. Its mounts below `/run` are those
/// of the world that it was started in.
#[derive(Debug)]
pub(super) struct Machine {
    init: Background,
    /// `nsenter` and its arguments, a command line to be continued.
    inside: Vec<String>,
    cgroup: String,
}

impl Machine {
    /// Starts it in the calling thread's network and mounts.
    #[track_caller]
    pub(super) fn start() -> Self {
        let log = Log::default();
        let mut unshare = Command::new("unshare");
        unshare.args(["--pid", "--mount", "--propagation", "unchanged", "--fork"]);
        unshare.args(["--kill-child=KILL", "/bin/sh", "-c", INIT]);
        let init = Background::spawn(unshare, &log);
        let (_, line) = log.wait_for(0, "init", PATIENCE, |line| line.starts_with("init "));
        let number = line.trim_start_matches("init ");
        let inside = ["nsenter", "--target", number, "--pid", "--mount"].map(str::to_owned);
        let cgroup = format!("/podwire-{}", std::process::id());
        Self { init, inside: inside.to_vec(), cgroup }
    }

    /// The words before a command line that is to be run in it.
    pub(super) fn inside(&self) -> &[String] {
        &self.inside
    }

    /// The control group that belongs to it.
    pub(super) fn cgroup(&self) -> &str {
        &self.cgroup
    }

    /// The command of its service, with a folder that comes first in `PATH`.
    pub(super) fn service(&self, program: &Path, arguments: &[&str], path: &Path) -> Command {
        let mut command = Command::new(&self.inside[0]);
        command.args(&self.inside[1..]).args(["/bin/sh", "-c", SERVICE, "sh"]);
        command.arg(program).args(arguments);
        command.env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", path.display()));
        command
    }

    /// Kills the service with signal 9, and nothing that it has started.
    #[track_caller]
    pub(super) fn kill_service(&self, world: &World) {
        let inside = self.inside.iter().map(String::as_str);
        world.exec(&inside.chain(["/bin/sh", "-c", KILL]).collect::<Vec<_>>());
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.init.kill();
        let name = self.cgroup.trim_start_matches('/');
        let groups: Vec<_> = controllers().iter().map(|path| path.join(name)).collect();
        // Processes leave their groups some time after they were killed.
        let deadline = Instant::now() + PATIENCE;
        let mut gone = false;
        while !gone && Instant::now() < deadline {
            std::thread::yield_now();
            gone = groups.iter().all(|group| removed(group));
        }
        assert!(gone || std::thread::panicking(), "processes are left in {name}");
    }
}

/// Where hierarchies of control groups are: one each, or one for all.
fn controllers() -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let below = std::fs::read_dir(root).into_iter().flatten().flatten();
    let below = below.map(|entry| entry.path()).filter(|path| path.is_dir());
    std::iter::once(root.to_owned()).chain(below).collect()
}

/// Removes a control group and those in it; whether all are gone.
fn removed(group: &Path) -> bool {
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            removed(&entry.path());
        }
    }
    let _ = std::fs::remove_dir(group);
    !group.exists()
}
