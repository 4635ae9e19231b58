//! What a plugin declares instead of scripting ADD, DEL, CHECK and GC: the
//! objects that should exist for an attachment.
//!
//! A plugin implements [`Inventory`]; wrapping it in [`crate::Inventoried`] makes it a
//! [`crate::Plugin`], with one engine doing the verbs for all. The kernel is a type
//! parameter, so that the engine is tested without one and this crate never
//! sees netlink.

use std::collections::BTreeSet;
use std::fmt;

use podwire_spec::error::Error;
use podwire_spec::id::NetworkName;
use podwire_spec::operation::Operation;
use podwire_spec::request::ValidAttachments;
use podwire_spec::result::CniResult;

use crate::attachment::Attachment;
use crate::owner::OwnerMark;
use crate::plugin::Description;
use crate::request::Request;
use crate::sandbox::Sandbox;

/// Whether [`Resource::make`] made the object or found it as it must be.
/// Only what was made is undone when a later step fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// It is new, or was changed: undoing is due.
    Created,
    /// It was there already and is left as it is.
    Found,
}

/// Whose an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Belongs {
    /// To this attachment alone, but it doesn't keep the container's address
    /// reachable.
    Attachment,
    /// To this attachment, and while it stands the container's address is in
    /// use: the address goes back to the pool only when it is gone.
    AttachmentAddress,
    /// To the host (a bridge, a forwarding switch): DEL leaves it.
    Host,
    /// Inside the sandbox, and gone with the interface that holds it: DEL
    /// has nothing to do.
    Sandbox,
}

/// One difference CHECK found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The object: `address 10.1.0.2/24 on eth0 in the container`.
    pub object: String,
    /// What must be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl Difference {
    /// A difference, in words.
    pub fn new(
        object: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self { object: object.into(), expected: expected.into(), found: found.into() }
    }

    /// The object isn't there at all.
    pub fn missing(object: impl Into<String>) -> Self {
        Self::new(object, "present", "missing")
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.expected == "present" && self.found == "missing" {
            return write!(f, "{} is missing", self.object);
        }
        write!(f, "{}: expected {}, found {}", self.object, self.expected, self.found)
    }
}

/// One object on the host or in the sandbox.
///
/// Every method may be called alone, in a process that knows nothing but the
/// owner: DEL and GC come after crashes.
pub trait Resource<K> {
    /// The object for people: `masquerade of 10.1.0.2`.
    fn describe(&self) -> String;

    /// Whose it is.
    fn belongs(&self) -> Belongs;

    /// Makes it, or finds that it is there as it must be. On an error nothing
    /// of this object is left.
    fn make(&mut self, kernel: &mut K) -> Result<Made, Error>;

    /// Compares it with what must be there.
    fn check(&self, kernel: &mut K) -> Result<Vec<Difference>, Error>;

    /// Removes it; succeeds when it is gone, and never touches what isn't
    /// provably ours.
    fn remove(&self, kernel: &mut K) -> Result<(), Error>;

    /// Takes back what [`Resource::make`] did in this very process. Differs
    /// from `remove` for objects of the host, which DEL leaves alone.
    fn undo(&mut self, kernel: &mut K) -> Result<(), Error> {
        self.remove(kernel)
    }
}

/// Resources in the order they are made; removed in reverse.
pub type Plan<K> = Vec<Box<dyn Resource<K>>>;

/// All objects of one kind on the host that carry an owner, for garbage
/// collection.
pub trait Collection<K> {
    /// The kind for people: `port mappings`.
    fn describe(&self) -> String;

    /// The objects of `valid`'s network whose owner is not in `valid`, each
    /// ready to be removed. Objects without provable owner are left out.
    fn stale(&self, kernel: &mut K, valid: &Valid) -> Result<Plan<K>, Error>;
}

/// The attachments of one network that are alive.
#[derive(Debug, Clone)]
pub struct Valid {
    network: NetworkName,
    network_half: [u8; 8],
    marks: BTreeSet<OwnerMark>,
    attachments: BTreeSet<(String, String)>,
}

impl Valid {
    /// The live attachments of `network`, as container ids and interfaces.
    pub fn new<'v>(
        network: &NetworkName,
        attachments: impl IntoIterator<Item = (&'v str, &'v str)>,
    ) -> Self {
        let attachments: BTreeSet<_> = attachments
            .into_iter()
            .map(|(id, ifname)| (id.to_owned(), ifname.to_owned()))
            .collect();
        Self {
            network: network.clone(),
            network_half: OwnerMark::network_half(network),
            marks: attachments
                .iter()
                .map(|(id, ifname)| OwnerMark::new(network, id, ifname))
                .collect(),
            attachments,
        }
    }

    /// The network that is collected.
    pub fn network(&self) -> &NetworkName {
        &self.network
    }

    /// Whether an object with this mark is of this network and of no live
    /// attachment.
    pub fn is_stale(&self, mark: &OwnerMark) -> bool {
        mark.network == self.network_half && !self.marks.contains(mark)
    }

    /// Whether the mark is of this network at all.
    pub fn is_of_network(&self, mark: &OwnerMark) -> bool {
        mark.network == self.network_half
    }

    /// Whether this attachment is alive.
    pub fn holds(&self, container: &str, ifname: &str) -> bool {
        self.attachments.contains(&(container.to_owned(), ifname.to_owned()))
    }

    /// Whether the container has any live attachment: for old objects that
    /// name only the container.
    pub fn holds_container(&self, container: &str) -> bool {
        let first = (container.to_owned(), String::new());
        self.attachments.range(first..).next().is_some_and(|(id, _)| id == container)
    }

    /// The live attachments, as container ids and interfaces.
    pub fn attachments(&self) -> impl Iterator<Item = (&str, &str)> {
        self.attachments.iter().map(|(id, ifname)| (id.as_str(), ifname.as_str()))
    }
}

