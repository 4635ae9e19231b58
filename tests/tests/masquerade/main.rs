//! Masquerade on real namespaces: packets, ownership, collection, and what
//! the Go plugins left.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // It is all of tests.

mod collection;
mod lab;
mod ownership;
mod packets;
mod takeover;
