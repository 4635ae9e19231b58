//! Benchmarks: each call of Podwire beside the same call of the Go plugins
//! and the least the kernel needs for the same end state.
//!
//! Everything runs in a private world with its state on tmpfs, the subjects
//! in turn within each round, so that what disturbs one disturbs all. Only
//! ratios are results; times depend on the machine.

pub mod measure;
pub mod report;
pub mod scenario;
pub mod subject;
