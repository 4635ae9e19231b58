//! The request: what a runtime writes to a plugin's standard input
//! (specification, section 3 "Deriving execution configuration").

mod attachments;
mod build;
mod incoming;

pub use attachments::{ValidAttachment, ValidAttachments};
pub use build::{CapabilityArguments, RequestInputs, build};
pub use incoming::PluginRequest;
