//! The bridge plugin on real namespaces: every key and operation, mistakes,
//! strangers, crowds, and the Go plugin beside it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // It is all of tests.

mod chain;
mod check;
mod crowd;
mod del;
mod ipam;
mod keys;
mod lab;
mod mistakes;
mod peers;
mod restricted;
mod undo;
mod verbs;
