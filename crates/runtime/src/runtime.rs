//! The runtime itself: where things lie, how long they may take, and who
//! watches.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::deadlines::Deadlines;
use crate::error::RuntimeError;
use crate::exec::{Executor, ProcessExecutor};
use crate::load::{Directory, Network};
use crate::locks::Locks;
use crate::observer::{Observer, Silent};
use crate::store::Store;

/// Where libcni and its tools look for configurations.
pub const DEFAULT_CONFIGURATION_DIRECTORY: &str = "/etc/cni/net.d";
/// Where plugins lie by convention.
pub const DEFAULT_PLUGIN_DIRECTORY: &str = "/opt/cni/bin";
/// Where libcni keeps its records.
pub const DEFAULT_CACHE_DIRECTORY: &str = "/var/lib/cni";

/// Runs CNI networks on this node. Made by [`Runtime::builder`]; may be used
/// from several threads and beside other processes with the same directories.
pub struct Runtime {
    pub(crate) configuration_directory: PathBuf,
    pub(crate) plugin_directories: Vec<PathBuf>,
    pub(crate) store: Store,
    pub(crate) locks: Locks,
    pub(crate) deadlines: Deadlines,
    pub(crate) executor: Box<dyn Executor>,
    pub(crate) observer: Box<dyn Observer>,
    pub(crate) cancel: Option<Arc<AtomicBool>>,
    pub(crate) strip_capabilities: bool,
}

impl fmt::Debug for Runtime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Runtime")
            .field("configuration_directory", &self.configuration_directory)
            .field("plugin_directories", &self.plugin_directories)
            .field("store", &self.store)
            .field("locks", &self.locks)
            .field("deadlines", &self.deadlines)
            .finish_non_exhaustive()
    }
}

impl Runtime {
    /// Starts to describe a runtime with the usual directories and deadlines.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    /// All networks of the configuration directory, and what can't be used.
    ///
    /// # Errors
    /// If the directory is there and can't be listed.
    pub fn networks(&self) -> Result<Directory, RuntimeError> {
        Directory::read(&self.configuration_directory)
    }

    /// The network of this name, by libcni's precedence.
    ///
    /// # Errors
    /// [`RuntimeError::NetworkNotFound`], which names the files it may be in.
    pub fn network(&self, name: &str) -> Result<Network, RuntimeError> {
        self.networks()?.take(name)
    }

    /// The recorded attachments.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Where plugins are looked for, in order.
    pub fn plugin_directories(&self) -> &[PathBuf] {
        &self.plugin_directories
    }

    /// Where network configurations are looked for.
    pub fn configuration_directory(&self) -> &Path {
        &self.configuration_directory
    }
}

/// Describes a [`Runtime`].
pub struct RuntimeBuilder {
    configuration_directory: PathBuf,
    plugin_directories: Vec<PathBuf>,
    cache_directory: PathBuf,
    lock_directory: Option<PathBuf>,
    deadlines: Deadlines,
    executor: Box<dyn Executor>,
    observer: Box<dyn Observer>,
    cancel: Option<Arc<AtomicBool>>,
    strip_capabilities: bool,
}

impl Default for RuntimeBuilder {
    fn default() -> Self {
        Self {
            configuration_directory: DEFAULT_CONFIGURATION_DIRECTORY.into(),
            plugin_directories: Vec::new(),
            cache_directory: DEFAULT_CACHE_DIRECTORY.into(),
            lock_directory: None,
            deadlines: Deadlines::default(),
            executor: Box::new(ProcessExecutor::default()),
            observer: Box::new(Silent),
            cancel: None,
            strip_capabilities: false,
        }
    }
}

impl fmt::Debug for RuntimeBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RuntimeBuilder")
            .field("configuration_directory", &self.configuration_directory)
            .field("plugin_directories", &self.plugin_directories)
            .field("cache_directory", &self.cache_directory)
            .finish_non_exhaustive()
    }
}

impl RuntimeBuilder {
    /// Where network configurations lie; `/etc/cni/net.d` by default.
    #[must_use]
    pub fn configuration_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.configuration_directory = directory.into();
        self
    }

    /// One more directory to look for plugins in, after those named before;
    /// `/opt/cni/bin` if none is named.
    #[must_use]
    pub fn plugin_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.plugin_directories.push(directory.into());
        self
    }

    /// All directories to look for plugins in, as split from `CNI_PATH`.
    #[must_use]
    pub fn plugin_directories(mut self, directories: impl IntoIterator<Item = PathBuf>) -> Self {
        self.plugin_directories = directories.into_iter().collect();
        self
    }

    /// Where attachments are recorded; `/var/lib/cni` by default, libcni's.
    #[must_use]
    pub fn cache_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cache_directory = directory.into();
        self
    }

    /// Where lock files lie; `/run/podwire/runtime` by default, or
    /// `podwire/locks` in the cache directory if that may not be written.
    #[must_use]
    pub fn lock_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.lock_directory = Some(directory.into());
        self
    }

    /// How long things may take.
    #[must_use]
    pub fn deadlines(mut self, deadlines: Deadlines) -> Self {
        self.deadlines = deadlines;
        self
    }

    /// Who runs plugins; child processes by default.
    #[must_use]
    pub fn executor(mut self, executor: impl Executor + 'static) -> Self {
        self.executor = Box::new(executor);
        self
    }

    /// Who watches; nobody by default.
    #[must_use]
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observer = Box::new(observer);
        self
    }

    /// A flag that ends a running ADD, CHECK or STATUS when it is set, on
    /// Ctrl-C for instance. What a cancelled ADD has made is removed; DEL, GC
    /// and that removal are never cancelled.
    #[must_use]
    pub fn cancel(mut self, flag: Arc<AtomicBool>) -> Self {
        self.cancel = Some(flag);
        self
    }

    /// Leaves `capabilities` out of requests, as the specification says. By
    /// default they stay in, as libcni sends them: some meta plugins read
    /// them.
    #[must_use]
    pub fn strip_capabilities(mut self, strip: bool) -> Self {
        self.strip_capabilities = strip;
        self
    }

    /// The runtime.
    pub fn build(self) -> Runtime {
        let mut plugin_directories = self.plugin_directories;
        if plugin_directories.is_empty() {
            plugin_directories.push(DEFAULT_PLUGIN_DIRECTORY.into());
        }
        // An empty entry of CNI_PATH would mean the current directory.
        plugin_directories.retain(|directory| !directory.as_os_str().is_empty());
        Runtime {
            configuration_directory: self.configuration_directory,
            plugin_directories,
            locks: Locks::new(self.lock_directory, &self.cache_directory, self.deadlines.lock),
            store: Store::new(self.cache_directory),
            deadlines: self.deadlines,
            executor: self.executor,
            observer: self.observer,
            cancel: self.cancel,
            strip_capabilities: self.strip_capabilities,
        }
    }
}
