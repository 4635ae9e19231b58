//! Our plugins under containerd, called as the kubelet calls it: the release that this
//! machine has (1.6 in Debian 12), and the newest (2.1 or later).
//!
//! Each test has a containerd of its own; what came of a call is asked of the kernel.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod collection;
mod command;
mod kills;
mod lab;
mod pods;
mod pool;
mod vanished;
