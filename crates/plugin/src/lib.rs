//! Write a CNI plugin: the protocol's gates, delegation, undo and the engine
//! that turns a declaration into all six operations.
//!
//! Two ways in:
//! - implement [`Plugin`] and script the verbs yourself: good for a small
//!   plugin;
//! - implement [`Inventory`], saying only what should exist for an
//!   attachment, and wrap it in [`Inventoried`]: ADD, CHECK, DEL, GC and
//!   STATUS follow.
//!
//! Either way [`run`] is the whole `main`:
//!
//! ```no_run
//! use podwire_plugin::{Attachment, Description, Plugin, Request, Role, Undo, run};
//! use podwire_spec::{error::Error, result::CniResult};
//!
//! struct Pass;
//!
//! impl Plugin for Pass {
//!     fn description(&self) -> Description {
//!         Description::new("pass", Role::Chained)
//!     }
//!     fn add<'a>(
//!         &'a self,
//!         request: &'a Request<'a>,
//!         _: &'a Attachment,
//!         _: &mut Undo<'a>,
//!     ) -> Result<CniResult, Error> {
//!         request.require_prev_result()
//!     }
//!     fn del(&self, _: &Request<'_>, _: &Attachment) -> Result<(), Error> {
//!         Ok(())
//!     }
//!     fn check(&self, _: &Request<'_>, _: &Attachment) -> Result<(), Error> {
//!         Ok(())
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     run(&Pass)
//! }
//! ```
//!
//! This crate never sees netlink: what a resource does to the kernel is a
//! type parameter of the engine.

pub mod aside;
mod attachment;
mod delegate;
mod dispatch;
mod engine;
mod entry;
mod environment;
mod inventory;
mod lock;
mod logger;
mod owner;
mod plugin;
mod request;
mod sandbox;
mod undo;

pub use attachment::Attachment;
pub use delegate::Delegate;
pub use dispatch::{Output, STDIN_LIMIT, dispatch};
pub use engine::{DRIFT, Inventoried};
pub use entry::{run, run_with};
pub use environment::Environment;
pub use inventory::{
    Addresses, Belongs, Collection, Difference, Facts, Handles, Inventory, Made, Plan, Resource,
    Valid,
};
pub use logger::log_to_stderr;
pub use owner::{OwnerMark, shorten};
pub use plugin::{Description, Plugin, Registry, Role, lookup};
pub use request::Request;
pub use sandbox::Sandbox;
pub use undo::Undo;

/// The version of the reference plugins (containernetworking/plugins) whose
/// behaviour Podwire's plugins have; what their about text prints.
pub const REFERENCE_VERSION: &str = "1.9.1";
