//! Benchmarks: each call of Podwire beside the same call of the Go plugins
//! and the least the kernel needs for the same end state.
//!
//! Everything runs in a private world with its state on tmpfs, and some of it
//! again on a real disk; the subjects take turns within each round, so that
//! what disturbs one disturbs all. Of times only ratios are results. Counts
//! (programs, system calls, netlink messages) are exact and have limits in
//! `limits.tsv`, so that a regression shows without a clock.

pub mod bench;
pub mod call;
pub mod limits;
pub mod options;
pub mod report;
pub mod samples;
pub mod sections;
pub mod subject;
pub mod turns;

/// What a step of a benchmark returns: a message for a person.
pub type Outcome<T = ()> = Result<T, String>;
