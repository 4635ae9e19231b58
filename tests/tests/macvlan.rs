//! `macvlan`: its modes with packets, its keys, its life, and beside Go's.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "macvlan/keys.rs"]
mod keys;
#[path = "macvlan/life.rs"]
mod life;
#[path = "macvlan/modes.rs"]
mod modes;
#[path = "macvlan/peers.rs"]
mod peers;
