//! Limits on a container's traffic.
//!
//! What goes to the container leaves the host end of its pair and waits there
//! ([`HostShaper`]). What comes from it can't be made to wait where it comes
//! in, so it is redirected to a link that only shapes, an ifb
//! ([`EgressShaper`]).

mod collection;
mod egress;
mod host;
mod ifb;
mod redirect;
mod shaping;
mod takeover;
mod tree;

pub use collection::{GoIfbs, Ifbs};
pub use egress::EgressShaper;
pub use host::HostShaper;
pub use ifb::observed;
pub use shaping::{Direction, Limit, Scope, Shaping};

use podwire_netlink::route::Link;
use podwire_spec::error::Error;
use podwire_spec::result::CniResult;

use crate::host_end::host_end_of;
use crate::kernel::{Kernel, refused};

/// The host end of the interface `ifname`, found by the index of its peer and
/// never by its place in a result.
///
/// # Errors
/// There is no such interface, it is no veth, or its other end isn't here.
fn require_host_end(kernel: &mut Kernel, ifname: &str) -> Result<Link, Error> {
    let inside = kernel.container_link(ifname)?;
    if !inside.is_veth() {
        let kind = match inside.kind_name() {
            "" => "no virtual link",
            kind => kind,
        };
        return Err(Error::config(format!(
            "interface {ifname} in the container can't be limited: it needs to be a veth, and is \
             {kind}"
        ))
        .with_details("limits are set on the host end of a pair, as bridge and ptp make them"));
    }
    host_end_of(kernel, &inside)?.ok_or_else(|| {
        Error::internal(format!(
            "interface {ifname} in the container can't be limited: its other end is not in the \
             host's network namespace"
        ))
    })
}

/// Both ends of a pair, if all that leads to them is there.
struct Present {
    inside: Link,
    host: Link,
}

impl Present {
    fn find(kernel: &mut Kernel, ifname: &str) -> Result<Option<Self>, Error> {
        if !kernel.has_sandbox() {
            return Ok(None);
        }
        let inside = kernel.container()?.link_by_name(ifname).map_err(refused)?;
        let Some(inside) = inside else { return Ok(None) };
        let host = host_end_of(kernel, &inside)?;
        Ok(host.map(|host| Self { inside, host }))
    }

    /// Whether the host end says whose it is: then it is this attachment's,
    /// and takes all with it when the plugin that made it removes it, or it is a
    /// stranger's in a namespace whose path was used again.
    fn is_marked(&self) -> bool {
        self.host.alias.as_deref().is_some_and(|alias| alias.starts_with("podwire:"))
    }

    /// Whether prevResult is about this pair.
    fn is_recorded(&self, recorded: &Recorded) -> bool {
        let is_same_mac = match (&recorded.mac, self.inside.mac) {
            (Some(recorded), Some(mac)) => recorded.eq_ignore_ascii_case(&mac.to_string()),
            _ => true,
        };
        is_same_mac && recorded.host_interfaces.contains(&self.host.name)
    }
}

/// What prevResult says of an attachment.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// Interfaces of the host.
    pub host_interfaces: Vec<String>,
    /// The MAC address of the interface in the container.
    pub mac: Option<String>,
}

impl Recorded {
    /// From a result.
    pub fn from_result(result: &CniResult, ifname: &str) -> Self {
        let inside = result.interface_in_sandbox(ifname).map(|(_, interface)| interface);
        Self {
            host_interfaces: result.host_interfaces().map(|one| one.name.clone()).collect(),
            mac: inside.and_then(|inside| inside.mac.clone()).filter(|mac| !mac.is_empty()),
        }
    }
}
