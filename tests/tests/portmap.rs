//! `portmap` with real packets, beside kube-proxy's kind of rules, before and
//! after the Go plugin.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "portmap/chains.rs"]
mod chains;
#[path = "portmap/conditions.rs"]
mod conditions;
#[path = "portmap/connections.rs"]
mod connections;
#[path = "portmap/lab.rs"]
mod lab;
#[path = "portmap/last.rs"]
mod last;
#[path = "portmap/life.rs"]
mod life;
#[path = "portmap/owners.rs"]
mod owners;
#[path = "portmap/scale.rs"]
mod scale;
#[path = "portmap/takeover.rs"]
mod takeover;
#[path = "portmap/traffic.rs"]
mod traffic;
#[path = "portmap/turn.rs"]
mod turn;
