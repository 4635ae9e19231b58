//! The host's side of a point-to-point attachment: the end of the pair is the
//! container's gateway, and a route leads to each of its addresses.

use std::net::IpAddr;

use ipnet::IpNet;
use podwire_netlink::route::address::AddAddress;
use podwire_netlink::route::family::{Family, Scope, TABLE_MAIN};
use podwire_netlink::route::link_change::ChangeLink;
use podwire_netlink::route::routes::{AddRoute, Route, RouteFilter, RouteMode};
use podwire_netlink::route::{Change, Link};
use podwire_plugin::{Belongs, Difference, Made, Resource};
use podwire_spec::error::Error;
use podwire_sys::sysctl;

use crate::host_end::{host_end_of, owner_of_alias};
use crate::interface::NO_IPV6;
use crate::kernel::{Kernel, delete, refused};

/// Gateways and routes on the host's end. Gone with it.
pub struct HostRoutes {
    ifname: String,
    /// Addresses of the host's end, without a subnet.
    gateways: Vec<IpNet>,
    /// Where its routes lead.
    containers: Vec<IpNet>,
    /// The container takes IPv4 destinations for neighbours: the host answers
    /// for them.
    answers: bool,
}

impl HostRoutes {
    /// For the interface of a container and its addresses, each with the
    /// gateway that the container goes through.
    pub fn new(ifname: &str, paths: &[(IpNet, Option<IpAddr>)]) -> Self {
        let mut gateways: Vec<_> =
            paths.iter().filter_map(|(_, gateway)| gateway.map(IpNet::from)).collect();
        gateways.sort_unstable();
        gateways.dedup();
        Self {
            ifname: ifname.to_owned(),
            gateways,
            containers: paths.iter().map(|(address, _)| IpNet::from(address.addr())).collect(),
            answers: paths.iter().any(|(at, via)| via.is_none() && at.addr().is_ipv4()),
        }
    }

