//! A device of the host that a container has for itself.
//!
//! # Moving
//!
//! One request moves the device, gives it its name in the container, and writes
//! its old name as its alias: the kernel renames it behind the move, so that
//! nobody on the host sees the new name (udev, `NetworkManager`), and a name
//! that is taken on either side isn't needed for an instant. There is no moment
//! at which a killed call leaves a device that doesn't tell where it belongs.
//!
//! # Finding it again
//!
//! A container may have renamed it, and the kernel brings a physical device home
//! by itself when the namespace ends, under the container's name for it. So it
//! is looked for in both, by its alias together with what [`record`] tells of it.

mod collection;
mod network;
mod record;
mod search;
mod selector;

use std::os::fd::AsFd;

use podwire_netlink::route::Link;
use podwire_netlink::route::address::DeleteAddress;
use podwire_netlink::route::link_change::ChangeLink;
use podwire_plugin::{Attachment, Belongs, Difference, Made, OwnerMark, Resource, Sandbox};
use podwire_spec::error::Error;
use podwire_spec::id::AttachmentKey;
use podwire_spec::result::CniResult;

use crate::kernel::{Kernel, refused};
use crate::sandbox_path;

pub use collection::MovedDevices;
pub use network::{CarriedNetwork, DeviceNetwork};
pub use record::DIRECTORY;
pub use selector::Selector;

use record::Record;
use search::{Search, Where};

/// Reads a record, for nothing but to see whether it can be read.
pub(crate) fn parse(text: &str) -> Result<(), Error> {
    Record::parse(text).map(drop)
}

/// The device of an attachment.
pub struct MovedDevice {
    owner: OwnerMark,
    key: AttachmentKey,
    sandbox: String,
    /// Which one; only ADD must know.
    pub selector: Option<Selector>,
    /// Its MAC address, as prevResult tells it.
    pub recorded_mac: Option<String>,
    /// Its namespace, as prevResult tells it.
    pub recorded_sandbox: Option<String>,
}

impl MovedDevice {
    /// The device of an attachment, with what prevResult says of it.
    pub fn new(
        attachment: &Attachment,
        selector: Option<Selector>,
        result: Option<&CniResult>,
    ) -> Self {
        let ifname = attachment.ifname().as_str();
        let recorded = result.and_then(|result| result.interface_in_sandbox(ifname));
        let recorded = recorded.map(|(_, interface)| interface);
        Self {
            owner: attachment.owner,
            key: attachment.key.clone(),
            sandbox: attachment.sandbox_text(),
            selector,
            recorded_mac: recorded
                .and_then(|found| found.mac.clone())
                .filter(|mac| !mac.is_empty()),
            recorded_sandbox: recorded.and_then(|found| found.sandbox.clone()),
        }
    }

    fn ifname(&self) -> &str {
        self.key.ifname.as_str()
    }

    fn search(&self) -> Result<Search, Error> {
        Ok(Search {
            record: record::find(&self.owner)?,
            ifname: self.ifname().to_owned(),
            configured: match &self.selector {
                Some(Selector::Name(name)) => Some(name.clone()),
                _ => None,
            },
            mac: self.recorded_mac.clone(),
            of_others: record::names_of_others(&self.owner),
        })
    }

    /// The device on the host, one that came back by itself included.
    fn find_on_host(&self, kernel: &mut Kernel) -> Result<Link, Error> {
        let selector = self
            .selector
            .as_ref()
            .ok_or_else(|| Error::internal("a bug in Podwire: no device was asked for"))?;
        if let Some(link) = selector.find(kernel)? {
            // Found otherwise than by name, it may have the last container's.
            return match record::of_stray(&link) {
                Some(record) => recover(kernel, &link, &record),
                None => Ok(link),
            };
        }
        if let Selector::Name(name) = selector
            && let Some(stray) = search::stray(kernel, name)?
        {
            return match record::of_stray(&stray) {
                Some(record) => recover(kernel, &stray, &record),
                None => rename(kernel, &stray, name, ""),
            };
        }
        Err(Error::internal(format!("failed to find host device: there is no {selector}"))
            .with_details("it is missing, or another container has it"))
    }

    /// Moves the device into the container; where that fails half-way, it is
    /// brought back.
    fn move_in(&self, kernel: &mut Kernel, link: &Link, record: &Record) -> Result<(), Error> {
        let (socket, sandbox) = kernel.host_and_sandbox()?;
        let change = ChangeLink::new(link.device())
            .namespace(sandbox.as_fd())
            .name(self.ifname())
            .alias(&link.name);
        let Err(error) = socket.apply(&change) else { return Ok(()) };
        let error = if error.is_exists() {
            taken(self.ifname())
        } else if error.is_invalid() {
            refused(error).with_details("the kernel doesn't let devices of this kind move")
        } else {
            refused(error)
        };
        // Moved, and then not renamed.
        let inside = kernel.container()?.links().map_err(refused)?;
        let inside = inside.into_iter().find(|inside| {
            inside.alias == link.alias && inside.mac == link.mac && inside.name == link.name
        });
        if let Some(inside) = inside.filter(|inside| inside.kind == link.kind) {
            bring_home(kernel, &inside, record)?;
        }
        Err(error)
    }
}

