//! The loopback interface of a sandbox.

use ipnet::IpNet;
use podwire_netlink::route::link_change::ChangeLink;
use podwire_plugin::{Attachment, Belongs, Difference, Made, Resource};
use podwire_spec::error::Error;

use crate::host_end::alias;
use crate::kernel::{Kernel, refused};

/// `lo`, switched on. Who did so is written into its alias: DEL may come with
/// the path of a namespace that is another container's by now, whose loopback
/// must stay on.
pub struct Loopback {
    alias: String,
    /// The addresses that it was recorded to have, which CHECK looks for.
    pub recorded: Vec<IpNet>,
}

/// Its name, the same in every namespace.
pub const NAME: &str = "lo";

impl Loopback {
    /// The loopback of an attachment.
    pub fn new(attachment: &Attachment) -> Self {
        let alias = alias(&attachment.key, &attachment.owner);
        Self { alias, recorded: Vec::new() }
    }
}

impl Resource<Kernel> for Loopback {
    fn describe(&self) -> String {
        "loopback interface in the container".to_owned()
    }

    fn belongs(&self) -> Belongs {
        Belongs::Attachment
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let link = kernel.container_link(NAME)?;
        let there = kernel.container()?.addresses_of(link.device()).map_err(refused)?;
        if let Some(other) = there.iter().find(|address| !address.address.addr().is_loopback()) {
            return Err(Error::internal(format!(
                "loopback interface found with non-loopback address {}",
                other.address
            ))
            .with_details("remove the address; it would answer for other containers"));
        }
        if link.is_up() {
            return Ok(Made::Found);
        }
        let mut change = ChangeLink::new(link.device()).up();
        if link.alias.is_none() {
            change = change.alias(&self.alias);
        }
        kernel.container()?.apply(&change).map_err(refused)?;
        Ok(Made::Created)
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let link = kernel.container_link(NAME)?;
        if !link.is_up() {
            return Ok(vec![Difference::new(self.describe(), "up", "down")]);
        }
        if self.recorded.is_empty() {
            return Ok(Vec::new());
        }
        let there = kernel.container()?.addresses_of(link.device()).map_err(refused)?;
        let is_there = |wanted: &&IpNet| there.iter().any(|one| one.address == **wanted);
        let missing = self.recorded.iter().filter(|wanted| !is_there(wanted)).map(|address| {
            Difference::missing(format!("address {address} on {NAME} in the container"))
        });
        Ok(missing.collect())
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        if !kernel.has_sandbox() {
            return Ok(());
        }
        let link = kernel.container()?.link_by_name(NAME).map_err(refused)?;
        let Some(link) = link.filter(|link| link.alias.as_deref() == Some(&*self.alias)) else {
            return Ok(());
        };
        let change = ChangeLink::new(link.device()).alias("").down();
        kernel.container()?.apply(&change).map_err(refused)
    }
}
