//! The runtime with plugins that are real processes.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail that way; clippy knows only unit tests as such"
)]

mod crash;
mod example;
mod node;
mod processes;
mod together;
