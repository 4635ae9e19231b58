//! Delegation to an IPAM plugin: in-process when its executable is our own
//! file, else by running it.

use std::fs;
use std::path::{Path, PathBuf};

use podwire_spec::error::{Error, last_error_object};
use podwire_spec::id::PluginType;
use podwire_spec::operation::Operation;
use podwire_spec::request::ValidAttachments;
use podwire_spec::result::{CniResult, VersionedResult};
use podwire_sys::identity;
use podwire_sys::process::{self, ChildSpec, Group};

use crate::attachment::Attachment;
use crate::plugin::{Plugin, Role, lookup};
use crate::request::Request;
use crate::undo::Undo;

/// An IPAM plugin that a request delegates to.
///
/// It gets the very bytes the upper plugin got, and the caller's environment
/// with only `CNI_COMMAND` replaced (specification, section 4).
pub struct Delegate<'a> {
    plugin_type: PluginType,
    request: &'a Request<'a>,
}

/// How a delegate is run.
enum Target {
    InProcess(&'static dyn Plugin),
    Program(PathBuf),
}

impl<'a> Delegate<'a> {
    pub(crate) fn new(plugin_type: PluginType, request: &'a Request<'a>) -> Self {
        Self { plugin_type, request }
    }

    /// The delegate's type, as in `ipam.type`.
    pub fn plugin_type(&self) -> &PluginType {
        &self.plugin_type
    }

    /// Asks for addresses.
    ///
    /// # Errors
    /// The delegate's own error object, code kept.
    pub fn add(&self, attachment: &Attachment) -> Result<CniResult, Error> {
        match self.target()? {
            Target::InProcess(plugin) => {
                let request = self.delegated_request();
                let mut undo = Undo::new();
                let result = plugin.add(&request, attachment, &mut undo);
                match result {
                    Ok(_) => undo.forget(),
                    Err(_) => undo.unwind(),
                }
                result
            }
            Target::Program(path) => {
                let stdout = self.run(&path, Operation::Add)?;
                VersionedResult::parse(&stdout, self.request.version)
                    .and_then(VersionedResult::into_newest)
                    .map_err(|error| {
                        // It says that it gave an address; nobody can tell which.
                        self.take_back(&path);
                        error.context(format!("result of IPAM plugin {}", self.plugin_type))
                    })
            }
        }
    }

    /// DEL after an ADD that succeeded without a usable result (specification,
    /// section 4). After an ADD that failed in good order there is none: it is the
    /// delegate's to undo, and when it failed because the attachment holds an address
    /// already, a DEL would free one in use.
    fn take_back(&self, path: &Path) {
        if let Err(error) = self.run(path, Operation::Del) {
            log::warn!("DEL of IPAM plugin {} after its ADD: {error}", self.plugin_type);
        }
    }

    /// Gives the addresses back.
    ///
    /// # Errors
    /// The delegate's own error object.
    pub fn del(&self, attachment: &Attachment) -> Result<(), Error> {
        match self.target()? {
            Target::InProcess(plugin) => plugin.del(&self.delegated_request(), attachment),
            Target::Program(path) => self.run(&path, Operation::Del).map(drop),
        }
    }

    /// Asks whether the addresses are still held.
    ///
    /// # Errors
    /// The delegate's own error object.
    pub fn check(&self, attachment: &Attachment) -> Result<(), Error> {
        match self.target()? {
            Target::InProcess(plugin) => plugin.check(&self.delegated_request(), attachment),
            Target::Program(path) => self.run(&path, Operation::Check).map(drop),
        }
    }

    /// Asks whether addresses could be had.
    ///
    /// # Errors
    /// The delegate's own error object.
    pub fn status(&self) -> Result<(), Error> {
        match self.target()? {
            Target::InProcess(plugin) => plugin.status(&self.delegated_request()),
            Target::Program(path) => self.run(&path, Operation::Status).map(drop),
        }
    }

    /// Forwards garbage collection.
    ///
    /// # Errors
    /// The delegate's own error object.
    pub fn gc(&self, valid: &ValidAttachments) -> Result<(), Error> {
        match self.target()? {
            Target::InProcess(plugin) => plugin.gc(&self.delegated_request(), valid),
            Target::Program(path) => self.run(&path, Operation::Gc).map(drop),
        }
    }

    fn delegated_request(&self) -> Request<'a> {
        Request {
            config: self.request.config,
            version: self.request.version,
            environment: self.request.environment,
            registry: self.request.registry,
            delegated: true,
        }
    }

    fn target(&self) -> Result<Target, Error> {
        if self.request.delegated {
            return Err(Error::config(format!(
                "IPAM plugin {} delegates to another: only one level is allowed",
                self.plugin_type
            )));
        }
        let path = self.find()?;
        let own = lookup(self.request.registry, self.plugin_type.as_str())
            .filter(|_| identity::is_own_executable(&path).unwrap_or(false));
        match own {
            None => Ok(Target::Program(path)),
            Some(plugin) if plugin.description().role == Role::Ipam => {
                Ok(Target::InProcess(plugin))
            }
            // It would be this program again, waiting for the attachment's lock
            // that this process holds.
            Some(_) => Err(Error::config(format!(
                "ipam.type \"{}\" names a plugin that gives no addresses",
                self.plugin_type
            ))
            .with_details("name an IPAM plugin there, such as host-local, static or dhcp")),
        }
    }

    /// The first regular file of that name in `CNI_PATH`, links followed, as
    /// the runtime finds plugins.
    fn find(&self) -> Result<PathBuf, Error> {
        let directories = self.request.environment.search_path();
        if directories.is_empty() {
            return Err(Error::environment(format!(
                "no paths provided: CNI_PATH is empty, so IPAM plugin {} can't be found",
                self.plugin_type
            )));
        }
        let name = self.plugin_type.as_str();
        for directory in &directories {
            let candidate = directory.join(name);
            if fs::metadata(&candidate).is_ok_and(|found| found.is_file()) {
                return Ok(candidate);
            }
        }
        let searched: Vec<_> = directories.iter().map(|dir| dir.display().to_string()).collect();
        Err(Error::internal(format!(
            "failed to find plugin \"{name}\" in path [{}]",
            searched.join(" ")
        ))
        .with_details("install the IPAM plugin there, or correct ipam.type"))
    }

    fn run(&self, path: &Path, operation: Operation) -> Result<String, Error> {
        let mut child = ChildSpec::new(path);
        child.stdin = self.request.config.text().as_bytes();
        child.environment = vec![("CNI_COMMAND".into(), operation.as_str().into())];
        // The runtime's deadline ends our whole process group; a limit of our
        // own would only guess (a DHCP delegate may take minutes).
        child.group = Group::Inherited;
        let outcome = process::run(&child)
            .map_err(|error| Error::internal(format!("IPAM plugin {}: {error}", path.display())))?;
        let stderr = outcome.stderr.text();
        for line in stderr.lines() {
            log::info!("{}: {line}", self.plugin_type);
        }
        let stdout = outcome.stdout.text().into_owned();
        if outcome.is_success() {
            return Ok(stdout);
        }
        Err(last_error_object(&stdout).unwrap_or_else(|| {
            Error::internal(format!("IPAM plugin {} failed: {}", path.display(), outcome.exit))
                .with_details(stderr.trim().to_owned())
        }))
    }
}