/// Renames a device of the host that is switched off, or that the kernel lets
/// be renamed while it is on.
fn rename(kernel: &mut Kernel, link: &Link, name: &str, alias: &str) -> Result<Link, Error> {
    let change = |device| ChangeLink::new(device).name(name).alias(alias);
    let host = kernel.host()?;
    match host.apply(&change(link.device())) {
        Err(error) if error.is_busy() => {
            host.apply(&ChangeLink::new(link.device()).down()).map_err(refused)?;
            host.apply(&change(link.device())).map_err(refused)?;
            host.apply(&ChangeLink::new(link.device()).up()).map_err(refused)?;
        }
        Err(error) if error.is_exists() => return Err(home_taken(name)),
        outcome => outcome.map_err(refused)?,
    }
    kernel.host_link(name)
}

/// Gives a device that came back by itself its name, and what it had.
fn recover(kernel: &mut Kernel, stray: &Link, record: &Record) -> Result<Link, Error> {
    let alias = record.alias.as_deref().unwrap_or_default();
    let link = rename(kernel, stray, &record.name, alias)?;
    restore(kernel, &link, record);
    kernel.host_link(&record.name)
}

/// Moves a device from the container to the host, under its old name.
fn bring_home(kernel: &mut Kernel, inside: &Link, record: &Record) -> Result<(), Error> {
    // Looked at before, since a device that arrives and can't have its name
    // would have the container's.
    if kernel.host()?.link_by_name(&record.name).map_err(refused)?.is_some() {
        return Err(home_taken(&record.name));
    }
    let (socket, home) = kernel.container_and_home()?;
    let change = ChangeLink::new(inside.device())
        .namespace(home.as_fd())
        .name(&record.name)
        .alias(record.alias.as_deref().unwrap_or_default());
    match socket.apply(&change) {
        Err(error) if error.is_exists() => return Err(home_taken(&record.name)),
        outcome => outcome.map_err(refused)?,
    }
    let link = kernel.host_link(&record.name)?;
    restore(kernel, &link, record);
    Ok(())
}

/// Gives a device back what it had on the host. It is back already, and one
/// that can't have its MTU is no reason to keep the attachment.
fn restore(kernel: &mut Kernel, link: &Link, record: &Record) {
    let mut changes = Vec::new();
    if let Some(mac) = record.mac.filter(|mac| link.mac != Some(*mac)) {
        changes.push(ChangeLink::new(link.device()).mac(mac));
    }
    if record.mtu != link.mtu && record.mtu != 0 {
        changes.push(ChangeLink::new(link.device()).mtu(record.mtu));
    }
    if record.up && !link.is_up() {
        changes.push(ChangeLink::new(link.device()).up());
    }
    for change in changes {
        let outcome = kernel.host().and_then(|host| host.apply(&change).map_err(refused));
        if let Err(error) = outcome {
            log::warn!("{} is back on the host, but: {error}", record.name);
        }
    }
}

/// Brings a device home from wherever it is, as often as it takes, and forgets
/// it. One that is nowhere is gone.
fn return_device(kernel: &mut Kernel, owner: &OwnerMark, search: &Search) -> Result<(), Error> {
    match search.find(kernel)? {
        Where::Inside(link) => {
            let record = search.origin(&link)?;
            bring_home(kernel, &link, &record)?;
        }
        Where::Stray(link) => {
            let record = search.origin(&link)?;
            recover(kernel, &link, &record)?;
        }
        Where::Home(link) => {
            if let Some(record) = &search.record {
                restore(kernel, &link, record);
            }
        }
        Where::Nowhere => {
            if search.record.as_ref().is_some_and(|record| record.physical) {
                // Hardware outlives its namespace: it comes back when nobody
                // holds that any more, and then must be known.
                log::warn!("the device is neither in the container nor on the host yet");
                return Ok(());
            }
        }
    }
    record::remove(owner);
    Ok(())
}

/// The kernel with the namespace that the device was moved to, where the
/// runtime names none.
fn recorded_kernel(kernel: &Kernel, search: &Search) -> Result<Option<Kernel>, Error> {
    match &search.record {
        Some(record) if !kernel.has_sandbox() => {
            Kernel::new(Some(&Sandbox::open(&record.sandbox)?)).map(Some)
        }
        _ => Ok(None),
    }
}

fn taken(ifname: &str) -> Error {
    Error::already_exists(format!("interface {ifname} already exists in the container"))
        .with_details("nothing was changed; DEL the attachment first, or choose another CNI_IFNAME")
}

