//! What a node knows about its attachments: what lives, what leaked.
//!
//! It reads what the runtime library has recorded and compares it with what
//! is there. It changes nothing: whoever wants something removed asks the
//! runtime.
//!
//! ```no_run
//! use podwire_keeper::Census;
//! use podwire_runtime::store::Store;
//!
//! # fn main() -> Result<(), podwire_runtime::RuntimeError> {
//! let census = Census::take(&Store::new("/var/lib/cni"))?;
//! for entry in &census.attachments {
//!     println!("{} {}", entry.key(), entry.condition().as_str());
//! }
//! # Ok(())
//! # }
//! ```

mod census;

pub use census::{Census, Condition, Entry};
