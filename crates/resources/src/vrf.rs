//! A routing domain (VRF) inside the container, with an interface in it.
//!
//! Joining a VRF switches the interface off and on: the kernel forgets its
//! routes and may forget its IPv6 addresses. Both are noted before and put
//! back after, the routes into the VRF's table.

use std::collections::BTreeSet;
use std::time::Duration;

use podwire_netlink::route::address::{AddAddress, Address};
use podwire_netlink::route::family::{Family, Scope, TABLE_MAIN};
use podwire_netlink::route::link_change::{ChangeLink, DeleteLink};
use podwire_netlink::route::link_kind::LinkKind;
use podwire_netlink::route::link_new::{End, NewKind, NewLink};
use podwire_netlink::route::monitor::Settled;
use podwire_netlink::route::routes::{AddRoute, RouteFilter, RouteMode, RouteProtocol};
use podwire_netlink::route::{Link, MacAddress, Route, RouteSocket};
use podwire_plugin::{Attachment, Belongs, Difference, Made, OwnerMark, Resource};
use podwire_spec::error::Error;

use crate::common_lock;
use crate::kernel::{Kernel, refused};
use crate::whose::{Whose, whose};

/// Held while a VRF is looked for, made, joined, left and removed, so that
/// none is removed from under somebody who joins: an instant each.
const LOCK: &str = "/run/podwire/plugin/vrf/lock";
/// How long IPv6 addresses may take to be usable again.
const SETTLE_WAIT: Duration = Duration::from_secs(5);
/// `default`, `main` and `local`: every packet's tables.
const RESERVED: std::ops::RangeInclusive<u32> = 253..=255;
/// `RTPROT_RA`: made and renewed by the kernel with what routers announce.
const ANNOUNCED: RouteProtocol = RouteProtocol(9);

/// An interface's place in a VRF.
#[derive(Debug)]
pub struct Vrf {
    owner: OwnerMark,
    ifname: String,
    mac: Option<MacAddress>,
    name: String,
    table: Option<u32>,
    done: Done,
}

/// What this call did, to be taken back when it fails.
#[derive(Debug, Default)]
struct Done {
    created: bool,
    joined: bool,
    kept: Kept,
}

/// What joining makes the kernel forget.
#[derive(Debug, Default, Clone)]
struct Kept {
    addresses: Vec<Address>,
    routes: Vec<Route>,
}

impl Vrf {
    /// The attachment's interface in the VRF of this name; one that isn't there is made
    /// with this table, or else with a free one.
    pub fn new(attachment: &Attachment, name: &str, table: Option<u32>) -> Self {
        let (ifname, name) = (attachment.ifname().as_str().to_owned(), name.to_owned());
        Self { owner: attachment.owner, ifname, mac: None, name, table, done: Done::default() }
    }

    /// The MAC address that the interface had when it was made: tells it from
    /// a stranger's on DEL.
    #[must_use]
    pub const fn with_mac(mut self, mac: Option<MacAddress>) -> Self {
        self.mac = mac;
        self
    }

    /// The VRF, made if it isn't there.
    fn domain(&mut self, socket: &mut RouteSocket) -> Result<(Link, u32), Error> {
        if let Some(link) = socket.link_by_name(&self.name).map_err(refused)? {
            return self.accept(link);
        }
        let table = match self.table {
            Some(table) => table,
            None => free_table(socket)?,
        };
        let new = NewLink::new(End::new(&self.name), NewKind::Vrf { table }).up();
        match socket.create_link(&new) {
            Ok(link) => {
                self.done.created = true;
                Ok((link, table))
            }
            Err(error) if error.is_exists() => {
                // Somebody else was faster.
                let link = socket.link_by_name(&self.name).map_err(refused)?;
                self.accept(link.ok_or_else(|| refused(error))?)
            }
            Err(error) if error.is_unsupported() => {
                Err(refused(error).with_details("the kernel needs VRF devices (module vrf)"))
            }
            Err(error) => Err(refused(error)),
        }
    }

    fn accept(&self, link: Link) -> Result<(Link, u32), Error> {
        let table = table_of(&link).ok_or_else(|| {
            Error::config(format!("Netlink {} is not a VRF", self.name)).with_details(format!(
                "the container has an interface of this name and kind {}; choose another vrfname",
                link.kind_name()
            ))
        })?;
        match self.table.filter(|wanted| *wanted != table) {
            Some(wanted) => Err(Error::config(format!(
                "VRF {} already exists with different routing table {table}, not {wanted}",
                self.name
            ))),
            None => Ok((link, table)),
        }
    }

    fn join(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let interface = kernel.container_link(&self.ifname)?;
        let socket = kernel.container()?;
        let (domain, table) = self.domain(socket)?;
        match interface.master {
            Some(master) if master == domain.index => return Ok(Made::Found),
            Some(master) => {
                let other = socket.link_by_index(master).map_err(refused)?;
                let other = other.map_or_else(|| format!("number {master}"), |link| link.name);
                return Err(Error::config(format!(
                    "interface {} already has a master set: {other}",
                    self.ifname
                )));
            }
            None => {}
        }
        self.done.kept = keep(socket, &interface)?;
        let change = ChangeLink::new(interface.device()).master(domain.index);
        socket.apply(&change).map_err(refused)?;
        self.done.joined = true;
        let kept = self.done.kept.clone();
        restore(kernel, &interface, &kept, table)?;
        Ok(Made::Created)
    }

