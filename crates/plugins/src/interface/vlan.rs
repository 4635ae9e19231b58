//! The keys of `vlan`.

use podwire_plugin::Request;
use podwire_resources::child_link::{ChildKind, ParentName};
use podwire_spec::error::Error;
use podwire_spec::operation::Operation;

use super::child::{Config, parent};
use super::keys;

/// The largest VLAN; 4095 is reserved (IEEE 802.1Q).
const LAST: u16 = 4094;

/// Reads them. Without `ipam` the interface is for layer 2 only, which the
/// reference refuses.
///
/// # Errors
/// Code 6 for a value of the wrong type, code 7 for one that can't be served.
pub(super) fn read(request: &Request<'_>, _: Operation, config: &mut Config) -> Result<(), Error> {
    let object = request.object();
    let parent = parent(object)?;
    if parent.name == ParentName::DefaultRoute {
        return Err(Error::config(
            "\"master\" field is required. It specifies the host interface name to create the \
             VLAN for.",
        ));
    }
    let number = object.integer::<i64>("vlanId")?.unwrap_or(0);
    let id = u16::try_from(number).ok().filter(|id| *id <= LAST).ok_or_else(|| {
        Error::config(format!("invalid VLAN ID {number} (vlanId must be between 0 and {LAST})"))
    })?;
    config.kind = ChildKind::Vlan { id };
    config.parent = Some(parent);
    config.mtu = keys::mtu(object)?;
    Ok(())
}
