//! The Container Network Interface protocol as data: versions, identifiers,
//! configuration, request, result, error and arguments, each parsed once at
//! the edge into a type that can't hold a wrong value.
//!
//! This crate does no I/O and knows no operating system: it never opens a
//! file, reads an environment variable or sees a network namespace. Whatever
//! it is given is taken as hostile: no input makes it panic.
//!
//! ```
//! use podwire_spec::{result::VersionedResult, version::SpecVersion};
//!
//! let printed = r#"{"cniVersion":"0.4.0","ips":[{"version":"4","address":"10.1.2.3/24"}]}"#;
//! let result = VersionedResult::parse(printed, SpecVersion::V0_4_0)?.into_newest()?;
//! assert_eq!(result.ips[0].address.to_string(), "10.1.2.3/24");
//! # Ok::<(), podwire_spec::error::Error>(())
//! ```
//!
//! Sources: the CNI specification 1.1.0 and the behaviour of its Go
//! implementation where the field depends on it; each item says which.

pub mod address;
pub mod args;
pub mod capability;
pub mod config;
pub mod error;
pub mod id;
pub mod json;
pub mod lint;
pub mod mac;
pub mod operation;
pub mod request;
pub mod result;
pub mod version;
pub mod version_info;

pub use error::{Error, ErrorCode};
