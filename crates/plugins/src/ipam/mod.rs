//! Plugins that manage addresses for others: `dhcp`, `host-local` and `static`.
//!
//! They are run by a main plugin (`ipam.type`), never look into the
//! container's namespace and never touch the kernel's network: what they know
//! is the configuration and, for `host-local`, a directory, for `dhcp`, what
//! its daemon tells.

mod dhcp;
mod host_local;
mod input;
mod static_ipam;

pub(crate) use host_local::servers_in;

pub use dhcp::Dhcp;
pub use host_local::HostLocal;
pub use static_ipam::Static;