    /// Leaves as if it had never been.
    fn take_back(&mut self, kernel: &mut Kernel) -> Result<(), Error> {
        let done = std::mem::take(&mut self.done);
        if done.joined {
            let interface = kernel.container_link(&self.ifname)?;
            let change = ChangeLink::new(interface.device()).no_master();
            kernel.container()?.apply(&change).map_err(refused)?;
            restore(kernel, &interface, &done.kept, TABLE_MAIN)?;
        }
        if done.created {
            remove_unused(kernel.container()?, &self.name)?;
        }
        Ok(())
    }
}

fn table_of(link: &Link) -> Option<u32> {
    match link.kind {
        Some(LinkKind::Vrf { table }) => Some(table),
        _ => None,
    }
}

/// The first table that neither a VRF nor a rule nor a route uses.
fn free_table(socket: &mut RouteSocket) -> Result<u32, Error> {
    let links = socket.links_of_kind("vrf").map_err(refused)?;
    let routes = socket.routes(RouteFilter::default()).map_err(refused)?;
    let mut used: BTreeSet<u32> = links.iter().filter_map(table_of).collect();
    used.extend(routes.iter().map(|route| route.table));
    used.extend(socket.rules(Family::V4).map_err(refused)?.iter().map(|rule| rule.table));
    // A kernel without IPv6 has no such rules.
    used.extend(socket.rules(Family::V6).unwrap_or_default().iter().map(|rule| rule.table));
    first_free(&used)
        .ok_or_else(|| Error::internal("every routing table of the container is in use"))
}

fn first_free(used: &BTreeSet<u32>) -> Option<u32> {
    (1..=u32::MAX).find(|table| !RESERVED.contains(table) && !used.contains(table))
}

/// What the interface has that the kernel won't make again by itself.
fn keep(socket: &mut RouteSocket, interface: &Link) -> Result<Kept, Error> {
    let addresses = socket.addresses_of(interface.device()).map_err(refused)?;
    let filter = RouteFilter {
        table: Some(TABLE_MAIN),
        output: Some(interface.index),
        ..RouteFilter::default()
    };
    let routes = socket.routes(filter).map_err(refused)?;
    Ok(Kept { addresses: lasting(addresses), routes: replayable(routes, interface.index) })
}

/// IPv6 addresses that somebody has set: link-local ones come by themselves.
fn lasting(addresses: Vec<Address>) -> Vec<Address> {
    let is_kept = |one: &Address| one.address.addr().is_ipv6() && one.scope != Scope::LINK;
    addresses.into_iter().filter(is_kept).collect()
}

/// Routes that somebody has set, what a gateway is reached by before it. Those
/// of the kernel come with the addresses, into the right table.
fn replayable(routes: Vec<Route>, link: u32) -> Vec<Route> {
    let is_set = |route: &Route| {
        route.output == Some(link)
            && route.protocol != RouteProtocol::KERNEL
            && route.protocol != ANNOUNCED
    };
    let mut routes: Vec<_> = routes.into_iter().filter(is_set).collect();
    routes.sort_by_key(|route| route.gateway.is_some());
    routes
}

fn restore(kernel: &mut Kernel, interface: &Link, kept: &Kept, table: u32) -> Result<(), Error> {
    let device = interface.device();
    let socket = kernel.container()?;
    let there = socket.addresses_of(device).map_err(refused)?;
    let mut again = false;
    for address in &kept.addresses {
        if there.iter().any(|one| one.address == address.address) {
            continue;
        }
        again = true;
        // It has been checked for duplicates before.
        let add = AddAddress::new(device, address.address).scope(address.scope);
        let add = add.lifetimes(address.preferred, address.valid).no_dad();
        match socket.apply(&add) {
            Err(error) if !error.is_exists() => return Err(refused(error)),
            _ => {}
        }
    }
    if again {
        match kernel.settle_addresses(device, SETTLE_WAIT)? {
            Settled::All => {}
            outcome => {
                return Err(Error::internal(format!(
                    "failed getting local/host addresses for {}: {outcome}",
                    interface.name
                )));
            }
        }
    }
    let socket = kernel.container()?;
    for route in &kept.routes {
        let mut route = route.clone();
        route.table = table;
        let mode = RouteMode::Replace;
        let add = AddRoute { route: &route, mode, output_name: &interface.name };
        socket.apply(&add).map_err(refused)?;
    }
    Ok(())
}

/// Removes a VRF that nothing is in.
fn remove_unused(socket: &mut RouteSocket, name: &str) -> Result<(), Error> {
    let Some(domain) = socket.link_by_name(name).map_err(refused)? else { return Ok(()) };
    if table_of(&domain).is_none() {
        return Ok(());
    }
    let links = socket.links().map_err(refused)?;
    if links.iter().any(|link| link.master == Some(domain.index)) {
        return Ok(());
    }
    match socket.apply(&DeleteLink(domain.device())) {
        // Somebody else was faster.
        Err(error) if !error.is_not_found() => Err(refused(error)),
        _ => Ok(()),
    }
}

