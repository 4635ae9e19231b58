//! Garbage collection of ifbs.

use podwire_netlink::route::Link;
use podwire_plugin::{Belongs, Collection, Difference, Made, Plan, Resource, Valid};
use podwire_spec::error::Error;

use super::{ifb, takeover};
use crate::kernel::{Kernel, delete, refused};

/// Our own, by their owner.
pub struct Ifbs;

/// Those of the Go plugin that are of no use to anybody; see the evidence in
/// `takeover`.
pub struct GoIfbs;

struct Stale(Link);

impl Collection<Kernel> for Ifbs {
    fn describe(&self) -> String {
        "limits of what comes from containers".to_owned()
    }

    fn stale(&self, kernel: &mut Kernel, valid: &Valid) -> Result<Plan<Kernel>, Error> {
        let ifbs = kernel.host()?.links_of_kind("ifb").map_err(refused)?;
        let stale = ifbs.into_iter().filter(|link| ifb::is_stale(link, valid));
        Ok(stale.map(|link| Box::new(Stale(link)) as Box<dyn Resource<Kernel>>).collect())
    }
}

impl Collection<Kernel> for GoIfbs {
    fn describe(&self) -> String {
        "limits that the Go plugin made".to_owned()
    }

    fn stale(&self, kernel: &mut Kernel, valid: &Valid) -> Result<Plan<Kernel>, Error> {
        let ifbs = kernel.host()?.links_of_kind("ifb").map_err(refused)?;
        let network = valid.network().as_str();
        let live: Vec<_> =
            valid.attachments().map(|(container, _)| takeover::name(network, container)).collect();
        let mut plan: Plan<Kernel> = Vec::new();
        for link in ifbs {
            if !takeover::is_like(&link) || live.contains(&link.name) {
                continue;
            }
            if takeover::is_unused(kernel, &link)? {
                plan.push(Box::new(Stale(link)));
            }
        }
        Ok(plan)
    }
}

impl Resource<Kernel> for Stale {
    fn describe(&self) -> String {
        format!("interface {}", self.0.name)
    }

    fn belongs(&self) -> Belongs {
        Belongs::Attachment
    }

    fn make(&mut self, _: &mut Kernel) -> Result<Made, Error> {
        Ok(Made::Found)
    }

    fn check(&self, _: &mut Kernel) -> Result<Vec<Difference>, Error> {
        Ok(Vec::new())
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        delete(kernel, &self.0)
    }
}
