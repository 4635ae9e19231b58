//! The bridge's presence in one VLAN: an interface of the host that is an
//! access port of the bridge, to hold the gateway addresses of that VLAN.

use podwire_netlink::route::link_change::ChangeLink;
use podwire_netlink::route::link_new::{End, NewLink};
use podwire_netlink::route::{Change, Link};
use podwire_plugin::{Belongs, Difference, Made, Resource, shorten};
use podwire_spec::error::Error;

use crate::bridge::{mac_difference, no_filtering, ports, random_mac, settings, somebody_joined};
use crate::kernel::{Kernel, delete, refused};
use crate::port_vlans::PortVlans;

/// `<bridge>.<vlan>` and its peer, which is the port. Made by the first
/// attachment of the VLAN and left by the last, as the bridge itself.
pub struct VlanGateway {
    bridge: String,
    vlan: u16,
    keep_default: bool,
    /// Its MAC address as CHECK expects it.
    pub expected_mac: Option<String>,
    created: bool,
    /// Who was plugged into the bridge before it was made.
    ports: Vec<u32>,
}

impl VlanGateway {
    /// The interface of one VLAN, whose port keeps the bridge's default VLAN
    /// beside it or not.
    pub fn new(bridge: &str, vlan: u16, keep_default: bool) -> Self {
        Self {
            bridge: bridge.to_owned(),
            vlan,
            keep_default,
            expected_mac: None,
            created: false,
            ports: Vec::new(),
        }
    }

    /// Its name, as the reference plugins give it: `<bridge>.<vlan>`.
    pub fn name(bridge: &str, vlan: u16) -> String {
        format!("{bridge}.{vlan}")
    }

    fn own_name(&self) -> String {
        Self::name(&self.bridge, self.vlan)
    }

    /// The port's name. The reference plugins make one up, so an existing
    /// interface's peer is found by its index.
    fn port_name(&self) -> String {
        format!("vgw{}", shorten(&[&self.own_name()], 8))
    }

    /// The mark on both ends; not an attachment's, so none collects them.
    fn alias(&self) -> String {
        format!("podwire:bridge:{}:vlan:{}", self.bridge, self.vlan)
    }

    /// The interface, if it is there and can be one.
    fn find(&self, kernel: &mut Kernel) -> Result<Option<Link>, Error> {
        let link = kernel.host()?.link_by_name(&self.own_name()).map_err(refused)?;
        match link {
            Some(link) if !link.is_veth() => Err(Error::config(format!(
                "\"{}\" already exists but is no veth (it is {})",
                self.own_name(),
                link.kind_name()
            ))
            .with_details("the gateway of a VLAN needs this name; rename or remove the other")),
            found => Ok(found),
        }
    }

    fn create(&self, kernel: &mut Kernel, bridge: &Link) -> Result<Option<Link>, Error> {
        let (name, port_name) = (self.own_name(), self.port_name());
        let end = End::new(&name).mac(random_mac()?).mtu(bridge.mtu);
        let port = End::new(&port_name).mac(random_mac()?).mtu(bridge.mtu);
        match kernel.host()?.create_link(&NewLink::veth(end, port)) {
            Ok(link) => Ok(Some(link)),
            Err(error) if error.is_exists() => Ok(None),
            Err(error) => Err(refused(error)),
        }
    }

    fn port(kernel: &mut Kernel, link: &Link) -> Result<Option<Link>, Error> {
        match link.parent {
            Some(index) => kernel.host()?.link_by_index(index).map_err(refused),
            None => Ok(None),
        }
    }

