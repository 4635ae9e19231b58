//! What the system tests in `tests/` share: a node with plugins of ours or of
//! the Go project, containers on it, and the two runtimes that drive them.
//!
//! It knows the programs only from outside, as a runtime does. Everything here
//! panics on trouble, with the whole of what was seen: it is for tests only.
//!
//! ```no_run
//! use podwire_tests::{Node, Plugins};
//! use serde_json::json;
//!
//! let node = Node::new(Plugins::Ours);
//! let network = node.network(&json!({
//!     "cniVersion": "1.1.0", "name": "pods", "plugins": [{"type": "loopback"}],
//! }));
//! let container = node.container("c1");
//! node.add(&network, &container);
//! node.del(&network, &container);
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::missing_panics_doc)] // Every function here panics on trouble.

pub mod check;
pub mod collection;
mod container;
pub mod containerd;
pub mod crash;
pub mod dhcp;
pub mod differential;
pub mod fixture;
pub mod lab;
mod libcni;
pub mod memory;
mod node;
pub mod normal;
pub mod pages;
mod proof;
pub mod races;
pub mod readiness;
mod refusal;
pub mod segment;

pub use container::Container;
pub use libcni::Libcni;
pub use node::{Node, Outside, Plugins, wait_until};
pub use refusal::Refusals;
