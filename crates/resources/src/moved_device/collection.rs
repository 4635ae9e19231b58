//! Devices of attachments that are no more.

use podwire_plugin::{
    Belongs, Collection, Difference, Made, OwnerMark, Plan, Resource, Sandbox, Valid,
};
use podwire_spec::error::Error;

use super::record;
use super::return_device;
use super::search::Search;
use crate::kernel::Kernel;

/// Moved devices that a record tells of.
pub struct MovedDevices;

impl MovedDevices {
    /// Whether any container has a device.
    pub fn any() -> bool {
        record::sweep();
        !record::owners().is_empty()
    }
}

impl Collection<Kernel> for MovedDevices {
    fn describe(&self) -> String {
        "moved devices".to_owned()
    }

    fn stale(&self, _: &mut Kernel, valid: &Valid) -> Result<Plan<Kernel>, Error> {
        record::sweep();
        let stale = record::owners().into_iter().filter(|owner| valid.is_stale(owner));
        Ok(stale.map(|owner| Box::new(Stale(owner)) as Box<dyn Resource<Kernel>>).collect())
    }
}

/// The device of an attachment that is dead.
struct Stale(OwnerMark);

impl Resource<Kernel> for Stale {
    fn describe(&self) -> String {
        match record::read(&self.0) {
            Some(record) => format!("device {} of a dead attachment", record.name),
            None => format!("the device of {}", self.0),
        }
    }

    fn belongs(&self) -> Belongs {
        Belongs::AttachmentAddress
    }

    fn make(&mut self, _: &mut Kernel) -> Result<Made, Error> {
        Ok(Made::Found)
    }

    fn check(&self, _: &mut Kernel) -> Result<Vec<Difference>, Error> {
        Ok(Vec::new())
    }

    fn remove(&self, _: &mut Kernel) -> Result<(), Error> {
        let Some(record) = record::read(&self.0) else {
            // It tells nothing, not even where to look.
            record::remove(&self.0);
            return Ok(());
        };
        // A namespace of that name may be another's by now: the device is known
        // by more than that.
        let sandbox = Sandbox::open(&record.sandbox)?;
        let search = Search {
            ifname: record.ifname.clone(),
            record: Some(record),
            configured: None,
            mac: None,
            of_others: Vec::new(),
        };
        return_device(&mut Kernel::new(Some(&sandbox))?, &self.0, &search)
    }
}
