//! A node with plugins that are shell scripts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use podwire_runtime::{Attachment, Deadlines, Network, Runtime, RuntimeBuilder};
use podwire_spec::id::{ContainerId, IfName};

/// A plugin that writes its command to the node's log and succeeds.
pub(crate) const RECORD: &str = r#"
request=$(cat)
echo "$CNI_COMMAND record $CNI_CONTAINERID" >> "$LOG"
if [ "$CNI_COMMAND" = ADD ]; then echo '{"cniVersion":"1.1.0","ips":[{"address":"10.1.2.3/24"}]}'; fi
"#;

/// A private node on the disk.
pub(crate) struct Node {
    pub(crate) directory: tempfile::TempDir,
}

impl Node {
    pub(crate) fn new() -> Self {
        let node = Self { directory: tempfile::tempdir().unwrap() };
        fs::create_dir(node.path("bin")).unwrap();
        fs::create_dir(node.path("net.d")).unwrap();
        node.plugin("record", RECORD);
        node
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.directory.path().join(below)
    }

    /// Installs a plugin: the body of a shell script that finds the node's
    /// directory in `$NODE` and its log in `$LOG`.
    pub(crate) fn plugin(&self, name: &str, body: &str) {
        let node = self.directory.path().display();
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\nNODE={node}\nLOG={node}/log\n{body}")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Configures a network and loads it.
    pub(crate) fn network(&self, name: &str, plugins: &[&str]) -> Network {
        let plugins: Vec<_> =
            plugins.iter().map(|name| format!(r#"{{"type":"{name}"}}"#)).collect();
        let text = format!(
            r#"{{"cniVersion":"1.1.0","name":"{name}","plugins":[{}]}}"#,
            plugins.join(",")
        );
        let path = self.path("net.d").join(format!("{name}.conflist"));
        fs::write(&path, text).unwrap();
        Network::from_file(&path).unwrap()
    }

    pub(crate) fn builder(&self, plugin_seconds: f32) -> RuntimeBuilder {
        Runtime::builder()
            .configuration_directory(self.path("net.d"))
            .plugin_directory(self.path("bin"))
            .cache_directory(self.path("cache"))
            .lock_directory(self.path("cache/locks"))
            .deadlines(Deadlines {
                plugin: Duration::from_secs_f32(plugin_seconds),
                ..Deadlines::default()
            })
    }

    /// Starts the example runtime, another process, with this node's
    /// directories: it attaches, and detaches when it reads a line.
    pub(crate) fn minimal_runtime(&self, network: &str, container: &str) -> Child {
        let program = std::env::current_exe().unwrap();
        let program = program.ancestors().nth(2).unwrap().join("examples/minimal_runtime");
        Command::new(program)
            .args([self.path("net.d"), self.path("bin")])
            .args([network, container, "/run/netns/nowhere"])
            .env("CACHE_DIR", self.path("cache"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Whether the log holds a line by now.
    pub(crate) fn has_logged(&self, line: &str) -> bool {
        fs::read_to_string(self.path("log")).is_ok_and(|log| log.lines().any(|text| text == line))
    }

    /// The lines that plugins logged, since the last time.
    pub(crate) fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        let _ = fs::remove_file(self.path("log"));
        text.lines().map(str::to_owned).collect()
    }

    /// The files below the cache directory, locks included.
    pub(crate) fn state(&self) -> Vec<String> {
        let mut names = Vec::new();
        let cache = self.path("cache");
        for path in podwire_sys::file::walk_regular_files(&cache, 5, 1000).unwrap() {
            names.push(path.strip_prefix(&cache).unwrap().to_str().unwrap().to_owned());
        }
        names
    }
}

pub(crate) fn attachment(id: &str) -> Attachment {
    Attachment::new(ContainerId::parse(id).unwrap(), IfName::parse("eth0").unwrap())
        .with_netns("/run/netns/nowhere")
}

/// Waits until something is so, at most ten seconds.
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(10), "{what} did not happen");
        std::thread::yield_now();
    }
}

/// Whether a process runs (and is no zombie).
pub(crate) fn runs(pid: &str) -> bool {
    fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim().starts_with('Z'))
}
