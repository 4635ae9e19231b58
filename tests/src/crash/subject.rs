//! What is killed, seen from the harness.

use std::path::{Path, PathBuf};

use podwire_testkit::kill::{Blow, Killed};
use podwire_testkit::{Netns, Output, World};
use serde_json::Value;

use super::place::Place;

/// The verb that is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Attaching.
    Add,
    /// Detaching.
    Del,
    /// Collecting the attachment as garbage.
    Gc,
}

impl Verb {
    /// As in `CNI_COMMAND`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::Del => "DEL",
            Self::Gc => "GC",
        }
    }
}

/// One attachment of the subject's network.
#[derive(Debug, Clone)]
pub struct Target {
    /// The container's id.
    pub container: String,
    /// The namespace's path; `None` when the runtime says that it is gone.
    pub netns: Option<PathBuf>,
    /// `CNI_ARGS`.
    pub args: String,
    /// What ADD printed, if that is known.
    pub result: Option<Value>,
}

impl Target {
    /// A container with its namespace at a path.
    pub fn new(container: &str, netns: &Path) -> Self {
        Self {
            container: container.to_owned(),
            netns: Some(netns.to_owned()),
            args: String::new(),
            result: None,
        }
    }

    /// The same without the path.
    #[must_use]
    pub fn without_netns(mut self) -> Self {
        self.netns = None;
        self
    }
}

/// Something that attaches and detaches, made of one or more programs that are
/// killed one by one.
pub trait Subject: Sync {
    /// For tables: `bridge+host-local`.
    fn name(&self) -> &str;

    /// The interface in the container.
    fn ifname(&self) -> &str;

    /// Bridges that may stay.
    fn bridges(&self) -> &[&str];

    /// Whether all of an attachment can be seen from the host, so that GC finds it; a
    /// macvlan's other side is its parent, which tells nothing.
    fn is_seen_from_the_host(&self) -> bool;

    /// Whether a record on the host alone tells how something in the sandbox was
    /// before. Once GC has removed it, no DEL can know.
    fn is_restored_from_a_record(&self) -> bool {
        false
    }

    /// What must be there before the first call in a new world.
    fn prepare(&self, _world: &World) {}

    /// Puts back what of that went with a sandbox. Whether there is such a thing.
    fn repair(&self, _world: &World) -> bool {
        false
    }

    /// Whether a link of the host may be gone when a sandbox is.
    fn goes_with_sandbox(&self, _link: &str) -> bool {
        false
    }

    /// Puts into a container's sandbox what it holds before it is attached.
    fn furnish(&self, _netns: &Netns, _container: &str) {}

    /// How many programs a verb runs that can be killed.
    fn programs(&self) -> usize;

    /// What one of them is: a plugin's type, or `podwire`.
    fn program(&self, index: usize) -> &str;

    /// A whole ADD; sets the target's result.
    ///
    /// # Errors
    /// What the program that failed said.
    fn add(&self, world: &World, target: &mut Target) -> Result<(), Box<Output>>;

    /// A whole DEL.
    ///
    /// # Errors
    /// What the program that failed said.
    fn del(&self, world: &World, target: &Target) -> Result<(), Box<Output>>;

    /// A verb that is killed at a place; what comes before runs as usual. `valid` is
    /// what GC keeps.
    fn kill(
        &self,
        world: &World,
        verb: Verb,
        target: &Target,
        valid: &[&str],
        place: Place,
        blow: Blow,
    ) -> Killed;

    /// Compares what is there with what ADD made.
    ///
    /// # Errors
    /// What the program that found a difference said.
    fn check(&self, world: &World, target: &Target) -> Result<(), Box<Output>>;

    /// Collects what is not of these containers.
    ///
    /// # Errors
    /// What the program that failed said.
    fn gc(&self, world: &World, valid: &[&str]) -> Result<(), Box<Output>>;

    /// Loses what the runtime knows of an attachment.
    fn forget(&self, target: &mut Target) {
        target.result = None;
    }

    /// Waits for programs that a killed one has started and left behind.
    fn settle(&self) {}

    /// A call of a Go plugin that attaches a container to the same bridge with
    /// addresses from the same pool, if there is such a bridge: its verb is to be
    /// set.
    fn go_neighbour(&self, _target: &Target) -> Option<podwire_testkit::Plugin> {
        None
    }
}

/// An exit status as a result.
pub(super) fn done(output: Output) -> Result<Output, Box<Output>> {
    if output.code == 0 { Ok(output) } else { Err(Box::new(output)) }
}
