//! What docs/security.md says, statement by statement.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod environment;
mod escapes;
mod lab;
mod links;
mod modes;
mod stacks;
