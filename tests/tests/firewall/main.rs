//! `firewall` on real namespaces: packets, `iptables`, firewalld, the Go
//! plugin.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod crash;
mod firewalld;
mod isolation;
mod lab;
mod legacy;
mod life;
mod takeover;
