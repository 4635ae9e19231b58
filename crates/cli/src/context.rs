//! What a command works with, put together from flags, environment and
//! defaults.

use std::path::{Path, PathBuf};
use std::time::Duration;

use podwire_runtime::{Attachment, Deadlines, Network, Runtime, RuntimeError};
use podwire_spec::args::CniArgs;
use podwire_spec::error::Error;
use podwire_spec::id::{IfName, NetworkName};
use podwire_spec::request::CapabilityArguments;

use crate::arguments::{AttachmentArguments, CommonArguments, Format};
use crate::container_id;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::Watcher;
use crate::signals::{Interruption, SecondInterrupt};

/// The name of an interface where none is given.
const DEFAULT_IFNAME: &str = "eth0";
/// What a plugin's DEL after a failed ADD gets, however short `--timeout` is.
const SHORTEST_CLEANUP: Duration = Duration::from_secs(10);

/// What a command works with.
pub(crate) struct Context {
    /// The runtime, watched.
    pub(crate) runtime: Runtime,
    /// How to write.
    pub(crate) format: Format,
    environment: Environment,
}

impl Context {
    /// For a command that a signal ends at once. Whatever it runs is safe to
    /// leave in the middle: what is begun stays recorded.
    pub(crate) fn new(common: CommonArguments) -> Self {
        Self::with_environment(common, Environment::of_process(), None)
    }

    /// For a command that a signal asks to clean up.
    pub(crate) fn interruptible(common: CommonArguments) -> Result<(Self, Interruption), Failure> {
        Self::watched(common, SecondInterrupt::Ends)
    }

    /// The same, for one to which a second Ctrl-C may mean another thing.
    pub(crate) fn watched(
        common: CommonArguments,
        second: SecondInterrupt,
    ) -> Result<(Self, Interruption), Failure> {
        let interruption = Interruption::watch(second)
            .map_err(|error| Error::internal(format!("signals can't be watched: {error}")))?;
        let environment = Environment::of_process();
        let context = Self::with_environment(common, environment, Some(&interruption));
        Ok((context, interruption))
    }

    fn with_environment(
        common: CommonArguments,
        environment: Environment,
        interruption: Option<&Interruption>,
    ) -> Self {
        let mut builder = Runtime::builder().observer(Watcher::new(common.verbose));
        let configuration = common.conf_dir.or_else(|| environment.configuration_directory.clone());
        if let Some(directory) = configuration {
            builder = builder.configuration_directory(directory);
        }
        let plugins = if common.plugin_dir.is_empty() {
            environment.plugin_directories.clone()
        } else {
            common.plugin_dir
        };
        if let Some(directory) = common.cache_dir {
            builder = builder.cache_directory(directory);
        }
        builder = builder.plugin_directories(plugins).deadlines(deadlines(common.timeout));
        if let Some(interruption) = interruption {
            builder = builder.cancel(interruption.flag());
        }
        Self { runtime: builder.build(), format: common.output, environment }
    }

    /// The attachment that the arguments name.
    ///
    /// # Errors
    /// If a variable of the environment can't be used.
    pub(crate) fn attachment(
        &self,
        arguments: &AttachmentArguments,
    ) -> Result<Attachment, Failure> {
        let ifname = match &arguments.ifname {
            Some(ifname) => ifname.clone(),
            None => self.ifname()?,
        };
        let id = match (&arguments.container_id, &arguments.netns) {
            (Some(id), _) => id.clone(),
            (None, Some(netns)) if !netns.as_os_str().is_empty() => {
                container_id::resolve(&self.runtime, &arguments.network, &ifname, netns)?
            }
            (None, _) => {
                let error = Error::environment("an empty NETNS names no container");
                return Err(Failure::Usage(error.with_details("give its --container-id")));
            }
        };
        let mut attachment = Attachment::new(id, ifname);
        attachment.netns = arguments.netns.as_deref().map(netns_path).transpose()?;
        attachment.args = self.args(arguments.args.as_ref())?;
        attachment.capability_args = self.capability_args(arguments.cap_args.as_ref())?;
        Ok(attachment)
    }

    /// The interface's name where no flag gives it.
    fn ifname(&self) -> Result<IfName, Failure> {
        let (name, of) = match &self.environment.ifname {
            Some(name) => (name.as_str(), "CNI_IFNAME"),
            None => (DEFAULT_IFNAME, "the default interface name"),
        };
        IfName::parse(name).map_err(|error| Failure::Usage(error.context(of)))
    }

    /// The plugins' arguments, as given or from the environment.
    pub(crate) fn args(&self, given: Option<&CniArgs>) -> Result<Vec<(String, String)>, Failure> {
        let args = match (given, &self.environment.args) {
            (Some(given), _) => given.clone(),
            (None, Some(text)) => {
                CniArgs::parse(text).map_err(|error| Failure::Usage(error.context("CNI_ARGS")))?
            }
            (None, None) => CniArgs::default(),
        };
        Ok(args.pairs().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    /// The capability arguments, as given or from the environment.
    pub(crate) fn capability_args(
        &self,
        given: Option<&CapabilityArguments>,
    ) -> Result<CapabilityArguments, Failure> {
        match (given, &self.environment.capability_args) {
            (Some(given), _) => Ok(given.clone()),
            (None, Some(text)) => CapabilityArguments::parse(text)
                .map_err(|error| Failure::Usage(error.context("CAP_ARGS"))),
            (None, None) => Ok(CapabilityArguments::default()),
        }
    }

    /// The network of an attachment to be deleted or checked: `None` if it
    /// can't be had but the attachment's own record will do.
    ///
    /// # Errors
    /// Why the network can't be had, if there is no record either.
    pub(crate) fn network_or_record(
        &self,
        name: &NetworkName,
        attachment: &Attachment,
    ) -> Result<Option<Network>, RuntimeError> {
        match self.runtime.network(name.as_str()) {
            Ok(network) => Ok(Some(network)),
            Err(error) => match self.runtime.store().find(&attachment.key(name))?.best() {
                Some(_) => Ok(None),
                None => Err(error),
            },
        }
    }
}

/// The path for `CNI_NETNS`; empty stays empty, which says that it is gone.
fn netns_path(path: &Path) -> Result<PathBuf, Error> {
    if path.as_os_str().is_empty() { Ok(PathBuf::new()) } else { container_id::absolute(path) }
}

/// The usual deadlines, with the time that a person is willing to wait.
fn deadlines(timeout: Option<Duration>) -> Deadlines {
    let usual = Deadlines::default();
    match timeout {
        // The operation's time bounds each call; what a call may take at most
        // holds for cleaning up after it as well, which needs time of its own.
        Some(timeout) => {
            Deadlines { operation: timeout, plugin: timeout.max(SHORTEST_CLEANUP), ..usual }
        }
        None => usual,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b007_cleaning_up_has_time_of_its_own() {
        let short = deadlines(Some(Duration::from_millis(1)));
        assert_eq!(short.operation, Duration::from_millis(1));
        assert!(short.plugin >= SHORTEST_CLEANUP && short.rollback >= SHORTEST_CLEANUP);
        assert_eq!(deadlines(Some(Duration::from_mins(5))).plugin, Duration::from_mins(5));
        assert_eq!(deadlines(None), Deadlines::default());
    }
}
