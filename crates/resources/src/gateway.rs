//! Gateway addresses on the bridge, and forwarding.

use std::net::IpAddr;

use ipnet::IpNet;
use podwire_netlink::route::address::{AddAddress, DeleteAddress};
use podwire_netlink::route::link_change::ChangeLink;
use podwire_netlink::route::{Device, Link};
use podwire_plugin::{Belongs, Difference, Made, Resource};
use podwire_spec::error::Error;
use podwire_sys::sysctl;

use crate::bridge::{ports, somebody_joined};
use crate::interface::NO_IPV6;
use crate::kernel::{Kernel, refused};

/// The addresses through which containers of a bridge leave it. They stay
/// when these go: others use them.
pub struct GatewayAddresses {
    /// The bridge.
    pub bridge: String,
    /// The bridge too, or the interface that stands for it.
    pub link: String,
    /// Gateways, each with the prefix length of its subnet.
    pub addresses: Vec<IpNet>,
    /// Replace an address that is in the way instead of failing.
    pub force: bool,
    done: Done,
}

/// What this call did, to be taken back when the ADD fails.
#[derive(Default)]
struct Done {
    added: Vec<IpNet>,
    removed: Vec<IpNet>,
    /// Who was plugged into the bridge before.
    ports: Vec<u32>,
}

impl GatewayAddresses {
    /// Addresses for the bridge itself.
    pub fn new(bridge: impl Into<String>, addresses: Vec<IpNet>, force: bool) -> Self {
        let bridge = bridge.into();
        Self { link: bridge.clone(), bridge, addresses, force, done: Done::default() }
    }

    /// Adds what is missing, after what is in the way is gone.
    fn set(&mut self, kernel: &mut Kernel, link: &Link, there: &[IpNet]) -> Result<(), Error> {
        let missing: Vec<_> =
            self.addresses.iter().copied().filter(|wanted| !there.contains(wanted)).collect();
        for address in missing {
            for other in there.iter().filter(|other| is_in_the_way(&address, other)) {
                if self.addresses.contains(other) || self.done.removed.contains(other) {
                    continue;
                }
                if !self.force {
                    return Err(self.conflict(&address, other));
                }
                let delete = DeleteAddress { device: link.device(), address: *other };
                match kernel.host()?.apply(&delete) {
                    Ok(()) => self.done.removed.push(*other),
                    Err(error) if error.is_not_found() => {}
                    Err(error) => return Err(refused(error)),
                }
            }
            if self.add(kernel, link, address)? {
                self.done.added.push(address);
            }
        }
        if !self.done.added.is_empty()
            && let Some(mac) = link.mac
        {
            // A bridge that somebody made without a MAC address of its own
            // takes its ports'; containers remember the gateway's.
            let pin = ChangeLink::new(link.device()).mac(mac);
            kernel.host()?.apply(&pin).map_err(refused)?;
        }
        Ok(())
    }

    fn conflict(&self, address: &IpNet, other: &IpNet) -> Error {
        Error::internal(format!(
            "\"{}\" already has an IP address different from {address}: {other}",
            self.link
        ))
        .with_details(
            "use another bridge for this subnet, or set forceAddress to replace the bridge's \
             address",
        )
    }

    /// Whether it was added; a parallel ADD may have been faster.
    fn add(&self, kernel: &mut Kernel, link: &Link, address: IpNet) -> Result<bool, Error> {
        if matches!(address, IpNet::V6(_)) {
            // Addresses are refused while IPv6 is off for the link, as it is
            // where an administrator switched it off for all.
            let key = ["net", "ipv6", "conf", &self.link, "disable_ipv6"];
            match sysctl::ensure(&key, "0") {
                Err(error) if !error.is_missing() => {
                    return Err(Error::internal(format!("switching on IPv6: {error}")));
                }
                _ => {}
            }
        }
        match kernel.host()?.apply(&AddAddress::new(link.device(), address).no_dad()) {
            Ok(()) => Ok(true),
            Err(error) if error.is_exists() => Ok(false),
            Err(error) if error.is_unsupported() && matches!(address, IpNet::V6(_)) => {
                Err(refused(error).with_details(NO_IPV6))
            }
            Err(error) => Err(refused(error)),
        }
    }

