//! `podwire migrate`: the Go plugins of a live node are exchanged for ours, and
//! back, and nobody on the node notices.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(unreachable_pub)]

mod calls;
mod devices;
mod kills;
mod lab;
mod refusals;
mod traffic;
mod upgrade;
