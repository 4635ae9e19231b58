//! `bandwidth` behind any plugin: what the kernel holds, what passes, and what
//! is left.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "bandwidth/check.rs"]
mod check;
#[path = "bandwidth/collection.rs"]
mod collection;
#[path = "bandwidth/differential.rs"]
mod differential;
#[path = "bandwidth/lab.rs"]
mod lab;
#[path = "bandwidth/life.rs"]
mod life;
#[path = "bandwidth/speed.rs"]
mod speed;
#[path = "bandwidth/takeover.rs"]
mod takeover;
#[path = "bandwidth/versions.rs"]
mod versions;
