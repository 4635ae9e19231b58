//! Plugins that adjust what the plugins before them made.

pub mod bandwidth;
pub mod portmap;
