//! Questions that chained plugins and runtimes ask of a result.

use std::collections::{HashMap, HashSet};

use super::newest::{CniResult, Interface, IpConfig};
use crate::error::Error;

/// The addresses of a container's interface, and how sure that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerAddresses<'a> {
    /// The addresses; loopback ones only for a loopback interface.
    pub addresses: Vec<&'a IpConfig>,
    /// How they were found.
    pub origin: AddressOrigin,
}

/// How the addresses of an interface were found in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressOrigin {
    /// Each names the interface in the container.
    Named,
    /// Some name no interface and were taken to be the container's.
    Unnamed,
    /// None names the interface in the container; those that name one of the
    /// host were taken. Worth a warning: the plugin that printed it is wrong.
    HostSide,
    /// There are none.
    None,
}

impl CniResult {
    /// Checks that every address that names an interface names one there is.
    ///
    /// # Errors
    /// Code 7, naming address and index.
    pub fn validate_indices(&self) -> Result<(), Error> {
        let count = self.interfaces.len();
        for (at, ip) in self.ips.iter().enumerate() {
            if let Some(index) = ip.interface.filter(|index| *index >= count) {
                return Err(Error::config(format!(
                    "ips[{at}].interface: address {} names interface {index}, but the result has \
                     {count}",
                    ip.address
                ))
                .with_details("the plugin that printed the result is at fault"));
            }
        }
        Ok(())
    }

    /// The interface an address names, if there is one.
    pub fn interface_of(&self, ip: &IpConfig) -> Option<&Interface> {
        self.interfaces.get(ip.interface?)
    }

    /// The interface with this name inside the container, with its index.
    ///
    /// Only whether `sandbox` is set is looked at, not what it holds: plugins
    /// write different paths for one namespace, and some no path at all.
    pub fn interface_in_sandbox(&self, ifname: &str) -> Option<(usize, &Interface)> {
        let mut interfaces = self.interfaces.iter().enumerate();
        interfaces.find(|(_, interface)| interface.sandbox.is_some() && interface.name == ifname)
    }

    /// The interfaces of the host, as the outer ends of pairs and bridges.
    pub fn host_interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.interfaces.iter().filter(|interface| interface.sandbox.is_none())
    }

    /// The addresses of the interface `ifname` inside the container.
    ///
    /// Those that name it, and those that name none, since many plugins leave
    /// the index out; failing that, those that name an interface of the host,
    /// since some plugins point at their outer end. Never those of another
    /// interface inside, as `lo`, and never loopback addresses.
    pub fn container_addresses(&self, ifname: &str) -> ContainerAddresses<'_> {
        let mut unnamed = false;
        let mut own = |ip: &&IpConfig| {
            let Some(interface) = self.interface_of(ip) else {
                unnamed |= ip.interface.is_none();
                return ip.interface.is_none();
            };
            interface.sandbox.is_some() && interface.name == ifname
        };
        let candidates = || {
            let all = self.ips.iter();
            all.filter(|ip| ifname == "lo" || !ip.address.addr().is_loopback())
        };
        let addresses: Vec<_> = candidates().filter(|ip| own(ip)).collect();
        if !addresses.is_empty() {
            let origin = if unnamed { AddressOrigin::Unnamed } else { AddressOrigin::Named };
            return ContainerAddresses { addresses, origin };
        }
        let inside = |ip: &&IpConfig| {
            self.interface_of(ip).is_some_and(|interface| interface.sandbox.is_some())
        };
        let addresses: Vec<_> = candidates().filter(|ip| !inside(ip)).collect();
        let origin =
            if addresses.is_empty() { AddressOrigin::None } else { AddressOrigin::HostSide };
        ContainerAddresses { addresses, origin }
    }

    /// Adds another result to this one, as a chained plugin adds its own to
    /// what came before: interfaces of the same name and sandbox become one
    /// (the other's values count), the indices of its addresses are shifted,
    /// equal addresses and routes are not doubled, and its name servers
    /// replace those before if it has any.
    pub fn merge(&mut self, other: Self) {
        let id = |interface: &Interface| (interface.name.clone(), interface.sandbox.clone());
        let mut known = HashMap::new();
        for (place, present) in self.interfaces.iter().enumerate() {
            known.entry(id(present)).or_insert(place);
        }
        let mut places = Vec::with_capacity(other.interfaces.len());
        for interface in other.interfaces {
            let place = *known.entry(id(&interface)).or_insert(self.interfaces.len());
            places.push(place);
            match self.interfaces.get_mut(place) {
                Some(present) => *present = interface,
                None => self.interfaces.push(interface),
            }
        }
        let mut known: HashSet<_> = self.ips.iter().cloned().collect();
        for mut ip in other.ips {
            // An index that names nothing names nothing afterwards either.
            ip.interface = ip.interface.and_then(|index| places.get(index).copied());
            if known.insert(ip.clone()) {
                self.ips.push(ip);
            }
        }
        let mut known: HashSet<_> = self.routes.iter().cloned().collect();
        self.routes.extend(other.routes.into_iter().filter(|route| known.insert(route.clone())));
        if !other.dns.is_empty() {
            self.dns = other.dns;
        }
    }
}
