//! Addresses, routes and switches of the container's interface.

use std::time::Duration;

use ipnet::IpNet;
use podwire_netlink::route::address::{AddAddress, Address};
use podwire_netlink::route::family::{Family, Scope, TABLE_MAIN};
use podwire_netlink::route::link::LinkFlags;
use podwire_netlink::route::link_change::ChangeLink;
use podwire_netlink::route::monitor::Settled as Outcome;
use podwire_netlink::route::routes::{AddRoute, Route, RouteFilter, RouteMode};
use podwire_netlink::route::{Change, Device};
use podwire_plugin::{Belongs, Difference, Made, Resource};
use podwire_spec::error::Error;
use podwire_spec::result::CniResult;
use podwire_sys::sysctl;

use crate::kernel::{Kernel, refused};

/// How long duplicate address detection may take where it was asked for.
const SETTLE_WAIT: Duration = Duration::from_secs(5);

/// Whether IPv6 addresses are probed for duplicates before they are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateDetection {
    /// Off: the address is ours by allocation, and usable at once.
    Off,
    /// On: wait until it has settled; a duplicate is an error.
    On,
    /// The interface's own setting is left alone.
    Kernel,
}

/// What the container's interface is to have. Gone with the interface.
pub struct Interface {
    /// Its name in the container.
    pub ifname: String,
    /// Its addresses.
    pub addresses: Vec<IpNet>,
    /// Its routes, gateways filled in.
    pub routes: Vec<Route>,
    /// Duplicate address detection.
    pub duplicate_detection: DuplicateDetection,
    /// Announce IPv4 addresses when the interface comes up (`arp_notify`).
    pub announce: bool,
    /// Announce IPv6 addresses so (`ndisc_notify`).
    pub announce_ipv6: bool,
    /// Leave it down.
    pub down: bool,
    /// Let the kernel make a route to each address's subnet.
    pub prefix_routes: bool,
}

impl Interface {
    /// What a result says of the interface: its addresses, and the routes,
    /// where one without `gw` goes through the first gateway of its family.
    pub fn from_result(result: &CniResult, ifname: &str) -> Self {
        let ips = result.container_addresses(ifname).addresses;
        let addresses: Vec<_> = ips.iter().map(|ip| ip.address).collect();
        let gateway = |family: Family| {
            ips.iter()
                .filter(|ip| Family::of(ip.address.addr()) == family)
                .find_map(|ip| ip.gateway)
        };
        let mut routes: Vec<_> = result
            .routes
            .iter()
            .map(|wanted| {
                let mut route = Route::new(wanted.dst);
                route.scope = wanted
                    .scope
                    .and_then(|scope| u8::try_from(scope).ok())
                    .map_or(Scope::UNIVERSE, Scope);
                // What is on the link has no gateway.
                let through = || gateway(route.family()).filter(|_| route.scope.0 < Scope::LINK.0);
                route.gateway = wanted.gw.or_else(through);
                route.priority = wanted.priority;
                route.table = wanted.table.unwrap_or(TABLE_MAIN);
                route.mtu = wanted.mtu;
                route.advertised_mss = wanted.advmss;
                route
            })
            .collect();
        let mut on_link = addresses.clone();
        on_link
            .extend(routes.iter().filter(|one| one.gateway.is_none()).map(|one| one.destination));
        for route in &mut routes {
            // A gateway that lies in no subnet is reached over the link all the
            // same: an IPv6 router in another prefix, a link-local one.
            route.on_link =
                route.gateway.is_some_and(|via| !on_link.iter().any(|net| net.contains(&via)));
        }
        Self {
            ifname: ifname.to_owned(),
            addresses,
            routes,
            duplicate_detection: DuplicateDetection::Off,
            announce: true,
            announce_ipv6: false,
            down: false,
            prefix_routes: true,
        }
    }

    fn has_ipv6(&self) -> bool {
        self.addresses.iter().any(|address| matches!(address, IpNet::V6(_)))
    }

    /// Switches that must stand before the first address.
    fn switches(&self) -> Result<(), Error> {
        let ipv6 = |name| ["net", "ipv6", "conf", &self.ifname, name];
        if self.announce {
            // Only tells neighbours sooner.
            let _ = sysctl::demand(&["net", "ipv4", "conf", &self.ifname, "arp_notify"], "1");
        }
        if self.announce_ipv6 {
            // Absent where IPv6 is off.
            let _ = sysctl::demand(&ipv6("ndisc_notify"), "1");
        }
        match self.duplicate_detection {
            // Absent where IPv6 is off; link-local addresses settle at once.
            DuplicateDetection::Off => drop(sysctl::demand(&ipv6("accept_dad"), "0")),
            DuplicateDetection::On => {
                for name in ["accept_dad", "enhanced_dad"] {
                    let _ = sysctl::ensure(&ipv6(name), "1");
                }
            }
            DuplicateDetection::Kernel => {}
        }
        if !self.has_ipv6() {
            return Ok(());
        }
        for key in [["net", "ipv6", "conf", "lo", "disable_ipv6"], ipv6("disable_ipv6")] {
            match sysctl::ensure(&key, "0") {
                Ok(_) => {}
                Err(error) if error.is_missing() => return Err(no_ipv6()),
                Err(error) => {
                    return Err(Error::internal(format!("switching on IPv6: {error}")));
                }
            }
        }
        // Only matters when the link goes down later; absent before 4.16.
        let _ = sysctl::demand(&ipv6("keep_addr_on_down"), "1");
        Ok(())
    }
}

