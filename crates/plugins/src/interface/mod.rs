//! Plugins that make an interface.

pub mod bridge;
pub mod loopback;
pub mod ptp;

mod dns;
mod keys;
