//! A gateway address on the bridge.

use std::net::IpAddr;

use ipnet::IpNet;
use podwire_netlink::route::Link;
use podwire_netlink::route::address::{AddAddress, DeleteAddress};
use podwire_plugin::{Belongs, Difference, Made, Resource};
use podwire_spec::error::Error;
use podwire_sys::sysctl;

use crate::kernel::{Kernel, refused};

/// The address through which containers of a bridge leave it. Stays when
/// they go: others use it.
pub struct GatewayAddress {
    /// The bridge, or the interface that stands for it.
    pub link: String,
    /// Gateway and prefix length.
    pub address: IpNet,
    /// Replace an address that is in the way instead of failing.
    pub force: bool,
    /// Addresses this very call puts on the same link, which are not in each
    /// other's way.
    pub siblings: Vec<IpNet>,
}

impl GatewayAddress {
    /// Whether an address that is there stands in the way: for IPv4 any
    /// other one, for IPv6 one of an overlapping subnet.
    fn is_in_the_way(&self, there: &IpNet) -> bool {
        if self.siblings.contains(there) {
            return false;
        }
        match (&self.address, there) {
            (IpNet::V4(_), IpNet::V4(_)) => true,
            (IpNet::V6(ours), IpNet::V6(theirs)) => {
                ours.contains(&theirs.trunc().network()) || theirs.contains(&ours.trunc().network())
            }
            _ => false,
        }
    }

    fn add(&self, kernel: &mut Kernel, link: &Link) -> Result<(), Error> {
        if matches!(self.address, IpNet::V6(_)) {
            // Addresses are refused while IPv6 is off for the link, as it is
            // where an administrator switched it off for all.
            if let Err(error) =
                sysctl::ensure(&["net", "ipv6", "conf", &self.link, "disable_ipv6"], "0")
                && !error.is_missing()
            {
                return Err(Error::internal(format!("switching on IPv6: {error}")));
            }
        }
        let add = AddAddress::new(link.device(), self.address).no_dad();
        match kernel.host()?.apply(&add) {
            Err(error) if !error.is_exists() => Err(refused(error)),
            _ => Ok(()),
        }
    }
}

impl Resource<Kernel> for GatewayAddress {
    fn describe(&self) -> String {
        format!("gateway address {} on {}", self.address, self.link)
    }

    fn belongs(&self) -> Belongs {
        Belongs::Host
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let link = kernel.host_link(&self.link)?;
        let there = kernel.host()?.addresses_of(link.device()).map_err(refused)?;
        if there.iter().any(|address| address.address == self.address) {
            return Ok(Made::Found);
        }
        for other in there.iter().filter(|address| self.is_in_the_way(&address.address)) {
            if !self.force {
                return Err(Error::internal(format!(
                    "\"{}\" already has an IP address different from {}: {}",
                    self.link, self.address, other.address
                ))
                .with_details(
                    "use another bridge for this subnet, or set forceAddress to replace the \
                     bridge's address",
                ));
            }
            let delete = DeleteAddress { device: link.device(), address: other.address };
            match kernel.host()?.apply(&delete) {
                Err(error) if !error.is_not_found() => return Err(refused(error)),
                _ => {}
            }
        }
        self.add(kernel, &link)?;
        Ok(Made::Created)
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let Some(link) = kernel.host()?.link_by_name(&self.link).map_err(refused)? else {
            return Ok(vec![Difference::missing(self.describe())]);
        };
        let there = kernel.host()?.addresses_of(link.device()).map_err(refused)?;
        if there.iter().any(|address| address.address.addr() == self.address.addr()) {
            return Ok(Vec::new());
        }
        Ok(vec![Difference::missing(self.describe())])
    }

    fn remove(&self, _: &mut Kernel) -> Result<(), Error> {
        Ok(())
    }

