//! Spoof check on real namespaces: frames, ownership, collection, scale, and
//! what the Go plugins left.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // It is all of tests.

mod frames;
mod lab;
mod ownership;
mod takeover;
