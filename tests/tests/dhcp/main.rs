//! The `dhcp` plugin and its daemon with real servers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // It is all of tests.

mod abuse;
mod change;
mod crash;
mod disk;
mod go;
mod hostile;
mod life;
mod options;
mod restart;
mod scale;
mod socket;
mod strangers;
mod verbs;
