//! What the runtime itself looks at in the container's namespace before any
//! plugin runs: mistakes that would end in a rollback of what lives.

use std::path::{Path, PathBuf};

use podwire_spec::config::NetworkList;
use podwire_spec::error::Error;
use podwire_sys::netns::NetNs;

use super::chain::Target;
use crate::error::RuntimeError;

/// Plugins that make no interface: as the first of a list they work on one
/// that is there.
const WITHOUT_INTERFACE: [&str; 7] =
    ["loopback", "tuning", "portmap", "firewall", "bandwidth", "sbr", "vrf"];

/// Whether the path leads to the namespace that this process is in.
fn is_own(netns: &Path) -> bool {
    let (Ok(netns), Ok(own)) = (NetNs::open(netns), NetNs::current()) else { return false };
    netns.is_same(&own).unwrap_or(false)
}

/// Refuses to attach the host to itself: no plugin would take that, not even
/// for a DEL, so that its record could never go.
pub(super) fn refuse_own(netns: &Path) -> Result<(), RuntimeError> {
    if !is_own(netns) {
        return Ok(());
    }
    let error =
        Error::namespace(format!("{} is the host's own network namespace", netns.display()));
    Err(error.with_details("nothing was changed; give the container's namespace").into())
}

/// The path to tell a DEL: none if it leads to the host's own namespace by
/// now. The container's is gone then, and what is there is not to be touched.
pub(super) fn unless_own(netns: PathBuf) -> PathBuf {
    if is_own(&netns) { PathBuf::new() } else { netns }
}

/// Refuses where the interface is there already, before anything runs: the
/// plugin would refuse too, but a DEL after that takes down what lives. What
/// can't be looked at is left to the plugin.
pub(super) fn refuse_taken(list: &NetworkList, target: &Target) -> Result<(), RuntimeError> {
    let ifname = target.key.ifname.as_str();
    let first = list.plugins.first().map(|plugin| plugin.plugin_type.as_str());
    if ifname == "lo" || first.is_some_and(|first| WITHOUT_INTERFACE.contains(&first)) {
        return Ok(());
    }
    let Ok(netns) = NetNs::open(&target.netns) else { return Ok(()) };
    match netns.has_interface(ifname) {
        Ok(true) => Err(RuntimeError::InterfaceExists {
            attachment: target.key.clone(),
            netns: target.netns.clone(),
        }),
        Ok(false) | Err(_) => Ok(()),
    }
}
