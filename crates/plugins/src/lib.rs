//! Every CNI reference plugin, as declarations over
//! [`podwire_plugin::Inventory`] and the resources of `podwire-resources`.
//!
//! One plugin, one module; a plugin never sees another. The program
//! `podwire-cni` holds them all and is installed under each name.

#[doc(hidden)]
pub mod fuzzing;
pub mod interface;
pub mod ipam;
pub mod meta;

#[cfg(test)]
mod counted;
mod distinct;
mod registry;

pub use registry::PLUGINS;
