//! Kernel objects that CNI plugins put on a host, each made, checked, removed
//! and collected the same way: a [`podwire_plugin::Resource`] over
//! [`Kernel`].
//!
//! One kind of object, one file. A resource knows the kernel and its owner;
//! it never reads a configuration and never sees another plugin.

pub mod bridge;
pub mod bridge_port;
pub mod child_link;
pub mod firewalld;
#[doc(hidden)]
pub mod fuzzing;
pub mod gateway;
pub mod host_chains;
pub mod host_end;
pub mod host_route;
pub mod interface;
pub mod link_attributes;
pub mod loopback;
pub mod masquerade;
pub mod moved_device;
pub mod nft;
pub mod port_vlans;
pub mod sandbox_sysctls;
pub mod shaper;
pub mod source_routing;
pub mod spoof_check;
pub mod tap;
pub mod veth;
pub mod vlan_gateway;
pub mod vrf;

mod common_lock;
mod formerly;
mod kernel;
mod sandbox_path;
mod whose;

pub use formerly::formerly;
pub use kernel::{Kernel, Pair, refused};
