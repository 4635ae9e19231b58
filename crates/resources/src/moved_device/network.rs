//! Addresses, routes and rules that a device has on the host.

use podwire_netlink::route::address::{AddAddress, Address, AddressFlags};
use podwire_netlink::route::family::{Family, Scope, TABLE_LOCAL};
use podwire_netlink::route::routes::{AddRoute, Route, RouteFilter, RouteMode, RouteProtocol};
use podwire_netlink::route::rule::{AddRule, Rule};
use podwire_netlink::route::{Change, Device, Link, RouteSocket};
use podwire_plugin::{Belongs, Difference, Made, Resource};
use podwire_spec::error::Error;

use crate::kernel::{Kernel, refused};

/// Routes that router advertisements made (`RTPROT_RA`, linux/rtnetlink.h).
const FROM_ROUTERS: RouteProtocol = RouteProtocol(9);

/// What moving a device takes from it.
#[derive(Debug, Clone, Default)]
pub struct DeviceNetwork {
    /// Its addresses that are valid beyond the link. IPv6 addresses with a
    /// lifetime are left out: the kernel or a DHCP client finds new ones.
    pub addresses: Vec<Address>,
    /// Its routes, those left out that the kernel makes by itself.
    pub routes: Vec<Route>,
    /// Rules that lead packets from its addresses to its routes.
    pub rules: Vec<Rule>,
}

impl DeviceNetwork {
    /// What a device of the host has.
    ///
    /// # Errors
    /// The kernel refused to tell.
    pub(super) fn of(host: &mut RouteSocket, link: &Link) -> Result<Self, Error> {
        let is_lasting = |one: &Address| {
            one.scope == Scope::UNIVERSE
                && (one.address.addr().is_ipv4() || one.flags.contains(AddressFlags::PERMANENT))
        };
        let mut addresses = host.addresses_of(link.device()).map_err(refused)?;
        addresses.retain(is_lasting);
        let filter = RouteFilter { output: Some(link.index), ..RouteFilter::default() };
        let mut routes = host.routes(filter).map_err(refused)?;
        routes.retain(|route| {
            let is_link_local = matches!(route.destination.addr(),
                std::net::IpAddr::V6(address) if address.is_unicast_link_local());
            let is_made = [RouteProtocol::KERNEL, FROM_ROUTERS].contains(&route.protocol);
            route.table != TABLE_LOCAL && !is_made && !is_link_local && route.next_hops.is_empty()
        });
        // What is on the link comes before what is behind a gateway on it.
        routes.sort_by_key(|route| std::cmp::Reverse((route.gateway.is_none(), route.scope.0)));
        let mut rules = Vec::new();
        if !routes.is_empty() {
            for family in [Family::V4, Family::V6] {
                rules.extend(host.rules(family).map_err(refused)?);
            }
        }
        rules.retain(|rule| {
            let is_from_here = rule.source.is_some_and(|source| {
                addresses.iter().any(|one| source.contains(&one.address.addr()))
            });
            let leads_here = routes.iter().any(|route| route.table == rule.table);
            is_from_here && leads_here && rule.table != TABLE_LOCAL
        });
        Ok(Self { addresses, routes, rules })
    }

    /// Gives all of it to a link that is switched on; what is there already is
    /// fine.
    ///
    /// # Errors
    /// The kernel's first refusal.
    pub(super) fn give(&self, socket: &mut RouteSocket, device: Device<'_>) -> Result<(), Error> {
        let addresses: Vec<_> = self
            .addresses
            .iter()
            .map(|one| AddAddress::new(device, one.address).no_dad())
            .collect();
        let routes: Vec<_> = self
            .routes
            .iter()
            .map(|route| Route { output: device.index(), ..route.clone() })
            .collect();
        let routes: Vec<_> = routes
            .iter()
            .map(|route| AddRoute { route, mode: RouteMode::Beside, output_name: device.name() })
            .collect();
        let rules: Vec<_> = self.rules.iter().map(AddRule).collect();
        let mut changes: Vec<&dyn Change> = Vec::new();
        changes.extend(addresses.iter().map(|change| change as &dyn Change));
        changes.extend(routes.iter().map(|change| change as &dyn Change));
        changes.extend(rules.iter().map(|change| change as &dyn Change));
        for outcome in socket.apply_each(&changes).map_err(refused)? {
            match outcome {
                Err(error) if error.is_exists() => {}
                outcome => outcome.map_err(refused)?,
            }
        }
        Ok(())
    }
}

/// The device's own addresses and routes, given to it again in the container
/// (`useInterfaceNetwork`). Needs the device to be switched on; gone with it.
pub struct CarriedNetwork {
    /// The device's name in the container.
    pub ifname: String,
}

impl Resource<Kernel> for CarriedNetwork {
    fn describe(&self) -> String {
        format!("the host's addresses and routes on {} in the container", self.ifname)
    }

    fn belongs(&self) -> Belongs {
        Belongs::Sandbox
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let Some(network) = kernel.carried().cloned() else { return Ok(Made::Found) };
        let index = kernel.container_index(&self.ifname)?;
        network.give(kernel.container()?, Device::new(index, &self.ifname))?;
        Ok(Made::Created)
    }

    /// The result lists them, and they are compared with it.
    fn check(&self, _: &mut Kernel) -> Result<Vec<Difference>, Error> {
        Ok(Vec::new())
    }

    fn remove(&self, _: &mut Kernel) -> Result<(), Error> {
        Ok(())
    }
}