/// Whether the kernel has VRFs: it is asked for one without a table, which it
/// refuses in another way then.
///
/// # Errors
/// Code 50 if it hasn't.
pub fn available(kernel: &mut Kernel) -> Result<(), Error> {
    let new = NewLink::new(End::new("podwire-trial"), NewKind::Vrf { table: 0 });
    match kernel.host()?.apply(&new) {
        Err(error) if error.is_unsupported() => {
            Err(Error::unavailable(format!("VRFs can't be made: {error}"))
                .with_details("the kernel needs VRF devices (module vrf)"))
        }
        Err(error) if error.is_permission() => {
            Err(Error::unavailable(format!("VRFs can't be made: {error}")))
        }
        _ => Ok(()),
    }
}

impl Resource<Kernel> for Vrf {
    fn describe(&self) -> String {
        format!("interface {} in VRF {} of the container", self.ifname, self.name)
    }

    fn belongs(&self) -> Belongs {
        Belongs::Attachment
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let _alone = common_lock::alone(LOCK, "changing a VRF")?;
        let made = self.join(kernel);
        if made.is_err()
            && let Err(error) = self.take_back(kernel)
        {
            log::warn!("could not take back {}: {error}", self.describe());
        }
        made
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let socket = kernel.container()?;
        let object = format!("VRF {} in the container", self.name);
        let Some(domain) = socket.link_by_name(&self.name).map_err(refused)? else {
            return Ok(vec![Difference::missing(object)]);
        };
        let Some(table) = table_of(&domain) else {
            return Ok(vec![Difference::new(object, "a VRF", domain.kind_name())]);
        };
        let mut found = Vec::new();
        if let Some(wanted) = self.table.filter(|wanted| *wanted != table) {
            found.push(Difference::new(&*object, format!("table {wanted}"), table.to_string()));
        }
        if !domain.is_up() {
            found.push(Difference::new(&*object, "up", "down"));
        }
        let interface = socket.link_by_name(&self.ifname).map_err(refused)?;
        let name = format!("interface {} in the container", self.ifname);
        match interface {
            None => found.push(Difference::missing(name)),
            Some(link) if link.master != Some(domain.index) => {
                let place = link.master.map_or_else(
                    || "in none".to_owned(),
                    |master| format!("in interface number {master}"),
                );
                found.push(Difference::new(name, format!("in VRF {}", self.name), place));
            }
            Some(_) => {}
        }
        Ok(found)
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        if !kernel.has_sandbox() {
            return Ok(());
        }
        let _alone = common_lock::alone(LOCK, "changing a VRF")?;
        let socket = kernel.container()?;
        let Some(domain) = socket.link_by_name(&self.name).map_err(refused)? else {
            return Ok(());
        };
        let interface = socket.link_by_name(&self.ifname).map_err(refused)?;
        if let Some(interface) = interface.filter(|link| link.master == Some(domain.index)) {
            if whose(kernel, &interface, &self.owner, self.mac)? == Whose::AnothersOwn {
                return Ok(());
            }
            let change = ChangeLink::new(interface.device()).no_master();
            match kernel.container()?.apply(&change) {
                Err(error) if !error.is_not_found() => return Err(refused(error)),
                _ => {}
            }
        }
        remove_unused(kernel.container()?, &self.name)
    }

    fn undo(&mut self, kernel: &mut Kernel) -> Result<(), Error> {
        let _alone = common_lock::alone(LOCK, "changing a VRF")?;
        self.take_back(kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b124_reserved_and_used_tables_are_skipped() {
        assert_eq!(first_free(&BTreeSet::new()), Some(1));
        assert_eq!(first_free(&BTreeSet::from([1, 2, 4])), Some(3));
        assert_eq!(first_free(&(1..253).collect()), Some(256));
    }

    #[test]
    fn b124_what_was_set_is_replayed_and_what_the_kernel_makes_is_not() {
        let route = |text: &str, gateway: Option<&str>, protocol| {
            let mut route = Route::new(text.parse().unwrap());
            route.gateway = gateway.map(|text| text.parse().unwrap());
            route.protocol = protocol;
            route.output = Some(7);
            route
        };
        let mut elsewhere = route("10.9.0.0/16", None, RouteProtocol::BOOT);
        elsewhere.output = Some(8);
        let routes = vec![
            route("0.0.0.0/0", Some("169.254.1.1"), RouteProtocol::BOOT),
            route("10.1.0.0/24", None, RouteProtocol::KERNEL),
            route("169.254.1.1/32", None, RouteProtocol::STATIC),
            route("::/0", Some("fe80::1"), ANNOUNCED),
            elsewhere,
        ];
        let shown: Vec<_> = replayable(routes, 7).iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["169.254.1.1/32", "default via 169.254.1.1"]);
    }
}