impl From<(&NetworkName, &ValidAttachments)> for Valid {
    fn from((network, valid): (&NetworkName, &ValidAttachments)) -> Self {
        let entries = valid.as_slice().iter();
        Self::new(network, entries.map(|entry| (&*entry.container_id, &*entry.ifname)))
    }
}

/// Where an attachment's addresses come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addresses {
    /// From the IPAM plugin the configuration names.
    Delegated,
    /// From the plugins before this one; the chained plugins.
    PrevResult,
    /// There are none: layer 2 only.
    None,
}

impl Addresses {
    /// Delegated where the configuration names an IPAM plugin; none otherwise.
    pub const fn delegated_if(has_ipam: bool) -> Self {
        if has_ipam { Self::Delegated } else { Self::None }
    }
}

/// What the operation knows.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Which operation asks.
    pub operation: Operation,
    /// ADD: what this attachment is to become ([`Inventory::complete`]); none
    /// yet for the foundation.
    /// CHECK: prevResult, with what later plugins changed. DEL: prevResult
    /// if there is a readable one. GC: none.
    pub result: Option<&'a CniResult>,
}

/// Handles to the kernel: sockets opened once per call, or when they are needed.
pub trait Handles: Sized {
    /// Opens them for a call about the sandbox, which is missing for STATUS and GC.
    ///
    /// # Errors
    /// What they need can't be had.
    fn open(sandbox: Option<&Sandbox>) -> Result<Self, Error>;
}

/// A plugin as a declaration.
pub trait Inventory: Sync {
    /// The validated configuration.
    type Config;
    /// Its handles to the kernel.
    type Kernel: Handles;

    /// Name, version and role.
    fn description(&self) -> Description;

    /// Reads the configuration. `operation` lets DEL and GC be lenient with what
    /// only ADD needs.
    fn parse(&self, request: &Request<'_>, operation: Operation) -> Result<Self::Config, Error>;

    /// Where this attachment's addresses come from; those of the plugins before,
    /// unless this one says otherwise.
    fn addresses(&self, _config: &Self::Config) -> Addresses {
        Addresses::PrevResult
    }

    /// Whether CHECK can't do without prevResult.
    fn needs_prev_result(&self) -> bool {
        true
    }

    /// Turns what the IPAM plugin (or the plugin before) gave into the result
    /// this attachment is to have; a chained plugin's is often the same. Pure.
    fn complete(
        &self,
        _config: &Self::Config,
        _attachment: &Attachment,
        base: CniResult,
    ) -> Result<CniResult, Error> {
        Ok(base)
    }

    /// What must stand before addresses are asked for: the interface itself,
    /// since a DHCP delegate speaks through it. Made first, removed last.
    /// Pure, as [`Inventory::desired`]; only `facts.operation` and, for CHECK
    /// and DEL, prevResult are known.
    fn foundation(
        &self,
        _config: &Self::Config,
        _attachment: &Attachment,
        _facts: &Facts<'_>,
    ) -> Result<Plan<Self::Kernel>, Error> {
        Ok(Vec::new())
    }

    /// What should exist on top, in the order it is made. Pure: no kernel, no
    /// file. With no result it must still name everything that DEL finds by
    /// owner.
    fn desired(
        &self,
        config: &Self::Config,
        attachment: &Attachment,
        facts: &Facts<'_>,
    ) -> Result<Plan<Self::Kernel>, Error>;

    /// Fills in what only the kernel knows (names and MAC addresses it
    /// chose), after all is made.
    fn observe(
        &self,
        _config: &Self::Config,
        _attachment: &Attachment,
        _kernel: &mut Self::Kernel,
        _result: &mut CniResult,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// Everything of this plugin on the host that carries an owner.
    fn collections(&self, _config: &Self::Config) -> Vec<Box<dyn Collection<Self::Kernel>>> {
        Vec::new()
    }

    /// Whether the plugin itself could serve an ADD now (codes 50, 51).
    fn ready(&self, _config: &Self::Config, _kernel: &mut Self::Kernel) -> Result<(), Error> {
        Ok(())
    }
}
