//! Attributes of the container's interface that are changed for as long as it
//! is attached, and set back for a device that outlives the container.
//!
//! What was there before is kept in a file, as the Go plugin does, so that
//! either can set back what the other changed.

mod attributes;
mod backup;
mod collection;

use std::path::Path;

use podwire_netlink::route::{Link, MacAddress};
use podwire_plugin::{Attachment, Belongs, Difference, Made, OwnerMark, Resource};
use podwire_spec::error::Error;
use podwire_spec::id::AttachmentKey;
use podwire_sys::netns::Identity;

pub use self::attributes::Attributes;
pub use self::collection::Backups;

use self::backup::{Backup, Stored};
use crate::kernel::{Kernel, refused};

/// Reads a backup, for nothing but to see whether it can be read.
pub(crate) fn parse(text: &str) -> Result<(), Error> {
    Stored::parse(text).map(drop)
}

/// Attributes of an attachment's interface.
pub struct LinkAttributes {
    key: AttachmentKey,
    owner: OwnerMark,
    wanted: Attributes,
    recorded_mac: Option<MacAddress>,
    backup: Backup,
    made: Option<(Attributes, Option<Stored>)>,
}

impl LinkAttributes {
    /// For an attachment, with the originals kept in `directory`.
    /// `recorded_mac` is the interface's address in prevResult.
    pub fn new(
        attachment: &Attachment,
        wanted: Attributes,
        directory: &Path,
        recorded_mac: Option<MacAddress>,
    ) -> Self {
        let backup = Backup::new(directory, &attachment.key);
        let (key, owner) = (attachment.key.clone(), attachment.owner);
        Self { key, owner, wanted, recorded_mac, backup, made: None }
    }

    fn ifname(&self) -> &str {
        self.key.ifname.as_str()
    }

    /// Keeps what is there of what will be changed. What an earlier ADD kept
    /// stays: it knew the originals.
    fn keep(
        &self,
        current: &Attributes,
        sandbox: Option<Identity>,
    ) -> Result<Option<Stored>, Error> {
        let earlier = self.backup.read()?;
        let originals = match &earlier {
            Some(earlier) if is_same(earlier.sandbox.as_ref(), sandbox.as_ref()) => {
                earlier.attributes.or(current)
            }
            // Of another namespace, as before a boot, or none.
            _ => current.clone(),
        };
        let stored = Stored { attributes: originals, owner: Some(self.owner), sandbox };
        if earlier.as_ref() != Some(&stored) {
            self.backup.write(&stored)?;
        }
        Ok(earlier)
    }

    /// The file as it was before.
    fn unkeep(&self, earlier: Option<&Stored>) -> Result<(), Error> {
        match earlier {
            Some(earlier) => self.backup.write(earlier),
            None => self.backup.remove(),
        }
    }

    /// Whether this may be the interface that was changed: a namespace's path
    /// may be a stranger's by now.
    fn is_proven(&self, link: &Link, stored: &Stored, sandbox: Option<&Identity>) -> bool {
        if !is_same(stored.sandbox.as_ref(), sandbox) {
            return false;
        }
        let Some(recorded) = self.recorded_mac else { return true };
        let known = [Some(recorded), self.wanted.mac, stored.attributes.mac];
        known.contains(&link.mac)
    }
}

/// Whether two namespaces may be the same; what isn't known tells nothing.
fn is_same(one: Option<&Identity>, other: Option<&Identity>) -> bool {
    one.is_none() || other.is_none() || one == other
}

impl Resource<Kernel> for LinkAttributes {
    fn describe(&self) -> String {
        format!("attributes of {} of container {}", self.ifname(), self.key.container_id)
    }

    fn belongs(&self) -> Belongs {
        Belongs::Attachment
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let link = kernel.container_link(self.ifname())?;
        let current = Attributes::of(&link, &self.wanted);
        let earlier = self.keep(&current, kernel.sandbox()?.identity())?;
        let outcome = self.wanted.apply(kernel.container()?, &link);
        if let Some(error) = outcome.into_iter().next() {
            // What of it was changed, and what was not, is the same again.
            for trouble in current.apply(kernel.container()?, &link) {
                log::warn!("could not set back: {trouble}");
            }
            self.unkeep(earlier.as_ref())?;
            return Err(error);
        }
        self.made = Some((current, earlier));
        Ok(Made::Created)
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let link = kernel.container()?.link_by_name(self.ifname()).map_err(refused)?;
        Ok(match link {
            Some(link) => self.wanted.differences(&link),
            None => {
                vec![Difference::missing(format!("interface {} in the container", self.ifname()))]
            }
        })
    }

    /// Sets back what was kept, and forgets it when that is done or can't be
    /// done any more.
    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        let Some(stored) = self.backup.read_or_set_aside()? else { return self.backup.remove() };
        let link = if kernel.has_sandbox() {
            kernel.container()?.link_by_name(self.ifname()).map_err(refused)?
        } else {
            None
        };
        if let Some(link) = link {
            let sandbox = kernel.sandbox()?.identity();
            if self.is_proven(&link, &stored, sandbox.as_ref()) {
                let troubles = stored.attributes.apply(kernel.container()?, &link);
                if let Some(first) = troubles.into_iter().next() {
                    return Err(first.context("setting back what was there before").with_details(
                        format!("it is kept in {}; another DEL tries again", self.backup.path()),
                    ));
                }
            } else {
                log::warn!(
                    "interface {} in the namespace is left alone: namespace or MAC address isn't \
                     that of container {}",
                    self.ifname(),
                    self.key.container_id
                );
            }
        }
        self.backup.remove()
    }

    fn undo(&mut self, kernel: &mut Kernel) -> Result<(), Error> {
        let Some((previous, earlier)) = self.made.take() else { return Ok(()) };
        let link = kernel.container_link(self.ifname())?;
        let troubles = previous.apply(kernel.container()?, &link);
        self.unkeep(earlier.as_ref())?;
        troubles.into_iter().next().map_or(Ok(()), Err)
    }
}
