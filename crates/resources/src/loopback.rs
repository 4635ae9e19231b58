//! The loopback interface of a sandbox.

use podwire_netlink::route::link_change::ChangeLink;
use podwire_plugin::{Belongs, Difference, Made, Resource};
use podwire_spec::error::Error;

use crate::kernel::{Kernel, refused};

/// `lo`, switched on.
pub struct Loopback;

/// Its name, the same in every namespace.
pub const NAME: &str = "lo";

impl Resource<Kernel> for Loopback {
    fn describe(&self) -> String {
        "loopback interface in the container".to_owned()
    }

    fn belongs(&self) -> Belongs {
        Belongs::Attachment
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let link = kernel.container_link(NAME)?;
        if !link.is_up() {
            kernel.container()?.apply(&ChangeLink::new(link.device()).up()).map_err(refused)?;
        }
        let there = kernel.container()?.addresses_of(link.device()).map_err(refused)?;
        if let Some(other) = there.iter().find(|address| !address.address.addr().is_loopback()) {
            return Err(Error::internal(format!(
                "loopback interface found with non-loopback address {}",
                other.address
            )));
        }
        Ok(if link.is_up() { Made::Found } else { Made::Created })
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        if kernel.container_link(NAME)?.is_up() {
            return Ok(Vec::new());
        }
        Ok(vec![Difference::new(self.describe(), "up", "down")])
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        if !kernel.has_sandbox() {
            return Ok(());
        }
        let Some(link) = kernel.container()?.link_by_name(NAME).map_err(refused)? else {
            return Ok(());
        };
        kernel.container()?.apply(&ChangeLink::new(link.device()).down()).map_err(refused)
    }
}
