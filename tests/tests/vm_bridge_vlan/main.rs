//! `bridge` with VLANs, on kernels that filter them: what a port carries, as
//! the `bridge` program lists it, and which frames pass.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // It is all of tests.

mod frames;
mod gateway;
mod lab;
mod ports;
