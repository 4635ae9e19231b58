//! The host's firewall opened for a container, whichever firewall that is.

use podwire_plugin::{Belongs, Difference, Made, Resource};
use podwire_resources::Kernel;
use podwire_resources::firewalld::{Firewalld, Sources};
use podwire_resources::host_chains::Accepts;
use podwire_spec::Error;

use super::config::Backend;

/// Rules in the host's chains, or sources of firewalld.
pub(super) struct Opening {
    pub(super) backend: Backend,
    pub(super) accepts: Accepts,
    pub(super) sources: Sources,
}

/// Whether firewalld is what the host is guarded by.
fn has_firewalld() -> bool {
    Firewalld::find()
        .unwrap_or_else(|error| {
            log::warn!("going on as if firewalld weren't running: {error}");
            None
        })
        .is_some()
}

impl Resource<Kernel> for Opening {
    fn describe(&self) -> String {
        self.accepts.describe()
    }

    fn belongs(&self) -> Belongs {
        Belongs::Attachment
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        match self.backend {
            Backend::Firewalld => self.sources.make(kernel),
            Backend::Auto if has_firewalld() => self.sources.make(kernel),
            Backend::Auto | Backend::HostChains => self.accepts.make(kernel),
        }
    }

    /// Where the plugin chose, either will do: firewalld may have been
    /// started or stopped since.
    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        match self.backend {
            Backend::Firewalld => self.sources.check(kernel),
            Backend::HostChains => self.accepts.check(kernel),
            Backend::Auto => {
                let found = self.accepts.check(kernel)?;
                if found.is_empty() || !has_firewalld() {
                    return Ok(found);
                }
                self.sources.check(kernel)
            }
        }
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        let sources = self.sources.remove(kernel);
        self.accepts.remove(kernel)?;
        sources
    }
}