    /// Switches that must stand before addresses and packets.
    fn switches(&self, host: &Link) -> Result<(), Error> {
        if self.answers {
            for (key, value) in [
                (["net", "ipv4", "conf", &host.name, "proxy_arp"], "1"),
                // The kernel would wait a moment, for a better answer.
                (["net", "ipv4", "neigh", &host.name, "proxy_delay"], "0"),
            ] {
                sysctl::ensure(&key, value).map_err(|error| {
                    Error::internal(format!("answering for the container's neighbours: {error}"))
                        .with_details("or let IPAM give a gateway")
                })?;
            }
        }
        if self.containers.iter().any(|address| matches!(address, IpNet::V6(_))) {
            // Off where an administrator switched IPv6 off for new interfaces.
            let key = ["net", "ipv6", "conf", &host.name, "disable_ipv6"];
            match sysctl::ensure(&key, "0") {
                Err(error) if !error.is_missing() => {
                    return Err(Error::internal(format!("switching on IPv6: {error}")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The route to one of the container's addresses. Its scope decides which
    /// addresses of ours are the source: that of the link, or, where it has
    /// none, one that is valid beyond the host.
    fn route(&self, host: &Link, to: IpNet) -> Route {
        let has_source =
            self.gateways.iter().any(|gateway| gateway.addr().is_ipv4() == to.addr().is_ipv4());
        let mut route = Route::new(to);
        route.output = Some(host.index);
        route.scope = if has_source { Scope::HOST } else { Scope::LINK };
        route
    }
}

/// Adds a route, unless the host has another way to the very address: then
/// packets would go to a stranger, or a dead container (B100).
fn add_route(kernel: &mut Kernel, route: &Route, output_name: &str) -> Result<(), Error> {
    let add = AddRoute { route, mode: RouteMode::Exclusive, output_name };
    let mut attempts = 0;
    loop {
        match kernel.host()?.apply(&add) {
            Err(error) if error.is_exists() && attempts < 2 => {
                make_way(kernel, route.destination)?;
            }
            outcome => return outcome.map_err(refused),
        }
        attempts += 1;
    }
}

/// Removes what still routes the address although its container is gone;
/// an error names what can't be removed.
fn make_way(kernel: &mut Kernel, to: IpNet) -> Result<(), Error> {
    let filter =
        RouteFilter { family: Some(Family::of(to.addr())), table: Some(TABLE_MAIN), output: None };
    let routes = kernel.host()?.routes(filter).map_err(refused)?;
    let Some(other) = routes.iter().find(|route| route.destination == to) else {
        return Ok(());
    };
    let link = match other.output {
        Some(index) => kernel.host()?.link_by_index(index).map_err(refused)?,
        None => return Err(taken(to, "nowhere", "remove the route")),
    };
    // Its link has just gone, and the route with it.
    let Some(link) = link else { return Ok(()) };
    let owner = link.alias.as_deref().filter(|alias| owner_of_alias(alias).is_some());
    match owner {
        Some(_) if is_dying(kernel, &link)? => delete(kernel, &link),
        Some(alias) => Err(taken(
            to,
            &format!("{} ({alias})", link.name),
            "DEL that attachment first, or give this one another address",
        )),
        None => Err(taken(
            to,
            &link.name,
            "nothing proves that its user is gone: remove the route or the interface, or \
             give the container another address",
        )),
    }
}

/// Whether a pair's other end is in a namespace that nobody can enter any more
/// and that the kernel is still taking down.
fn is_dying(kernel: &mut Kernel, link: &Link) -> Result<bool, Error> {
    match link.parent_namespace.filter(|_| link.is_veth()) {
        Some(number) => {
            let host = kernel.host()?;
            host.is_namespace_alive(number).map(|alive| !alive).map_err(refused)
        }
        None => Ok(false),
    }
}

fn taken(to: IpNet, where_to: &str, advice: &str) -> Error {
    Error::internal(format!("the host's route to {} leads to {where_to}", to.addr()))
        .with_details(advice)
}

impl Resource<Kernel> for HostRoutes {
    fn describe(&self) -> String {
        format!("host side of {}", self.ifname)
    }

    fn belongs(&self) -> Belongs {
        Belongs::Sandbox
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let Some(host) = kernel.made_pair(&self.ifname).map(|pair| pair.host.clone()) else {
            return Err(Error::internal("a bug in Podwire: the pair is unknown"));
        };
        self.switches(&host)?;
        let up = ChangeLink::new(host.device()).up();
        let addresses: Vec<_> = self
            .gateways
            .iter()
            .map(|gateway| AddAddress::new(host.device(), *gateway).no_dad())
            .collect();
        let mut changes: Vec<&dyn Change> = vec![&up];
        changes.extend(addresses.iter().map(|change| change as &dyn Change));
        for outcome in kernel.host()?.apply_each(&changes).map_err(refused)? {
            match outcome {
                Err(error) if error.is_unsupported() => {
                    return Err(refused(error).with_details(NO_IPV6));
                }
                outcome => outcome.map_err(refused)?,
            }
        }
        for to in &self.containers {
            add_route(kernel, &self.route(&host, *to), &host.name)?;
        }
        Ok(Made::Created)
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let inside = kernel.container()?.link_by_name(&self.ifname).map_err(refused)?;
        // A missing pair is the pair's own difference.
        let Some(inside) = inside else { return Ok(Vec::new()) };
        let Some(host) = host_end_of(kernel, &inside)? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let there = kernel.host()?.addresses_of(host.device()).map_err(refused)?;
        for gateway in &self.gateways {
            if !there.iter().any(|one| one.address.addr() == gateway.addr()) {
                found.push(Difference::missing(format!(
                    "gateway address {} on {}",
                    gateway.addr(),
                    host.name
                )));
            }
        }
        let filter =
            RouteFilter { table: Some(TABLE_MAIN), output: Some(host.index), family: None };
        let routes = kernel.host()?.routes(filter).map_err(refused)?;
        for to in &self.containers {
            if !routes.iter().any(|route| route.destination == *to) {
                let name = format!("route to {} on {}", to.addr(), host.name);
                found.push(Difference::missing(name));
            }
        }
        if self.answers {
            let key = ["net", "ipv4", "conf", &host.name, "proxy_arp"];
            if sysctl::read(&key).is_ok_and(|value| value == "0") {
                found.push(Difference::new(format!("proxy ARP on {}", host.name), "on", "off"));
            }
        }
        Ok(found)
    }

    /// Goes with the pair.
    fn remove(&self, _: &mut Kernel) -> Result<(), Error> {
        Ok(())
    }
}