fn home_taken(name: &str) -> Error {
    Error::internal(format!(
        "the device can't return as {name}: the host has another interface of that name"
    ))
    .with_details("rename or remove that one, and DEL again; the device stays where it is")
}

impl Resource<Kernel> for MovedDevice {
    fn describe(&self) -> String {
        match &self.selector {
            Some(selector) => format!("{selector} as {}", self.ifname()),
            None => format!("the host's device as {}", self.ifname()),
        }
    }

    /// Whether the address is in use is told by [`DeviceAddresses`].
    fn belongs(&self) -> Belongs {
        Belongs::Attachment
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        if kernel.container()?.link_by_name(self.ifname()).map_err(refused)?.is_some() {
            return Err(taken(self.ifname()));
        }
        let search = self.search()?;
        if search.record.is_some()
            && let Where::Inside(link) = search.find(kernel)?
        {
            return Err(Error::internal(format!(
                "the device of an earlier ADD of this attachment is still in the container, as {}",
                link.name
            ))
            .with_details("DEL the attachment before it is added again"));
        }
        let link = self.find_on_host(kernel)?;
        let network = DeviceNetwork::of(kernel.host()?, &link)?;
        // Whoever had it has it no more: a late DEL must not take it from us.
        record::remove_others(&self.owner, &link.name);
        let record = Record::of(&link, &self.key, self.sandbox.clone());
        record.write(&self.owner)?;
        if let Err(error) = self.move_in(kernel, &link, &record) {
            record::remove(&self.owner);
            return Err(error);
        }
        kernel.carry(network);
        let inside = kernel.container_link(self.ifname())?;
        kernel.remember_child(inside);
        Ok(Made::Created)
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let mut found = Vec::new();
        let name = format!("interface {} in the container", self.ifname());
        sandbox_path::compare(kernel, self.recorded_sandbox.as_deref(), self.ifname(), &mut found)?;
        let Some(link) = kernel.container()?.link_by_name(self.ifname()).map_err(refused)? else {
            found.push(Difference::missing(name));
            return Ok(found);
        };
        let mac = link.mac.map(|mac| mac.to_string()).unwrap_or_default();
        if let Some(expected) = &self.recorded_mac
            && !mac.eq_ignore_ascii_case(expected)
        {
            found.push(Difference::new(format!("{name}, MAC address"), expected, mac));
        }
        // What brings the device home when our record of it is lost.
        let home = record::read(&self.owner).map(|record| record.name);
        let is_home = |alias: &String| home.as_ref().is_none_or(|home| home == alias);
        if !link.alias.as_ref().is_some_and(is_home) {
            let expected = match &home {
                Some(home) => format!("{home}, its name on the host"),
                None => "its name on the host".to_owned(),
            };
            let actual = link.alias.as_deref().unwrap_or("none");
            found.push(Difference::new(format!("{name}, alias"), expected, actual));
        }
        Ok(found)
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        let search = self.search()?;
        let mut recorded = recorded_kernel(kernel, &search)?;
        return_device(recorded.as_mut().unwrap_or(kernel), &self.owner, &search)
    }

    /// A failed ADD gives back the addresses and routes too, which moving took.
    fn undo(&mut self, kernel: &mut Kernel) -> Result<(), Error> {
        let record = record::read(&self.owner);
        self.remove(kernel)?;
        let network = kernel.carried().cloned().unwrap_or_default();
        let Some(record) = record else { return Ok(()) };
        let link = kernel.host_link(&record.name)?;
        network.give(kernel.host()?, link.device())
    }
}

/// The addresses of the device in the container: they are in use as long as it
/// is there. Taken away before it is brought home, so that they return to their
/// pool even when the host can't have the device back yet.
pub struct DeviceAddresses(
    /// The device.
    pub MovedDevice,
);

impl Resource<Kernel> for DeviceAddresses {
    fn describe(&self) -> String {
        format!("addresses of {}", self.0.ifname())
    }

    fn belongs(&self) -> Belongs {
        Belongs::AttachmentAddress
    }

    fn make(&mut self, _: &mut Kernel) -> Result<Made, Error> {
        Ok(Made::Found)
    }

    /// They are compared with the interface.
    fn check(&self, _: &mut Kernel) -> Result<Vec<Difference>, Error> {
        Ok(Vec::new())
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        let search = self.0.search()?;
        let mut recorded = recorded_kernel(kernel, &search)?;
        let kernel = recorded.as_mut().unwrap_or(kernel);
        let Where::Inside(link) = search.find(kernel)? else { return Ok(()) };
        let container = kernel.container()?;
        for one in container.addresses_of(link.device()).map_err(refused)? {
            let delete = DeleteAddress { device: link.device(), address: one.address };
            match container.apply(&delete) {
                Err(error) if !error.is_not_found() => return Err(refused(error)),
                _ => {}
            }
        }
        Ok(())
    }
}
