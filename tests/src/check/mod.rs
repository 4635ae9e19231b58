//! What CHECK must notice, as data: for each plugin a setting, and each object that it
//! makes removed or altered in turn. The tests try every row; `docs/check.md` shows them.

mod addresses;
mod bridge;
mod chained;
mod device;
mod filter;
mod inside;
mod page;
mod run;
mod tables;

use podwire_testkit::Feature;
use serde_json::Value;

pub use page::page;
pub use run::{prove, prove_elsewhere};

/// A plugin in a setting of its own.
#[derive(Clone, Copy)]
pub struct Subject {
    /// The plugin whose CHECK is asked.
    pub plugin: &'static str,
    /// The setting, for people: `gateway, masqueraded`.
    pub setting: &'static str,
    /// What the kernel must have; a kernel that may lack any of it is found in the
    /// virtual machine only.
    pub needs: &'static [Feature],
    /// A script for the host before the ADD.
    pub prepare: &'static str,
    /// The plugins' own keys in order, `type` included. The one whose CHECK is asked is
    /// the last, unless it is their IPAM plugin.
    pub chain: fn() -> Vec<Value>,
    /// What CHECK must notice.
    pub noticed: fn() -> Vec<Mutation>,
    /// What it must not mind.
    pub tolerated: fn() -> Vec<Mutation>,
}

/// Something done to an attachment behind its plugins' back.
#[derive(Clone)]
pub struct Mutation {
    /// What it is, for people; the same words for the same thing in all plugins.
    pub what: &'static str,
    /// How it is done.
    pub deed: Deed,
    /// Words of CHECK's answer, which name the object and what was found; none where
    /// CHECK must pass.
    pub says: Vec<&'static str>,
}

/// How a mutation is done. Scripts know `$HOST`, the attachment's host end, and `$IFB`.
#[derive(Clone)]
pub enum Deed {
    /// By a script on the host.
    Host(&'static str),
    /// By a script in the container.
    Inside(&'static str),
    /// By changing what the runtime recorded.
    Record(fn(&mut Value)),
    /// By listening on an interface of the host (true) or the container with a packet
    /// socket that sees everything, as `tcpdump` does.
    Listen(bool, &'static str),
}

/// Those that any kernel has what it takes for.
pub fn subjects_here() -> Vec<Subject> {
    subjects().into_iter().filter(|subject| subject.needs.is_empty()).collect()
}

/// Those of the virtual machine.
pub fn subjects_elsewhere() -> Vec<Subject> {
    subjects().into_iter().filter(|subject| !subject.needs.is_empty()).collect()
}

/// Every subject.
pub fn subjects() -> Vec<Subject> {
    [
        bridge::subjects(),
        device::subjects(),
        addresses::subjects(),
        filter::subjects(),
        tables::subjects(),
        chained::subjects(),
    ]
    .concat()
}

/// A script on the host, and what CHECK says of it.
fn host(what: &'static str, script: &'static str, says: &[&'static str]) -> Mutation {
    Mutation { what, deed: Deed::Host(script), says: says.to_vec() }
}

/// A script in the container, and what CHECK says of it.
fn inside(what: &'static str, script: &'static str, says: &[&'static str]) -> Mutation {
    Mutation { what, deed: Deed::Inside(script), says: says.to_vec() }
}

/// Somebody listens on an interface of the host.
fn listen(interface: &'static str) -> Mutation {
    let deed = Deed::Listen(true, interface);
    Mutation { what: "somebody listens on the host (tcpdump)", deed, says: Vec::new() }
}

/// Somebody listens on the container's interface.
fn listen_inside() -> Mutation {
    let deed = Deed::Listen(false, "eth0");
    Mutation { what: "somebody listens in the container (tcpdump)", deed, says: Vec::new() }
}

fn nothing() -> Vec<Mutation> {
    Vec::new()
}
