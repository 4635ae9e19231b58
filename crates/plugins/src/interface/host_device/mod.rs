//! `host-device`: moves a device of the host into the container, and brings it
//! home again.
//!
//! A PCI device that is driven from user space (DPDK) has no interface to move:
//! the attachment then only reserves addresses and tells the names.

mod config;

use podwire_netlink::route::family::TABLE_MAIN;
use podwire_plugin::{
    Addresses, Attachment, Collection, Description, Facts, Inventory, Plan, Request, Role,
};
use podwire_resources::Kernel;
use podwire_resources::interface::{DuplicateDetection, Interface, Settled};
use podwire_resources::moved_device::{
    CarriedNetwork, DeviceAddresses, DeviceNetwork, MovedDevice, MovedDevices,
};
use podwire_spec::error::{Error, ErrorCode};
use podwire_spec::operation::Operation;
use podwire_spec::result::{CniResult, IpConfig, Route};

use crate::interface::only::only_interface;

pub use config::Config;

/// The plugin.
pub struct HostDevice;

impl Inventory for HostDevice {
    type Config = Config;
    type Kernel = Kernel;

    fn description(&self) -> Description {
        Description::new("host-device", Role::Interface)
    }

    fn parse(&self, request: &Request<'_>, operation: Operation) -> Result<Config, Error> {
        Config::parse(request, operation)
    }

    fn addresses(&self, config: &Config) -> Addresses {
        Addresses::delegated_if(config.has_ipam)
    }

    fn complete(
        &self,
        config: &Config,
        attachment: &Attachment,
        base: CniResult,
    ) -> Result<CniResult, Error> {
        Ok(only_interface(attachment, base, &config.dns))
    }

    fn foundation(
        &self,
        config: &Config,
        attachment: &Attachment,
        facts: &Facts<'_>,
    ) -> Result<Plan<Kernel>, Error> {
        if config.user_space {
            return Ok(Vec::new());
        }
        Ok(vec![Box::new(device(config, attachment, facts))])
    }

    fn desired(
        &self,
        config: &Config,
        attachment: &Attachment,
        facts: &Facts<'_>,
    ) -> Result<Plan<Kernel>, Error> {
        if config.user_space {
            return Ok(Vec::new());
        }
        let nothing = CniResult::default();
        let result = facts.result.unwrap_or(&nothing);
        let ifname = attachment.ifname().as_str();
        let interface = Interface {
            // Other machines share the device's network.
            duplicate_detection: DuplicateDetection::Kernel,
            announce: false,
            ..Interface::from_result(result, ifname)
        };
        let has_ipv6 = interface.addresses.iter().any(|address| address.addr().is_ipv6());
        let mut plan: Plan<Kernel> =
            vec![Box::new(DeviceAddresses(device(config, attachment, facts))), Box::new(interface)];
        if config.use_interface_network && facts.operation == Operation::Add {
            plan.push(Box::new(CarriedNetwork { ifname: ifname.to_owned() }));
        }
        if has_ipv6 {
            plan.push(Box::new(Settled { ifname: ifname.to_owned() }));
        }
        Ok(plan)
    }

    fn observe(
        &self,
        config: &Config,
        attachment: &Attachment,
        kernel: &mut Kernel,
        result: &mut CniResult,
    ) -> Result<(), Error> {
        if config.user_space {
            return Ok(());
        }
        let link = kernel.container_link(attachment.ifname().as_str())?;
        if let Some(interface) = result.interfaces.first_mut() {
            interface.mac = link.mac.map(|mac| mac.to_string());
        }
        if config.use_interface_network
            && let Some(carried) = kernel.carried()
        {
            report(carried, result);
        }
        Ok(())
    }

    fn collections(&self, _: &Config) -> Vec<Box<dyn Collection<Kernel>>> {
        vec![Box::new(MovedDevices)]
    }

    /// The device may be in use, by whatever container: only one that nobody
    /// has is missing.
    fn ready(&self, config: &Config, kernel: &mut Kernel) -> Result<(), Error> {
        let Some(selector) = &config.selector else { return Ok(()) };
        if selector.find(kernel)?.is_some() || MovedDevices::any() {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::Unavailable,
            format!("there is no {selector} on the host, and no container has one"),
        ))
    }
}

fn device(config: &Config, attachment: &Attachment, facts: &Facts<'_>) -> MovedDevice {
    MovedDevice::new(attachment, config.selector.clone(), facts.result)
}

/// Adds to the result what the device brought along.
fn report(carried: &DeviceNetwork, result: &mut CniResult) {
    for one in &carried.addresses {
        if !result.ips.iter().any(|known| known.address == one.address) {
            result.ips.push(IpConfig { interface: Some(0), ..IpConfig::new(one.address) });
        }
    }
    for route in &carried.routes {
        let scope = (route.scope.0 != 0).then(|| route.scope.0.into());
        result.routes.push(Route {
            mtu: route.mtu,
            advmss: route.advertised_mss,
            priority: route.priority,
            table: Some(route.table).filter(|table| *table != TABLE_MAIN),
            scope,
            ..Route::new(route.destination, route.gateway)
        });
    }
}
