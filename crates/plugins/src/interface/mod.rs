//! Plugins that make an interface.

pub mod bridge;
pub mod loopback;

mod dns;