    /// Plugs it in and switches it on; harmless where that was done.
    fn connect(&self, kernel: &mut Kernel, bridge: &Link, link: &Link) -> Result<(), Error> {
        let port = Self::port(kernel, link)?.ok_or_else(|| {
            Error::internal(format!("the other end of {} is missing", self.own_name()))
        })?;
        let alias = self.alias();
        let vlans = PortVlans::access(self.vlan, self.keep_default);
        let plug = ChangeLink::new(port.device()).master(bridge.index);
        let port_up = ChangeLink::new(port.device()).alias(&alias).up();
        let up = ChangeLink::new(link.device()).alias(&alias).up();
        // One that is plugged in already has lost the default VLAN.
        let default = match port.master {
            Some(_) => 0,
            None => settings(bridge).default_pvid.unwrap_or(0),
        };
        let vlans = vlans.changes(&port, default);
        let mut changes: Vec<&dyn Change> = vec![&plug];
        changes.extend(vlans.iter().map(|change| change as &dyn Change));
        changes.extend([&port_up as &dyn Change, &up]);
        kernel
            .host()?
            .apply_all(&changes)
            .map_err(|error| if error.is_unsupported() { no_filtering() } else { refused(error) })
    }
}

impl Resource<Kernel> for VlanGateway {
    fn describe(&self) -> String {
        format!("gateway interface {}", self.own_name())
    }

    fn belongs(&self) -> Belongs {
        Belongs::Host
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let bridge = kernel.host_link(&self.bridge)?;
        let mut found = self.find(kernel)?;
        if found.is_none() {
            self.ports = ports(kernel, bridge.index)?;
            found = self.create(kernel, &bridge)?;
            self.created = found.is_some();
        }
        let link = match found {
            Some(link) => link,
            // A parallel ADD was faster.
            None => kernel.host_link(&self.own_name())?,
        };
        if let Err(error) = self.connect(kernel, &bridge, &link) {
            if self.created {
                delete(kernel, &link)?;
            }
            return Err(error);
        }
        kernel.remember_host(&link);
        Ok(if self.created { Made::Created } else { Made::Found })
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let name = self.describe();
        let Some(link) = self.find(kernel)? else { return Ok(vec![Difference::missing(name)]) };
        let mut found = Vec::new();
        if !link.is_up() {
            found.push(Difference::new(&name, "up", "down"));
        }
        found.extend(mac_difference(&name, &link, self.expected_mac.as_deref()));
        // A missing bridge is the bridge's own difference.
        let Some(bridge) = kernel.host()?.link_by_name(&self.bridge).map_err(refused)? else {
            return Ok(found);
        };
        match Self::port(kernel, &link)? {
            Some(port) if port.master == Some(bridge.index) => {
                if !port.is_up() {
                    found.push(Difference::new(
                        format!("{name}, port {}", port.name),
                        "up",
                        "down",
                    ));
                }
                let there = kernel.host()?.port_vlans().map_err(refused)?;
                let default = settings(&bridge).default_pvid.unwrap_or(0);
                let vlans = PortVlans::access(self.vlan, self.keep_default);
                vlans.compare(&port, default, &there, &mut found);
            }
            _ => found.push(Difference::missing(format!("{name}, its port on {}", self.bridge))),
        }
        Ok(found)
    }

    fn remove(&self, _: &mut Kernel) -> Result<(), Error> {
        Ok(())
    }

    /// Only reached when this call made it.
    fn undo(&mut self, kernel: &mut Kernel) -> Result<(), Error> {
        if !kernel.has_bridges_alone() {
            return Ok(());
        }
        let Some(link) = self.find(kernel)? else { return Ok(()) };
        let Some(bridge) = kernel.host()?.link_by_name(&self.bridge).map_err(refused)? else {
            return delete(kernel, &link);
        };
        self.ports.extend(link.parent);
        if somebody_joined(kernel, bridge.index, &self.ports)? {
            return Ok(());
        }
        delete(kernel, &link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_end::owner_of_alias;

    #[test]
    fn its_names_are_found_again_and_its_mark_is_no_attachments() {
        let gateway = VlanGateway::new("cni0", 100, false);
        assert_eq!(gateway.own_name(), "cni0.100");
        assert_eq!(gateway.port_name(), VlanGateway::new("cni0", 100, true).port_name());
        assert_ne!(gateway.port_name(), VlanGateway::new("cni0", 101, true).port_name());
        assert!(gateway.port_name().len() <= 15);
        assert_eq!(owner_of_alias(&gateway.alias()), None);
    }
}
