//! Podman with its CNI backend runs containers on our plugins: networks of its own
//! making, and those that it wired with the Go plugins before.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod engine;
mod installer;
mod life;
mod networks;
mod switch;
