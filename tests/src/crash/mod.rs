//! Killing plugins and runtimes at every system call, and looking at what is
//! left after the recovery that runtimes do.
//!
//! A [`Subject`] is what gets killed: a chain of plugins ([`PluginChain`]) or the
//! `podwire` command over one ([`Command`]). A [`Job`] kills one verb of it at
//! many [`Place`]s, each in one of many [`Scene`]s: what became of the sandbox
//! meanwhile, whether others were on the host, and how it is recovered. Each time
//! the host afterwards must be as it was before, less the residue that the design
//! allows, and other containers must not have been touched.
//!
//! Everything is counted, nothing is random: a run can be repeated, and a leak's
//! description names the place to kill at.

mod boot;
mod chains;
mod command;
mod crowd;
mod job;
mod left;
mod page;
mod place;
mod plugin_chain;
mod point;
mod progress;
mod report;
mod scene;
mod subject;

pub use boot::Boots;
pub use chains::{
    all, bridge, firewall, host_device, loopback, macvlan, masquerade, of_rarer_kernels,
    of_the_command, portmap, ptp, sbr, shaping, tap, tuning, whole,
};
pub use command::{Command, Commands};
pub use crowd::Crowd;
pub use job::{Job, run_all, run_all_watched};
pub use left::left;
pub use page::page;
pub use place::{Density, Place};
pub use plugin_chain::{Installed, PluginChain};
pub use progress::Progress;
pub use report::{Score, Tally, assert_sound, table};
pub use scene::{Fate, Host, Record, Recovery, Scene, Stranger};
pub use subject::{Subject, Target, Verb};
