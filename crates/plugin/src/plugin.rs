//! What a plugin author implements.

use podwire_spec::error::Error;
use podwire_spec::request::ValidAttachments;
use podwire_spec::result::CniResult;
use podwire_spec::version::SpecVersion;

use crate::attachment::Attachment;
use crate::request::Request;
use crate::undo::Undo;

/// What the framework must know about a plugin before it calls it.
#[derive(Debug, Clone, Copy)]
pub struct Description {
    /// The plugin's type: the name of its executable.
    pub name: &'static str,
    /// Printed behind the name when the program is run by hand, and read by
    /// tools (nerdctl looks for `CNI firewall plugin v1.7.1` or newer).
    pub version: &'static str,
    /// Specification versions served, oldest first.
    pub versions: &'static [SpecVersion],
    /// What the plugin is in a chain.
    pub role: Role,
}

impl Description {
    /// A description with the version of the reference plugins that Podwire
    /// stands in for and all specification versions.
    pub const fn new(name: &'static str, role: Role) -> Self {
        Self { name, version: crate::REFERENCE_VERSION, versions: &SpecVersion::ALL, role }
    }
}

/// The place of a plugin in a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Makes an interface; needs the network namespace on ADD and CHECK.
    Interface,
    /// Manages addresses for another plugin; never looks into the namespace.
    /// Only these are run in-process as delegates.
    Ipam,
    /// Adjusts what plugins before it made; needs their prevResult on ADD
    /// and CHECK.
    Chained,
}

/// A CNI plugin: the operations of the specification with their gates
/// already passed.
///
/// All methods get a validated [`Request`]. An [`Error`] becomes the error
/// object on standard output; a panic becomes one with code 999 after the
/// undo stack has run.
pub trait Plugin: Sync {
    /// Name, version and role.
    fn description(&self) -> Description;

    /// Makes the attachment. What is pushed on `undo` is taken back when this
    /// returns an error or panics.
    fn add<'a>(
        &'a self,
        request: &'a Request<'a>,
        attachment: &'a Attachment,
        undo: &mut Undo<'a>,
    ) -> Result<CniResult, Error>;

    /// Removes the attachment; succeeds when it is gone already, when the
    /// namespace is gone and when there is no prevResult.
    fn del(&self, request: &Request<'_>, attachment: &Attachment) -> Result<(), Error>;

    /// Compares what is there with what ADD made.
    fn check(&self, request: &Request<'_>, attachment: &Attachment) -> Result<(), Error>;

    /// Says whether an ADD could be served now (codes 50 and 51 if not).
    fn status(&self, _request: &Request<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Frees what belongs to this network and to none of `valid`.
    fn gc(&self, _request: &Request<'_>, _valid: &ValidAttachments) -> Result<(), Error> {
        Ok(())
    }
}

/// The plugins that one program holds.
pub type Registry = [&'static dyn Plugin];

/// The plugin of that name, if the program holds it.
pub fn lookup(registry: &Registry, name: &str) -> Option<&'static dyn Plugin> {
    registry.iter().copied().find(|plugin| plugin.description().name == name)
}
