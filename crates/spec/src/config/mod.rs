//! What an administrator writes: a network configuration list, or the single
//! plugin configuration that was legal before 1.0.0 (specification, section 1).
//!
//! The runtime checks only the keys that are its own. What belongs to a plugin
//! goes on as it is, however odd it looks: only that plugin knows.

mod list;
mod location;
mod plugin;
mod selection;

pub use list::NetworkList;
pub use location::ConfigError;
pub use plugin::PluginConfig;
