//! Linux for container networking: namespaces, mounts, locks, atomic files,
//! sysctl, child processes, packet sockets, and what a daemon needs.
//!
//! This crate turns kernel interfaces into types that can't be used wrongly: a
//! network namespace that is always left again, a lock that is always released,
//! a file that never appears half-written, a child that never outlives its
//! deadline. It knows nothing of CNI, of netlink or of JSON, and holds no state.
//!
//! `unsafe` appears only where rustix offers no safe call; each block says why
//! it is sound.
//!
//! ```no_run
//! use podwire_sys::netns::NetNs;
//!
//! let namespace = NetNs::open("/run/netns/blue")?;
//! let forwarding = namespace.run(|| podwire_sys::sysctl::read(&["net", "ipv4", "ip_forward"]))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![allow(unsafe_code)] // setns, getsockopt, ioctl, fork and memory need it; see the SAFETY lines.

pub mod arena;
pub mod boot;
pub mod datagram;
mod error;
pub mod file;
#[doc(hidden)]
pub mod fuzzing;
pub mod identity;
pub mod lock;
pub mod mount;
pub mod netns;
pub mod packet;
pub mod process;
pub mod random;
pub mod selinux;
pub mod service;
pub mod sysctl;
pub mod tun;

pub use error::PathError;
