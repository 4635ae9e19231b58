//! Plugins that make an interface.

pub mod bridge;
pub mod child;
pub mod host_device;
pub mod loopback;
pub mod ptp;
pub mod tap;

mod dns;
mod dummy;
mod ipvlan;
mod keys;
mod macvlan;
mod only;
mod vlan;