    fn take_back(&mut self, kernel: &mut Kernel, link: &Link) -> Result<(), Error> {
        for address in self.done.added.drain(..) {
            let delete = DeleteAddress { device: link.device(), address };
            match kernel.host()?.apply(&delete) {
                Err(error) if !error.is_not_found() => return Err(refused(error)),
                _ => {}
            }
        }
        for address in self.done.removed.drain(..) {
            match kernel.host()?.apply(&AddAddress::new(link.device(), address).no_dad()) {
                Err(error) if !error.is_exists() => return Err(refused(error)),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether an address that is there stands in the way of a gateway: for IPv4
/// any other one, for IPv6 one of an overlapping subnet. Link-local ones are
/// everywhere.
fn is_in_the_way(ours: &IpNet, there: &IpNet) -> bool {
    match (ours, there) {
        (IpNet::V4(_), IpNet::V4(_)) => true,
        (IpNet::V6(_), IpNet::V6(theirs)) if theirs.addr().is_unicast_link_local() => false,
        (IpNet::V6(ours), IpNet::V6(theirs)) => {
            ours.contains(&theirs.network()) || theirs.contains(&ours.network())
        }
        _ => false,
    }
}

impl Resource<Kernel> for GatewayAddresses {
    fn describe(&self) -> String {
        let texts: Vec<_> = self.addresses.iter().map(ToString::to_string).collect();
        format!("gateway address {} on {}", texts.join(", "), self.link)
    }

    fn belongs(&self) -> Belongs {
        Belongs::Host
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let index = kernel.host_index(&self.link)?;
        let there = addresses_of(kernel, Device::new(index, &self.link))?;
        if self.addresses.iter().all(|wanted| there.contains(wanted)) {
            return Ok(Made::Found);
        }
        let link = kernel.host_link(&self.link)?;
        let bridge = kernel.host_index(&self.bridge)?;
        self.done.ports = ports(kernel, bridge)?;
        match self.set(kernel, &link, &there) {
            Ok(()) => Ok(Made::Created),
            Err(error) => {
                self.undo(kernel)?;
                Err(error)
            }
        }
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let missing = |address: &IpNet| {
            Difference::missing(format!("gateway address {address} on {}", self.link))
        };
        let Some(link) = kernel.host()?.link_by_name(&self.link).map_err(refused)? else {
            // A missing bridge is the bridge's own difference.
            return Ok(Vec::new());
        };
        let there = addresses_of(kernel, link.device())?;
        let mut found = Vec::new();
        for wanted in &self.addresses {
            match there.iter().find(|one| one.addr() == wanted.addr()) {
                None => found.push(missing(wanted)),
                Some(one) if one.prefix_len() != wanted.prefix_len() => {
                    found.push(Difference::new(
                        format!("gateway address {wanted} on {}", self.link),
                        format!("prefix length {}", wanted.prefix_len()),
                        one.prefix_len().to_string(),
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(found)
    }

    fn remove(&self, _: &mut Kernel) -> Result<(), Error> {
        Ok(())
    }

    /// A failed ADD leaves the addresses as they were, unless somebody relies
    /// on them by now.
    fn undo(&mut self, kernel: &mut Kernel) -> Result<(), Error> {
        if !kernel.has_bridges_alone() {
            return Ok(());
        }
        let Some(link) = kernel.host()?.link_by_name(&self.link).map_err(refused)? else {
            return Ok(());
        };
        let bridge = kernel.host_index(&self.bridge)?;
        if somebody_joined(kernel, bridge, &self.done.ports)? {
            return Ok(());
        }
        self.take_back(kernel, &link)
    }
}

fn addresses_of(kernel: &mut Kernel, device: Device<'_>) -> Result<Vec<IpNet>, Error> {
    let there = kernel.host()?.addresses_of(device).map_err(refused)?;
    Ok(there.into_iter().map(|one| one.address).collect())
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

    fn in_the_way(ours: &str, there: &str) -> bool {
        is_in_the_way(&ours.parse().unwrap(), &there.parse().unwrap())
    }

    #[test]
    fn any_other_ipv4_address_is_in_the_way() {
        assert!(in_the_way("10.1.0.1/24", "10.9.0.1/24"));
        assert!(!in_the_way("10.1.0.1/24", "fd00::1/64"));
    }

    #[test]
    fn only_overlapping_ipv6_subnets_are_in_the_way() {
        assert!(in_the_way("fd00:1::1/64", "fd00:1::9/64"));
        assert!(in_the_way("fd00:1::1/64", "fd00::1/16"));
        assert!(!in_the_way("fd00:1::1/64", "fd00:2::1/64"));
        assert!(!in_the_way("fd00:1::1/64", "fe80::1/64"));
        assert!(!in_the_way("fe80::1/64", "fe80::42/64"), "the kernel gives every link one");
    }
}