impl Resource<Kernel> for Interface {
    fn describe(&self) -> String {
        format!("configuration of {} in the container", self.ifname)
    }

    fn belongs(&self) -> Belongs {
        Belongs::Sandbox
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        kernel.in_sandbox(|| self.switches())??;
        if self.down {
            return Ok(Made::Found);
        }
        let index = kernel.container_index(&self.ifname)?;
        let device = Device::new(index, &self.ifname);
        let addresses: Vec<_> = self
            .addresses
            .iter()
            .map(|address| {
                let add = AddAddress::new(device, *address);
                let add = if self.prefix_routes { add } else { add.no_prefix_route() };
                match self.duplicate_detection {
                    DuplicateDetection::Off => add.no_dad(),
                    _ => add,
                }
            })
            .collect();
        let up = ChangeLink::new(device).up();
        for route in &mut self.routes {
            route.output = Some(index);
        }
        let routes: Vec<_> = self
            .routes
            .iter()
            .map(|route| AddRoute { route, mode: RouteMode::Beside, output_name: &self.ifname })
            .collect();
        // Addresses, up, routes: in one send, since each needs what stands
        // before it and the first refusal ends the ADD.
        let mut changes: Vec<&dyn Change> = Vec::new();
        changes.extend(addresses.iter().map(|change| change as &dyn Change));
        changes.push(&up);
        let before_routes = changes.len();
        changes.extend(routes.iter().map(|change| change as &dyn Change));
        let outcomes = kernel.container()?.apply_each(&changes).map_err(refused)?;
        for (position, outcome) in outcomes.into_iter().enumerate() {
            match outcome {
                // The kernel made the very route with the address.
                Err(error) if position >= before_routes && error.is_exists() => {}
                Err(error) if error.is_unsupported() && self.has_ipv6() => {
                    return Err(refused(error).with_details(NO_IPV6));
                }
                outcome => outcome.map_err(refused)?,
            }
        }
        Ok(Made::Created)
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let Some(link) = kernel.container()?.link_by_name(&self.ifname).map_err(refused)? else {
            // A missing interface is the interface's own difference.
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        if !self.down && !link.is_up() {
            found.push(Difference::new(
                format!("interface {} in the container", self.ifname),
                "up",
                "down",
            ));
        }
        let there = kernel.container()?.addresses_of(link.device()).map_err(refused)?;
        self.compare_addresses(&there, &mut found);
        if !self.routes.is_empty() {
            let filter = RouteFilter { output: Some(link.index), ..RouteFilter::default() };
            let there = kernel.container()?.routes(filter).map_err(refused)?;
            self.compare_routes(&there, &mut found);
        }
        Ok(found)
    }

    fn remove(&self, _: &mut Kernel) -> Result<(), Error> {
        Ok(())
    }
}

impl Interface {
    fn compare_addresses(&self, there: &[Address], found: &mut Vec<Difference>) {
        for wanted in &self.addresses {
            let name = format!("address {wanted} on {} in the container", self.ifname);
            match there.iter().find(|address| address.address.addr() == wanted.addr()) {
                None => found.push(Difference::missing(name)),
                Some(address) if address.address.prefix_len() != wanted.prefix_len() => {
                    found.push(Difference::new(
                        name,
                        format!("prefix length {}", wanted.prefix_len()),
                        address.address.prefix_len().to_string(),
                    ));
                }
                Some(address) if address.is_duplicate() => {
                    found.push(Difference::new(name, "usable", "a duplicate of another host's"));
                }
                Some(_) => {}
            }
        }
    }

    /// Each route must exist in its own table. A chained plugin may have
    /// moved it to another table (sbr, vrf) or given it another metric: where
    /// it lies says nothing about whether it works, so without an explicit
    /// table any will do; and a default route that was moved may lead by another
    /// gateway (`gateways` of sbr).
    fn compare_routes(&self, there: &[Route], found: &mut Vec<Difference>) {
        for wanted in &self.routes {
            let matches = |route: &&Route| {
                route.destination == wanted.destination
                    && (wanted.table == TABLE_MAIN || route.table == wanted.table)
                    && (wanted.gateway.is_none()
                        || route.gateway == wanted.gateway
                        || wanted.is_default() && route.table != wanted.table)
            };
            if !there.iter().any(|route| matches(&route)) {
                let via = wanted.gateway.map(|via| format!(" via {via}")).unwrap_or_default();
                found.push(Difference::missing(format!(
                    "route to {}{via} on {} in the container",
                    wanted.destination, self.ifname
                )));
            }
        }
    }
}

/// Waits until the IPv6 addresses of the container's interface are usable,
/// where duplicate address detection was asked for. Made when the interface
/// is connected: nobody answers before.
pub struct Settled {
    /// The interface.
    pub ifname: String,
}

impl Resource<Kernel> for Settled {
    fn describe(&self) -> String {
        format!("duplicate address detection on {} in the container", self.ifname)
    }

