//! VERSION: what the plugins of a network support.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::time::Duration;

use podwire_spec::id::PluginType;
use podwire_spec::operation::Operation;
use podwire_spec::version_info::{VersionInfo, probe_request};

use super::chain::{Chain, search_path};
use crate::deadlines::Clock;
use crate::error::RuntimeError;
use crate::exec::Failure;
use crate::load::Network;
use crate::runtime::Runtime;

/// How long a plugin may think about its own version, if the caller has not less
/// time.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// What one plugin says of itself.
#[derive(Debug)]
pub struct PluginVersion {
    /// The plugin.
    pub plugin: PluginType,
    /// Its place in the list, from 0; for an IPAM plugin that of its user.
    pub index: usize,
    /// Whether it is named as `ipam.type`, not in the list.
    pub is_ipam: bool,
    /// The versions it supports, or why they could not be had.
    pub outcome: Result<VersionInfo, RuntimeError>,
}

impl Runtime {
    /// Asks every plugin of a network, and the IPAM plugins they name, for the
    /// versions they support; each program once.
    pub fn versions(&self, network: &Network) -> Vec<PluginVersion> {
        let mut asked = BTreeSet::new();
        let mut versions = Vec::new();
        for (index, plugin) in network.list().plugins.iter().enumerate() {
            let ipam = plugin.ipam_type.as_deref().and_then(|text| PluginType::parse(text).ok());
            let own = Some((plugin.plugin_type.clone(), false));
            for (plugin, is_ipam) in own.into_iter().chain(ipam.map(|ipam| (ipam, true))) {
                if asked.insert(plugin.clone()) {
                    let outcome = self.plugin_version(network, index, &plugin);
                    versions.push(PluginVersion { plugin, index, is_ipam, outcome });
                }
            }
        }
        versions
    }

    fn plugin_version(
        &self,
        network: &Network,
        index: usize,
        plugin: &PluginType,
    ) -> Result<VersionInfo, RuntimeError> {
        let deadlines = &self.deadlines;
        let limit = TIME_LIMIT.min(deadlines.plugin).min(deadlines.operation);
        let chain = Chain {
            runtime: self,
            list: network.list(),
            operation: Operation::Version,
            target: None,
            clock: Clock::start(limit, limit),
            lock: None,
            cancellable: true,
        };
        let program = chain.find(plugin)?;
        // What libcni sends: plugins of before 0.2.0 insist on all of them.
        let environment: [(&'static str, OsString); 6] = [
            ("CNI_COMMAND", Operation::Version.as_str().into()),
            ("CNI_CONTAINERID", OsString::new()),
            ("CNI_NETNS", "dummy".into()),
            ("CNI_IFNAME", "dummy".into()),
            ("CNI_ARGS", OsString::new()),
            ("CNI_PATH", search_path(&self.plugin_directories)),
        ];
        match chain.execute(index, plugin, &program, &environment, &probe_request()) {
            Ok(printed) => VersionInfo::parse(&printed.stdout).map_err(|error| {
                chain.failure(index, plugin, Failure::BadResult(error), &printed.stderr)
            }),
            Err(RuntimeError::Plugin(failure)) => {
                let old = match &failure.failure {
                    Failure::Reported { error, .. } => VersionInfo::from_refusal(error),
                    _ => None,
                };
                old.ok_or(RuntimeError::Plugin(failure))
            }
            Err(error) => Err(error),
        }
    }
}
