//! `sbr` on real namespaces: packets, rules and tables, the Go plugin.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod lab;
mod life;
mod packets;
mod peers;
