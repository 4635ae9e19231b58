//! The namespace that a result names, compared with the one of the request.

use podwire_plugin::Difference;
use podwire_spec::error::Error;
use podwire_sys::netns::NetNs;

use crate::kernel::Kernel;

/// Two paths may name one namespace, and some plugins write no path at all:
/// only one that leads to another namespace is a difference (B022).
///
/// # Errors
/// There is no sandbox, or it can't be looked at.
pub(crate) fn compare(
    kernel: &Kernel,
    recorded: Option<&str>,
    ifname: &str,
    found: &mut Vec<Difference>,
) -> Result<(), Error> {
    let Some(path) = recorded.filter(|path| path.starts_with('/')) else { return Ok(()) };
    let Ok(recorded) = NetNs::open(path) else { return Ok(()) };
    let same = kernel.sandbox()?.is_same(&recorded).map_err(|error| {
        Error::io(format!("comparing network namespace {path} with CNI_NETNS: {error}"))
    })?;
    if !same {
        let name = format!("namespace of {ifname} in prevResult");
        found.push(Difference::new(name, "that of CNI_NETNS", path));
    }
    Ok(())
}