    /// The failed ADD leaves no address, unless the bridge itself goes too.
    fn undo(&mut self, kernel: &mut Kernel) -> Result<(), Error> {
        let Some(link) = kernel.host()?.link_by_name(&self.link).map_err(refused)? else {
            return Ok(());
        };
        // Somebody who joined meanwhile relies on it.
        let ports = kernel.host()?.links().map_err(refused)?;
        if ports.iter().any(|port| port.master == Some(link.index)) {
            return Ok(());
        }
        let delete = DeleteAddress { device: link.device(), address: self.address };
        match kernel.host()?.apply(&delete) {
            Err(error) if !error.is_not_found() => Err(refused(error)),
            _ => Ok(()),
        }
    }
}

/// Forwarding between interfaces, for the families of the addresses. A switch
/// of the whole host: others may rely on it, so nothing switches it off.
pub struct Forwarding {
    /// IPv4.
    pub ipv4: bool,
    /// IPv6.
    pub ipv6: bool,
}

impl Forwarding {
    /// Forwarding for the families that occur.
    pub fn of(addresses: impl Iterator<Item = IpAddr>) -> Self {
        let mut both = Self { ipv4: false, ipv6: false };
        for address in addresses {
            both.ipv4 |= address.is_ipv4();
            both.ipv6 |= address.is_ipv6();
        }
        both
    }

    fn switches(&self) -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        const IPV4: &[&str] = &["net", "ipv4", "ip_forward"];
        const IPV6: &[&str] = &["net", "ipv6", "conf", "all", "forwarding"];
        [(self.ipv4, "IPv4 forwarding", IPV4), (self.ipv6, "IPv6 forwarding", IPV6)]
            .into_iter()
            .filter_map(|(wanted, name, key)| wanted.then_some((name, key)))
    }
}

impl Resource<Kernel> for Forwarding {
    fn describe(&self) -> String {
        "forwarding on the host".to_owned()
    }

    fn belongs(&self) -> Belongs {
        Belongs::Host
    }

    fn make(&mut self, _: &mut Kernel) -> Result<Made, Error> {
        for (name, key) in self.switches() {
            sysctl::ensure(key, "1").map_err(|error| {
                Error::internal(format!("switching on {name}: {error}")).with_details(
                    "set it on the host beforehand where /proc/sys can't be written from here",
                )
            })?;
        }
        Ok(Made::Found)
    }

    fn check(&self, _: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let mut found = Vec::new();
        for (name, key) in self.switches() {
            let value = sysctl::read(key)
                .map_err(|error| Error::internal(format!("reading {name}: {error}")))?;
            if value.trim() != "1" {
                found.push(Difference::new(name, "on", "off"));
            }
        }
        Ok(found)
    }

    fn remove(&self, _: &mut Kernel) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gateway(address: &str, siblings: &[&str]) -> GatewayAddress {
        GatewayAddress {
            link: "cni0".to_owned(),
            address: address.parse().unwrap(),
            force: false,
            siblings: siblings.iter().map(|text| text.parse().unwrap()).collect(),
        }
    }

    #[test]
    fn any_other_ipv4_address_is_in_the_way() {
        let ours = gateway("10.1.0.1/24", &["10.2.0.1/24"]);
        assert!(ours.is_in_the_way(&"10.9.0.1/24".parse().unwrap()));
        assert!(!ours.is_in_the_way(&"10.2.0.1/24".parse().unwrap()));
        assert!(!ours.is_in_the_way(&"fd00::1/64".parse().unwrap()));
    }

    #[test]
    fn only_overlapping_ipv6_subnets_are_in_the_way() {
        let ours = gateway("fd00:1::1/64", &[]);
        assert!(ours.is_in_the_way(&"fd00:1::9/64".parse().unwrap()));
        assert!(ours.is_in_the_way(&"fd00::1/16".parse().unwrap()));
        assert!(!ours.is_in_the_way(&"fd00:2::1/64".parse().unwrap()));
        assert!(!ours.is_in_the_way(&"fe80::1/64".parse().unwrap()));
    }
}
