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

use crate::host_end::host_end_of;
use crate::kernel::Kernel;

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

/// The host end, if all that leads to it is there.
fn present_host_end(kernel: &mut Kernel, ifname: &str) -> Result<Option<Link>, Error> {
    if !kernel.has_sandbox() {
        return Ok(None);
    }
    match kernel.container()?.link_by_name(ifname).map_err(crate::kernel::refused)? {
        Some(inside) => host_end_of(kernel, &inside),
        None => Ok(None),
    }
}
