//! A node, a chain that leaves every kind of file, and things to stumble over.

use std::fmt::Write as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use podwire_testkit::{Netns, Plugin, World};
use serde_json::{Value, json};

/// Where `host-local` keeps the addresses of these tests: a directory that
/// others may write to.
pub(crate) const SHARED: &str = "/run/shared";

/// A user who isn't root.
pub(crate) const STRANGER: &str = "65534";

/// A node on which the directory of state is everybody's.
pub(crate) struct Lab {
    pub(crate) world: World,
    pub(crate) netns: Netns,
    /// What must stay as it is.
    pub(crate) victim: PathBuf,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let world = World::new();
        let netns = world.netns("c1");
        std::fs::create_dir(SHARED).unwrap();
        std::fs::set_permissions(SHARED, PermissionsExt::from_mode(0o1777)).unwrap();
        let victim = world.write("victim", "untouched");
        Self { world, netns, victim }
    }

    /// A call for container `c1` with all variables set.
    pub(crate) fn call(&self, plugin: &str, verb: &str, config: &Value) -> Plugin {
        let call = self.world.plugin(plugin).command(verb).container("c1");
        call.netns(&self.netns).ifname("eth0").config(config)
    }

    /// The victim is what it was.
    #[track_caller]
    pub(crate) fn assert_untouched(&self, what: &str) {
        assert_eq!(std::fs::read_to_string(&self.victim).unwrap(), "untouched", "{what}");
    }

    /// Puts something in the way at `path`, as a stranger: a symbolic link or a
    /// second name of the victim's, or a FIFO that nobody reads.
    #[track_caller]
    pub(crate) fn plant(&self, obstacle: &str, path: &Path) {
        let victim = self.victim.to_str().unwrap();
        let at = path.to_str().unwrap();
        match obstacle {
            "symbolic link" => drop(self.world.exec(&["ln", "-s", victim, at])),
            "second name" => return drop(self.world.exec(&["ln", victim, at])),
            "FIFO" => drop(self.world.exec(&["mkfifo", at])),
            "device" => drop(self.world.exec(&["mknod", at, "c", "1", "5"])),
            other => panic!("{other}"),
        }
        self.world.exec(&["chown", "-h", STRANGER, at]);
    }
}

/// `host-local` in the shared directory.
pub(crate) fn host_local() -> Value {
    json!({
        "cniVersion": "1.1.0", "name": "pods", "type": "bridge",
        "ipam": {"type": "host-local", "subnet": "10.1.0.0/24", "dataDir": SHARED},
    })
}

/// Every file and directory below `root` with its mode, a line each, sorted.
pub(crate) fn modes(root: &str) -> String {
    let mut lines = Vec::new();
    let mut pending = vec![PathBuf::from(root)];
    while let Some(path) = pending.pop() {
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        assert_eq!(metadata.uid(), 0, "{}", path.display());
        lines.push(format!("{:04o} {}", metadata.mode() & 0o7777, path.display()));
        if metadata.is_dir() {
            pending.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    lines.sort_by(|one, two| one[5..].cmp(&two[5..]));
    lines.into_iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{line}");
        text
    })
}
