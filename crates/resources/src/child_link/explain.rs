//! The kernel's refusals to make a child link, in words that help.

use podwire_netlink::route::Link;
use podwire_netlink::route::link_kind::MacvlanMode;
use podwire_spec::error::Error;

use super::ChildKind;
use super::claim::Refused;
use crate::kernel::refused;

/// Why a link could not be made, and what to do.
pub(super) fn explain(
    kind: ChildKind,
    error: podwire_netlink::Error,
    parent: Option<&Link>,
) -> Refused {
    let parent = parent.map_or("", |parent| parent.name.as_str());
    if error.is_exists() {
        // A VLAN is refused so too when its parent has it already.
        return Refused::Taken(match kind {
            ChildKind::Vlan { id } => {
                Error::internal(format!("VLAN {id} of {parent} exists already: {error}"))
                    .with_details(
                        "a device has each VLAN once, in whatever namespace; choose another \
                         vlanId, or another master",
                    )
            }
            _ => refused(error),
        });
    }
    if error.is_unsupported() {
        return Refused::Other(unsupported(kind, &error));
    }
    let mut hint = String::new();
    if error.is_busy() {
        hint = format!(
            "a device carries children of one kind only, and none while it is a port of a bridge \
             or a bond: look at ip -d link show {parent}"
        );
    } else if let ChildKind::Macvlan { mode, .. } = kind
        && error.errno().is_some_and(|errno| errno.raw_os_error() == EINVAL)
    {
        hint = match mode {
            MacvlanMode::Passthru => {
                format!("mode passthru takes {parent} for itself: it must have no other macvlan")
            }
            _ => format!("{parent} may be taken over by a macvlan of mode passthru"),
        };
    }
    // Not code 11: what keeps a device busy doesn't pass by itself.
    let is_known = error.is_permission() || error.is_transient() && !error.is_busy();
    Refused::Other(if is_known {
        refused(error)
    } else {
        Error::internal(error.to_string()).with_details(hint)
    })
}

/// `EINVAL` (asm-generic/errno-base.h).
const EINVAL: i32 = 22;

/// The kernel doesn't know the kind.
pub(super) fn unsupported(kind: ChildKind, error: &podwire_netlink::Error) -> Error {
    let name = kind.name();
    let module = if matches!(kind, ChildKind::Vlan { .. }) { "8021q" } else { name };
    Error::internal(format!("this kernel has no {name} links: {error}"))
        .with_details(format!("load its module (modprobe {module}), or boot a kernel that has it"))
}
