//! Calling a plugin as a runtime does.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use podwire_sys::process::{ChildSpec, run};

use crate::command::{Output, PATIENCE};
use crate::kill::census::{self, Census};
use crate::kill::netlink::{Refusal, Refused, run_and_refuse};
use crate::kill::storage::{DiskFault, Spoiled, run_and_spoil};
use crate::kill::{self, Blow, Killed};
use crate::world::Netns;

/// The multi-call program's file name in the target directory.
const PROGRAM: &str = "podwire-cni";

/// Every name that the multi-call program is installed under.
const NAMES: [&str; 18] = [
    "bandwidth",
    "bridge",
    "dhcp",
    "dummy",
    "firewall",
    "host-device",
    "host-local",
    "ipvlan",
    "loopback",
    "macvlan",
    "portmap",
    "ptp",
    "sbr",
    "static",
    "tap",
    "tuning",
    "vlan",
    "vrf",
];

/// One call of a plugin: environment, configuration, and how it is run.
///
/// Only what is set here and `PATH` is in the plugin's environment.
#[derive(Debug, Clone)]
pub struct Plugin {
    program: PathBuf,
    environment: Vec<(OsString, OsString)>,
    config: String,
}

impl Plugin {
    /// A plugin by its path: a Go one, a fake one. For ours see
    /// [`crate::World::plugin`].
    pub fn at(program: impl Into<PathBuf>) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/sbin:/usr/bin".into());
        let environment = vec![("PATH".into(), path)];
        Self { program: program.into(), environment, config: String::new() }
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.retain(|(present, _)| present != name);
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Takes a variable away again.
    #[must_use]
    pub fn without_env(mut self, name: &str) -> Self {
        self.environment.retain(|(present, _)| present != name);
        self
    }

    /// Sets `CNI_COMMAND`.
    #[must_use]
    pub fn command(self, verb: &str) -> Self {
        self.env("CNI_COMMAND", verb)
    }

    /// Sets `CNI_CONTAINERID`.
    #[must_use]
    pub fn container(self, id: &str) -> Self {
        self.env("CNI_CONTAINERID", id)
    }

    /// Sets `CNI_NETNS` to a namespace's path.
    #[must_use]
    pub fn netns(self, namespace: &Netns) -> Self {
        self.env("CNI_NETNS", namespace.path())
    }

    /// Sets `CNI_IFNAME`.
    #[must_use]
    pub fn ifname(self, name: &str) -> Self {
        self.env("CNI_IFNAME", name)
    }

    /// Sets `CNI_ARGS`.
    #[must_use]
    pub fn args(self, args: &str) -> Self {
        self.env("CNI_ARGS", args)
    }

    /// Sets `CNI_PATH`.
    #[must_use]
    pub fn search_in(self, directories: &[&Path]) -> Self {
        let joined = std::env::join_paths(directories).unwrap();
        self.env("CNI_PATH", joined)
    }

    /// Sets what the plugin reads: a `serde_json::Value` or any text.
    #[must_use]
    #[allow(clippy::needless_pass_by_value)] // So that `json!(...)` can be written there.
    pub fn config(mut self, config: impl ToString) -> Self {
        self.config = config.to_string();
        self
    }

    /// Runs it in the calling thread's namespaces.
    #[track_caller]
    pub fn run(self) -> Output {
        let shown = self.shown();
        let mut spec = ChildSpec::new(&self.program);
        spec.environment = self.environment;
        spec.inherit_environment = false;
        spec.stdin = self.config.as_bytes();
        spec.deadline = Some(PATIENCE);
        let outcome = run(&spec).unwrap_or_else(|error| panic!("{shown}: {error}"));
        Output::new(shown, &outcome)
    }

    /// Runs it and kills it when it is about to make its `number`-th system call
    /// after exec, counted from 1.
    #[track_caller]
    pub fn kill_at(self, number: u64) -> Killed {
        self.strike_at(number, Blow::Group)
    }

    /// The same, saying who dies.
    #[track_caller]
    pub fn strike_at(self, number: u64, blow: Blow) -> Killed {
        kill::run_and_strike(self.as_command(), self.config.as_bytes(), number, blow)
    }

    /// Runs it with its `number`-th netlink request failing, counted from 1.
    #[track_caller]
    pub fn refuse_at(self, number: u64, refusal: Refusal) -> Refused {
        run_and_refuse(self.as_command(), self.config.as_bytes(), number, refusal)
    }

    /// Runs it on a disk that is bad from its `number`-th call on.
    #[track_caller]
    pub fn spoil_at(self, number: u64, fault: DiskFault) -> Spoiled {
        run_and_spoil(self.as_command(), self.config.as_bytes(), number, fault)
    }

    /// Runs it and counts what it asks of the kernel.
    #[track_caller]
    pub fn counted(self) -> (Census, Output) {
        census::take(self.as_command(), self.config.as_bytes())
    }

    fn as_command(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// For messages: variables, program, configuration.
    fn shown(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.environment {
            if name != "PATH" {
                let _ = write!(text, "{}={} ", name.display(), value.display());
            }
        }
        format!("{text}{} <<< {}", self.program.display(), self.config)
    }
}

/// A directory on the same file system as the multi-call program, for hard links.
#[track_caller]
pub(crate) fn program_directory() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("plugins-").tempdir_in(target_directory()).unwrap()
}

/// The program as it ships, static and stripped, under every plugin's name.
#[derive(Debug)]
pub struct Shipped {
    directory: tempfile::TempDir,
}

impl Shipped {
    /// What `cargo xtask build` has made.
    #[track_caller]
    #[allow(clippy::new_without_default)] // It has an effect.
    pub fn new() -> Self {
        let directory = program_directory();
        link(&shipped(PROGRAM), directory.path(), SHIPS);
        Self { directory }
    }

    /// A call of the plugin of this type, with `CNI_PATH` set.
    pub fn plugin(&self, name: &str) -> Plugin {
        Plugin::at(self.directory.path().join(name)).search_in(&[self.directory.path()])
    }
}

/// What makes the programs that ship.
const SHIPS: &str = "cargo xtask build";

/// A program as it ships, static and stripped: `podwire` or `podwire-cni`, as
/// `cargo xtask build` has made it.
#[track_caller]
pub fn shipped(program: &str) -> PathBuf {
    let path = target_directory().parent().unwrap().join("dist").join(program);
    assert!(path.is_file(), "{} is not built; run: {SHIPS}", path.display());
    path
}

/// Puts the multi-call program into `directory` under every name, once.
#[track_caller]
pub(crate) fn link_program(directory: &Path) {
    if !directory.join(PROGRAM).exists() {
        let program = target_directory().join(PROGRAM);
        link(&program, directory, "cargo build -p podwire-plugins");
    }
}

#[track_caller]
fn link(program: &Path, directory: &Path, how: &str) {
    assert!(program.is_file(), "{} is not built; run: {how}", program.display());
    for name in NAMES.iter().chain([&PROGRAM]) {
        std::fs::hard_link(program, directory.join(name)).unwrap();
    }
}

/// `target/debug` of the running test: test programs lie in its `deps`.
#[track_caller]
pub(crate) fn target_directory() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let directory = own.parent().unwrap();
    let is_deps = directory.ends_with("deps") || directory.ends_with("examples");
    if is_deps { directory.parent().unwrap().to_owned() } else { directory.to_owned() }
}
