//! Run CNI networks: load, add, check, delete, status, garbage-collect;
//! crash-safe and locked.
//!
//! The library in the place of Go's libcni, for container runtimes and tools.
//! It does what the specification and libcni agree on, and what the latter
//! lacks: an intent on the disk before the first plugin runs, a rollback after
//! a failed ADD, deadlines that hold, locks between processes, DEL and GC from
//! what was recorded at ADD, errors that say which plugin and why.
//!
//! It knows plugins only as programs: nothing here opens a netlink socket or
//! knows what a bridge is. Everything is synchronous; a [`Runtime`] may be used
//! from many threads.
//!
//! ```no_run
//! use podwire_runtime::{Attachment, Existing, Runtime, Source};
//! use podwire_spec::id::{ContainerId, IfName};
//!
//! # fn main() -> Result<(), podwire_runtime::RuntimeError> {
//! let runtime = Runtime::builder().plugin_directory("/opt/cni/bin").build();
//! let network = runtime.network("pods")?;
//! let attachment = Attachment::new(ContainerId::parse("c1")?, IfName::parse("eth0")?)
//!     .with_netns("/run/netns/c1");
//! let attached = runtime.add(&network, &attachment, Existing::Refuse)?;
//! println!("{}", attached.raw);
//! runtime.del(&network, &attachment, Source::Recorded)?;
//! # Ok(())
//! # }
//! ```

mod attachment;
mod deadlines;
mod error;
pub mod exec;
pub mod live;
pub mod load;
mod locks;
mod observer;
mod operations;
mod runtime;
pub mod store;

pub use attachment::Attachment;
pub use deadlines::Deadlines;
pub use error::{Rollback, RuntimeError};
pub use load::Network;
pub use observer::{CallInfo, Notice, Observer, Silent};
pub use operations::{
    Attached, Checked, Deleted, Existing, Finding, GcMode, GcReport, NetworkRef, PluginVersion,
    Severity, Source, Stale, StaleOutcome, Status, ValidSet,
};
pub use runtime::{
    DEFAULT_CACHE_DIRECTORY, DEFAULT_CONFIGURATION_DIRECTORY, DEFAULT_PLUGIN_DIRECTORY, Runtime,
    RuntimeBuilder,
};
