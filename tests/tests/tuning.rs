//! `tuning` behind any plugin: what is set, what is kept, what is set back.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "tuning/chain.rs"]
mod chain;
#[path = "tuning/check.rs"]
mod check;
#[path = "tuning/differential.rs"]
mod differential;
#[path = "tuning/lab.rs"]
mod lab;
#[path = "tuning/life.rs"]
mod life;
#[path = "tuning/restore.rs"]
mod restore;
#[path = "tuning/takeover.rs"]
mod takeover;
