//! The operations of a runtime, one file each. They share how a list of
//! plugins is run (`chain`), what is known of an attachment (`known`) and what
//! its version allows (`versions`).

mod add;
mod chain;
mod check;
mod del;
mod gc;
mod known;
mod network_ref;
mod sandbox;
mod status;
mod valid;
mod validate;
mod version;
mod versions;

pub use add::{Attached, Existing};
pub use check::Checked;
pub use del::Deleted;
pub use gc::{GcMode, GcReport, Stale, StaleOutcome};
pub use known::Source;
pub use network_ref::NetworkRef;
pub use status::Status;
pub use valid::ValidSet;
pub use validate::{Finding, Severity};
pub use version::PluginVersion;

#[cfg(test)]
mod tests;
