//! The limit on what goes to the container, on the host end.

use podwire_netlink::route::Link;
use podwire_plugin::{Attachment, Belongs, Difference, Made, OwnerMark, Resource};
use podwire_spec::error::Error;
use podwire_spec::id::AttachmentKey;

use super::shaping::{Shaping, clear};
use super::{Present, Recorded, redirect, require_host_end};
use crate::kernel::Kernel;

/// The limit on the host end of an attachment's pair.
pub struct HostShaper {
    owner: OwnerMark,
    key: AttachmentKey,
    shaping: Shaping,
    recorded: Recorded,
    made_on: Option<Link>,
}

impl HostShaper {
    /// A limit for an attachment.
    pub fn new(attachment: &Attachment, shaping: Shaping, recorded: Recorded) -> Self {
        Self {
            owner: attachment.owner,
            key: attachment.key.clone(),
            shaping,
            recorded,
            made_on: None,
        }
    }

    fn ifname(&self) -> &str {
        self.key.ifname.as_str()
    }
}

impl Resource<Kernel> for HostShaper {
    fn describe(&self) -> String {
        format!("limit of what goes to {} of container {}", self.ifname(), self.key.container_id)
    }

    fn belongs(&self) -> Belongs {
        Belongs::Attachment
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let host = require_host_end(kernel, self.ifname())?;
        if let Err(error) = self.shaping.apply(kernel.host()?, &host) {
            clear_ours(kernel, &host)?;
            return Err(error);
        }
        self.made_on = Some(host);
        Ok(Made::Created)
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let host = require_host_end(kernel, self.ifname())?;
        let mut found = Vec::new();
        self.shaping.check(kernel.host()?, &host, &mut found)?;
        Ok(found)
    }

    /// A host end that was made for this attachment takes the limit with it.
    /// Of others only a limit of this very rate goes, and only if prevResult
    /// names them or their packets go to an ifb of ours: the namespace may be a
    /// stranger's by now.
    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        let Some(pair) = Present::find(kernel, self.ifname())? else { return Ok(()) };
        if pair.is_marked() {
            return Ok(());
        }
        let is_proven = pair.is_recorded(&self.recorded)
            || redirect::leads_to_owned(kernel, &pair.host, &self.owner)?;
        if is_proven && self.shaping.is_on(kernel.host()?, &pair.host)? {
            clear(kernel.host()?, &pair.host)?;
        }
        Ok(())
    }

    fn undo(&mut self, kernel: &mut Kernel) -> Result<(), Error> {
        match self.made_on.take() {
            Some(host) => clear(kernel.host()?, &host),
            None => Ok(()),
        }
    }
}

/// Takes back a half-made limit, and nobody else's qdisc.
fn clear_ours(kernel: &mut Kernel, host: &Link) -> Result<(), Error> {
    let root = super::shaping::root_of(kernel.host()?, host)?;
    if root.is_some_and(|root| super::shaping::is_shaper(&root)) {
        clear(kernel.host()?, host)?;
    }
    Ok(())
}
