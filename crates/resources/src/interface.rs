//! Addresses, routes and switches of the container's interface.

use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use podwire_netlink::route::address::{AddAddress, Address};
use podwire_netlink::route::family::{Family, Scope, TABLE_MAIN};
use podwire_netlink::route::link_change::ChangeLink;
use podwire_netlink::route::monitor::Settled;
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
    /// Leave it down.
    pub down: bool,
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
        let routes = result
            .routes
            .iter()
            .map(|wanted| {
                let mut route = Route::new(wanted.dst);
                route.gateway = wanted.gw.or_else(|| gateway(route.family()));
                route.on_link = route.gateway.is_some_and(|via| !is_reachable(via, &addresses));
                route.priority = wanted.priority;
                route.table = wanted.table.unwrap_or(TABLE_MAIN);
                route.scope = wanted
                    .scope
                    .and_then(|scope| u8::try_from(scope).ok())
                    .map_or(Scope::UNIVERSE, Scope);
                route.mtu = wanted.mtu;
                route.advertised_mss = wanted.advmss;
                route
            })
            .collect();
        Self {
            ifname: ifname.to_owned(),
            addresses,
            routes,
            duplicate_detection: DuplicateDetection::Off,
            announce: true,
            down: false,
        }
    }

    fn has_ipv6(&self) -> bool {
        self.addresses.iter().any(|address| matches!(address, IpNet::V6(_)))
    }

    /// Switches that must stand before the first address.
    fn switches(&self) -> Result<(), Error> {
        let key = |family: &'static str, link: &str, name: &'static str| {
            [
                "net".to_owned(),
                family.to_owned(),
                "conf".to_owned(),
                link.to_owned(),
                name.to_owned(),
            ]
        };
        let ensure = |parts: [String; 5], value: &str| {
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            sysctl::ensure(&parts, value)
        };
        if self.announce {
            // Only tells neighbours sooner.
            let _ = ensure(key("ipv4", &self.ifname, "arp_notify"), "1");
        }
        let detection = match self.duplicate_detection {
            DuplicateDetection::Off => Some("0"),
            DuplicateDetection::On => Some("1"),
            DuplicateDetection::Kernel => None,
        };
        if let Some(value) = detection {
            // Absent where IPv6 is off; link-local addresses settle at once.
            let _ = ensure(key("ipv6", &self.ifname, "accept_dad"), value);
            if value == "1" {
                let _ = ensure(key("ipv6", &self.ifname, "enhanced_dad"), value);
            }
        }
        if !self.has_ipv6() {
            return Ok(());
        }
        for link in ["lo", &self.ifname] {
            match ensure(key("ipv6", link, "disable_ipv6"), "0") {
                Ok(_) => {}
                Err(error) if error.is_missing() => return Err(no_ipv6()),
                Err(error) => {
                    return Err(Error::internal(format!("switching on IPv6: {error}")));
                }
            }
        }
        // Before 4.16 absent; only matters when the link goes down later.
        let _ = ensure(key("ipv6", &self.ifname, "keep_addr_on_down"), "1");
        Ok(())
    }

    fn settle(&self, kernel: &mut Kernel, device: Device<'_>) -> Result<(), Error> {
        match kernel.settle_addresses(device, SETTLE_WAIT)? {
            Settled::All => Ok(()),
            settled @ Settled::Duplicate(_) => {
                Err(Error::internal(format!("addresses of {}: {settled}", self.ifname))
                    .with_details("another host on the network has it (dadfailed)"))
            }
            settled @ Settled::Tentative(_) => {
                Err(Error::try_again(format!("addresses of {}: {settled}", self.ifname))
                    .with_details(format!("waited {SETTLE_WAIT:?}")))
            }
        }
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
        let link = kernel.container_link(&self.ifname)?;
        if self.down {
            return Ok(Made::Found);
        }
        let addresses: Vec<_> = self
            .addresses
            .iter()
            .map(|address| {
                let add = AddAddress::new(link.device(), *address);
                match self.duplicate_detection {
                    DuplicateDetection::Off => add.no_dad(),
                    _ => add,
                }
            })
            .collect();
        let up = ChangeLink::new(link.device()).up();
        for route in &mut self.routes {
            route.output = Some(link.index);
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
        if self.has_ipv6() && self.duplicate_detection == DuplicateDetection::On {
            self.settle(kernel, link.device())?;
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
    /// table any will do, and a default route's gateway isn't compared.
    fn compare_routes(&self, there: &[Route], found: &mut Vec<Difference>) {
        for wanted in &self.routes {
            let matches = |route: &&Route| {
                route.destination == wanted.destination
                    && (wanted.table == TABLE_MAIN || route.table == wanted.table)
                    && (wanted.is_default()
                        || wanted.gateway.is_none()
                        || route.gateway == wanted.gateway)
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

/// Whether a gateway lies in the subnet of one of the addresses. One that
/// doesn't is reached over the link all the same (an IPv6 router in another
/// prefix, a link-local one).
fn is_reachable(gateway: IpAddr, addresses: &[IpNet]) -> bool {
    addresses.iter().any(|address| address.contains(&gateway))
}

const NO_IPV6: &str = "IPv6 may be switched off in the kernel (ipv6.disable=1); use IPv4 ranges \
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
}
