//! Private worlds, fake plugins and probes for Podwire's own tests.
//!
//! A [`World`] is a network and a mount namespace that belong to one test: nothing
//! of the machine is touched and nothing stays behind. In it a test makes sandboxes
//! ([`World::netns`]), calls plugins as a runtime does ([`World::plugin`]), sends
//! packets ([`probe`]) and compares what is left ([`World::snapshot`]).
//!
//! Everything here panics on trouble, with the whole of what was seen: it is for
//! tests only. Tests need root, and the programs `ip`, `tc` and `nft`.
//!
//! ```no_run
//! use podwire_testkit::World;
//! use serde_json::json;
//!
//! let world = World::new();
//! let before = world.snapshot();
//! let sandbox = world.netns("blue");
//! let plugin = world.plugin("loopback").container("c1").netns(&sandbox).ifname("lo");
//! let plugin = plugin.config(json!({"cniVersion": "1.1.0", "name": "n", "type": "loopback"}));
//! plugin.clone().command("ADD").run().success();
//! plugin.command("DEL").run().success();
//! world.snapshot().since(&before).assert_empty();
//! ```
#![allow(unsafe_code)] // ptrace and raw signals; see the SAFETY lines.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::return_self_not_must_use)] // `success()` is often the last word.
#![allow(clippy::missing_panics_doc)] // Every function here panics on trouble.

mod background;
mod command;
pub mod fake;
mod kernel;
pub mod kill;
mod peers;
mod plugin;
pub mod probe;
pub mod state;
pub mod timing;
mod world;

pub use background::{Background, Log};
pub use command::Output;
pub use kernel::Feature;
pub use kill::netlink::{Refusal, Refused};
pub use kill::storage::{DiskFault, Spoiled};
pub use peers::{GoPlugins, libcni_client, peers_directory};
pub use plugin::{Plugin, Shipped, shipped};
pub use state::HostState;
pub use world::{Netns, World};
