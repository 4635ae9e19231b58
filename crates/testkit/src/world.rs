//! A network and a mount namespace of a test's own.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use podwire_sys::mount;
use podwire_sys::netns::{NamedNetNs, NetNs};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use serde_json::Value;

use crate::command::{Output, execute};
use crate::plugin::{Plugin, link_program};
use crate::state::HostState;

/// Directories that a world has to itself, empty at first.
const OWN_DIRECTORIES: [&str; 4] = ["/run", "/var/lib/cni", "/etc/cni", "/opt/cni"];
/// Where files of a test go: on the world's own tmpfs.
const SCRATCH: &str = "/run/world";

/// A private machine for one test: it looks like the host but has its own network,
/// and its own `/run`, `/var/lib/cni`, `/etc/cni` and `/opt/cni`.
///
/// The calling thread is moved into it, and threads and programs started from that
/// thread follow. It goes with its last process; there is nothing to clean up.
#[derive(Debug)]
pub struct World {
    programs: tempfile::TempDir,
    host: Netns,
    /// A world belongs to the thread that is in it.
    _thread: PhantomData<*const ()>,
}

impl World {
    /// Moves the calling thread into a new world. `lo` is up, forwarding is as the
    /// kernel has it in a new namespace.
    #[track_caller]
    #[allow(clippy::new_without_default)] // It has an effect.
    pub fn new() -> Self {
        for directory in OWN_DIRECTORIES {
            podwire_sys::file::create_dir_all(Path::new(directory), 0o755).unwrap();
        }
        // SAFETY: only this thread's network namespace changes; descriptors and memory
        // stay as they are.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("root is needed");
        mount::enter_private_namespace().unwrap();
        for directory in OWN_DIRECTORIES {
            mount::tmpfs(Path::new(directory), 0o755).unwrap();
        }
        for directory in ["/run/netns", "/run/lock", "/etc/cni/net.d", "/opt/cni/bin", SCRATCH] {
            std::fs::create_dir(directory).unwrap();
        }
        execute(&["ip", "link", "set", "lo", "up"]).success();
        let path =
            PathBuf::from(format!("/proc/{}/task/{}/ns/net", std::process::id(), thread_id()));
        let host = Netns { name: "host".to_owned(), path };
        Self { programs: crate::plugin::program_directory(), host, _thread: PhantomData }
    }

    /// A path for a file of the test's own.
    pub fn path(&self, name: &str) -> PathBuf {
        Path::new(SCRATCH).join(name)
    }

    /// Writes a file of the test's own and returns its path.
    #[track_caller]
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// The directory that holds `podwire-cni` under every plugin name, once a plugin
    /// was asked for; a value for `CNI_PATH`.
    #[track_caller]
    pub fn plugin_directory(&self) -> &Path {
        link_program(self.programs.path());
        self.programs.path()
    }

    /// Makes a network namespace at `/run/netns/NAME` with nothing but `lo`, down.
    #[track_caller]
    pub fn netns(&self, name: &str) -> Netns {
        let path = Path::new("/run/netns").join(name);
        NamedNetNs::create(&path).unwrap();
        Netns { name: name.to_owned(), path }
    }

    /// The world's own network namespace.
    pub fn host(&self) -> &Netns {
        &self.host
    }

    /// Runs a command line in the world's own namespace; panics if it fails.
    #[track_caller]
    pub fn exec(&self, command: &[&str]) -> Output {
        execute(command).success()
    }

    /// Runs a command line that may fail.
    #[track_caller]
    pub fn try_exec(&self, command: &[&str]) -> Output {
        execute(command)
    }

    /// What `ip -j` with these arguments says.
    #[track_caller]
    pub fn ip_json(&self, arguments: &[&str]) -> Value {
        ip_json(arguments)
    }

    /// What `nft -j` with these arguments says.
    #[track_caller]
    pub fn nft_json(&self, arguments: &[&str]) -> Value {
        execute(&[&["nft", "-j"], arguments].concat()).success().json()
    }

    /// All that an attachment could leave on the host: links, addresses, routes,
    /// rules, qdiscs, nftables, files, sysctls.
    #[track_caller]
    pub fn snapshot(&self) -> HostState {
        HostState::of_host()
    }

    /// The same with neighbours, each link's sysctls and the old xtables: slower.
    #[track_caller]
    pub fn detailed_snapshot(&self) -> HostState {
        HostState::of_host_in_detail()
    }

    /// A call of our own plugin of this type, with `CNI_PATH` set.
    #[track_caller]
    pub fn plugin(&self, name: &str) -> Plugin {
        let directory = self.plugin_directory();
        Plugin::at(directory.join(name)).search_in(&[directory])
    }
}

/// A named network namespace: a sandbox, or a remote host.
#[derive(Debug, Clone)]
pub struct Netns {
    name: String,
    path: PathBuf,
}

impl Netns {
    /// Its name below `/run/netns`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value for `CNI_NETNS`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it.
    #[track_caller]
    pub fn open(&self) -> NetNs {
        NetNs::open(&self.path).unwrap()
    }

    /// Takes it away, as a runtime does; open descriptors keep it alive.
    #[track_caller]
    pub fn remove(&self) {
        NamedNetNs::remove(&self.path).unwrap();
    }

    /// Runs `work` inside, on this thread.
    #[track_caller]
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        self.open().run(work).unwrap()
    }

    /// Runs a command line inside; panics if it fails.
    #[track_caller]
    pub fn exec(&self, command: &[&str]) -> Output {
        self.run(|| execute(command)).success()
    }

    /// Runs a command line inside that may fail.
    #[track_caller]
    pub fn try_exec(&self, command: &[&str]) -> Output {
        self.run(|| execute(command))
    }

    /// What `ip -j` with these arguments says inside.
    #[track_caller]
    pub fn ip_json(&self, arguments: &[&str]) -> Value {
        self.run(|| ip_json(arguments))
    }

    /// Links, addresses, routes, rules, qdiscs, nftables and sysctls inside.
    #[track_caller]
    pub fn snapshot(&self) -> HostState {
        self.run(HostState::of_namespace)
    }
}

#[track_caller]
fn ip_json(arguments: &[&str]) -> Value {
    let output = execute(&[&["ip", "-j"], arguments].concat()).success();
    // Some versions print nothing for an empty list.
    if output.stdout.trim().is_empty() { Value::Array(Vec::new()) } else { output.json() }
}

fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}