    fn belongs(&self) -> Belongs {
        Belongs::Sandbox
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let link = kernel.container_link(&self.ifname)?;
        // Without a carrier the kernel asks nobody, and there is no end to wait
        // for; it asks when there is one.
        if !link.flags.contains(LinkFlags::LOWER_UP) {
            return Ok(Made::Found);
        }
        match kernel.settle_addresses(link.device(), SETTLE_WAIT)? {
            Outcome::All => Ok(Made::Found),
            outcome @ Outcome::Duplicate(_) => {
                Err(Error::internal(format!("{outcome} (dadfailed)"))
                    .with_details("another host on the network has the address"))
            }
            outcome @ Outcome::Tentative(_) => Err(Error::try_again(outcome.to_string())
                .with_details(format!("waited {SETTLE_WAIT:?}"))),
        }
    }

    /// A duplicate is a difference of the address.
    fn check(&self, _: &mut Kernel) -> Result<Vec<Difference>, Error> {
        Ok(Vec::new())
    }

    fn remove(&self, _: &mut Kernel) -> Result<(), Error> {
        Ok(())
    }
}

pub(crate) const NO_IPV6: &str = "IPv6 may be switched off in the kernel (ipv6.disable=1); use IPv4 ranges \
                       only, or boot with IPv6";

fn no_ipv6() -> Error {
    Error::internal("an IPv6 address was asked for and the kernel has no IPv6")
        .with_details(NO_IPV6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(json: &str) -> CniResult {
        use podwire_spec::result::VersionedResult;
        use podwire_spec::version::SpecVersion;
        VersionedResult::parse(json, SpecVersion::V1_1_0).unwrap().into_newest().unwrap()
    }

    #[test]
    fn routes_without_gateway_take_their_familys() {
        let interface = Interface::from_result(
            &result(
                r#"{"cniVersion":"1.1.0","interfaces":[{"name":"eth0","sandbox":"/n"}],
                   "ips":[{"address":"10.1.0.2/24","gateway":"10.1.0.1","interface":0},
                          {"address":"fd00::2/64","interface":0}],
                   "routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"},{"dst":"10.9.0.0/16","gw":"10.1.0.9",
                   "mtu":1300,"advmss":1200,"priority":7,"table":9,"scope":0}]}"#,
            ),
            "eth0",
        );
        assert_eq!(interface.addresses.len(), 2);
        let via: Vec<_> = interface.routes.iter().map(|route| route.gateway).collect();
        assert_eq!(
            via,
            [Some("10.1.0.1".parse().unwrap()), None, Some("10.1.0.9".parse().unwrap())]
        );
        let last = &interface.routes[2];
        assert_eq!(
            (last.mtu, last.advertised_mss, last.priority, last.table),
            (Some(1300), Some(1200), Some(7), 9)
        );
    }

    #[test]
    fn b089_a_gateway_outside_the_subnet_is_on_link() {
        let interface = Interface::from_result(
            &result(
                r#"{"cniVersion":"1.1.0","interfaces":[{"name":"eth0","sandbox":"/n"}],
                   "ips":[{"address":"2001:db8:5:333::2/64","gateway":"2001:db8:5::1","interface":0}],
                   "routes":[{"dst":"::/0"},{"dst":"fd00::/8","gw":"fe80::1"}]}"#,
            ),
            "eth0",
        );
        assert!(interface.routes.iter().all(|route| route.on_link));
    }

    #[test]
    fn a_gateway_behind_a_link_route_is_reachable() {
        let interface = Interface::from_result(
            &result(
                r#"{"cniVersion":"1.1.0","interfaces":[{"name":"eth0","sandbox":"/n"}],
                   "ips":[{"address":"10.1.0.2/32","gateway":"169.254.1.1","interface":0}],
                   "routes":[{"dst":"169.254.1.1/32","scope":253},{"dst":"0.0.0.0/0"}]}"#,
            ),
            "eth0",
        );
        let [link, default] = interface.routes.as_slice() else { panic!("{:?}", interface.routes) };
        assert_eq!((link.gateway, link.on_link), (None, false));
        assert_eq!(
            (default.gateway, default.on_link),
            (Some("169.254.1.1".parse().unwrap()), false)
        );
    }
}
