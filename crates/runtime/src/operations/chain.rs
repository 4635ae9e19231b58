//! One operation on one list of plugins: the calls, each watched and bounded.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use podwire_spec::config::{NetworkList, PluginConfig};
use podwire_spec::id::{AttachmentKey, PluginType};
use podwire_spec::operation::Operation;
use podwire_spec::request::{CapabilityArguments, RequestInputs};

use crate::deadlines::Clock;
use crate::error::RuntimeError;
use crate::exec::{Failure, PluginCall, PluginFailure, read_success, stderr_tail};
use crate::locks::NetworkLock;
use crate::observer::CallInfo;
use crate::runtime::Runtime;

/// What the plugins are told of the attachment.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) key: AttachmentKey,
    pub(super) netns: PathBuf,
    /// The value of `CNI_ARGS`.
    pub(super) args: String,
    pub(super) capability_args: CapabilityArguments,
}

/// One operation on one list of plugins.
pub(super) struct Chain<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) list: &'a NetworkList,
    pub(super) operation: Operation,
    pub(super) target: Option<&'a Target>,
    pub(super) clock: Clock,
    /// Handed on to the plugins.
    pub(super) lock: Option<&'a NetworkLock>,
    /// Whether the embedder's cancel flag counts.
    pub(super) cancellable: bool,
}

/// What a plugin that succeeded printed.
pub(super) struct Printed {
    pub(super) stdout: String,
    pub(super) stderr: Vec<u8>,
}

impl Chain<'_> {
    /// The executable of a plugin of the list.
    pub(super) fn find(&self, plugin: &PluginType) -> Result<PathBuf, RuntimeError> {
        let directories = &self.runtime.plugin_directories;
        self.runtime.executor.find(plugin, directories).map_err(|searched| {
            RuntimeError::PluginNotFound {
                network: self.list.name.clone(),
                plugin: plugin.clone(),
                searched,
            }
        })
    }

    /// Finds a plugin and calls it; what it prints is not looked at.
    pub(super) fn call(
        &self,
        index: usize,
        plugin: &PluginConfig,
        inputs: &RequestInputs<'_>,
    ) -> Result<(), RuntimeError> {
        self.call_program(index, plugin, &self.find(&plugin.plugin_type)?, inputs).map(drop)
    }

    /// Calls a plugin whose executable is known; gives what it printed.
    pub(super) fn call_program(
        &self,
        index: usize,
        plugin: &PluginConfig,
        program: &Path,
        inputs: &RequestInputs<'_>,
    ) -> Result<Printed, RuntimeError> {
        let request =
            podwire_spec::request::build(plugin, self.list, *inputs).map_err(|error| {
                self.failure(index, &plugin.plugin_type, Failure::Request(error), b"")
            })?;
        self.execute(index, &plugin.plugin_type, program, &self.environment(), &request)
    }

    /// Runs a program with a request that is made already.
    pub(super) fn execute(
        &self,
        index: usize,
        plugin: &PluginType,
        program: &Path,
        environment: &[(&'static str, OsString)],
        request: &str,
    ) -> Result<Printed, RuntimeError> {
        let Some(time_limit) = self.clock.next_call() else {
            return Err(RuntimeError::DeadlineExceeded {
                network: self.list.name.clone(),
                operation: self.operation,
                plugin: plugin.clone(),
            });
        };
        let info = CallInfo {
            network: &self.list.name,
            plugin,
            index,
            operation: self.operation,
            attachment: self.target.map(|target| &target.key),
        };
        let observer = &self.runtime.observer;
        observer.on_call_start(&info);
        let started = Instant::now();
        let outcome = self.runtime.executor.run(&PluginCall {
            program,
            environment,
            request: request.as_bytes(),
            time_limit,
            inherit: self.lock.map(NetworkLock::as_fd),
            cancel: self.runtime.cancel.as_deref().filter(|_| self.cancellable),
        });
        let (outcome, stderr) = read_success(outcome);
        for line in String::from_utf8_lossy(&stderr).lines() {
            observer.on_stderr(&info, line);
        }
        observer.on_call_end(&info, started.elapsed(), outcome.as_ref().map(|_| ()));
        match outcome {
            Ok(stdout) => Ok(Printed { stdout, stderr }),
            Err(failure) => Err(self.failure(index, plugin, failure, &stderr)),
        }
    }

    /// The error for a call that failed.
    pub(super) fn failure(
        &self,
        index: usize,
        plugin: &PluginType,
        failure: Failure,
        stderr: &[u8],
    ) -> RuntimeError {
        RuntimeError::Plugin(Box::new(PluginFailure {
            network: self.list.name.clone(),
            plugin: plugin.clone(),
            index,
            operation: self.operation,
            failure,
            stderr_tail: stderr_tail(stderr),
        }))
    }

    /// The variables of the protocol. Those that don't apply are set and
    /// empty, so that none of the runtime's own leaks through.
    fn environment(&self) -> Vec<(&'static str, OsString)> {
        let (container, netns, ifname, args) = match self.target {
            Some(target) => (
                target.key.container_id.as_str().into(),
                target.netns.clone().into_os_string(),
                target.key.ifname.as_str().into(),
                target.args.clone().into(),
            ),
            None => Default::default(),
        };
        vec![
            ("CNI_COMMAND", self.operation.as_str().into()),
            ("CNI_CONTAINERID", container),
            ("CNI_NETNS", netns),
            ("CNI_IFNAME", ifname),
            ("CNI_ARGS", args),
            ("CNI_PATH", search_path(&self.runtime.plugin_directories)),
        ]
    }
}

/// The directories as `CNI_PATH` holds them.
pub(super) fn search_path(directories: &[PathBuf]) -> OsString {
    let parts: Vec<&[u8]> =
        directories.iter().map(|directory| directory.as_os_str().as_encoded_bytes()).collect();
    OsString::from_vec(parts.join(&b':'))
}
