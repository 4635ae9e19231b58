//! `bridge`: a veth pair whose host end is a port of a bridge, with addresses
//! from IPAM, the bridge as gateway, masquerading and VLANs as asked.

mod complete;
mod config;
mod vlan;

use podwire_plugin::{
    Addresses, Attachment, Collection, Description, Facts, Inventory, Plan, Request, Role, Sandbox,
};
use podwire_resources::bridge::Bridge as BridgeLink;
use podwire_resources::bridge_port::BridgePort;
use podwire_resources::gateway::{Forwarding, GatewayAddress};
use podwire_resources::interface::{DuplicateDetection, Interface};
use podwire_resources::veth::{self, Recorded, Veth};
use podwire_resources::{Kernel, refused};
use podwire_spec::error::Error;
use podwire_spec::operation::Operation;
use podwire_spec::result::CniResult;

pub use config::{Config, Gateway};

/// The plugin.
pub struct Bridge;

impl Inventory for Bridge {
    type Config = Config;
    type Kernel = Kernel;

    fn description(&self) -> Description {
        Description::new("bridge", Role::Interface)
    }

    fn parse(&self, request: &Request<'_>, operation: Operation) -> Result<Config, Error> {
        Config::parse(request, operation)
    }

    fn kernel(&self, sandbox: Option<&Sandbox>) -> Result<Kernel, Error> {
        Kernel::new(sandbox)
    }

    fn addresses(&self, config: &Config) -> Addresses {
        if config.has_ipam { Addresses::Delegated } else { Addresses::None }
    }

    fn complete(
        &self,
        config: &Config,
        attachment: &Attachment,
        base: CniResult,
    ) -> Result<CniResult, Error> {
        Ok(complete::complete(config, attachment, base))
    }

    fn foundation(
        &self,
        config: &Config,
        attachment: &Attachment,
        facts: &Facts<'_>,
    ) -> Result<Plan<Kernel>, Error> {
        let mut pair = Veth::new(attachment);
        pair.mtu = config.mtu;
        pair.mac = config.mac;
        if let Some(result) = facts.result {
            let bridge = Some(config.bridge.as_str());
            pair.recorded = Recorded::from_result(result, attachment.ifname().as_str(), bridge);
        }
        Ok(vec![Box::new(bridge_link(config, facts)), Box::new(pair)])
    }

    fn desired(
        &self,
        config: &Config,
        attachment: &Attachment,
        facts: &Facts<'_>,
    ) -> Result<Plan<Kernel>, Error> {
        let nothing = CniResult::default();
        let result = facts.result.unwrap_or(&nothing);
        let ifname = attachment.ifname().as_str();
        let mut plan: Plan<Kernel> = vec![
            Box::new(Interface {
                duplicate_detection: if config.duplicate_address_detection {
                    DuplicateDetection::On
                } else {
                    DuplicateDetection::Off
                },
                down: config.container_interface_disabled,
                ..Interface::from_result(result, ifname)
            }),
            Box::new(port(config, ifname)),
        ];
        if config.gateway > Gateway::None {
            plan.extend(gateways(config, result, ifname));
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
        let bridge = kernel.host_link(config.bridge.as_str())?;
        let inside = kernel.container_link(attachment.ifname().as_str())?;
        let host = veth::host_end_of(kernel, &inside)?
            .ok_or_else(|| Error::internal("the host end vanished while it was being set up"))?;
        for (interface, link) in result.interfaces.iter_mut().zip([bridge, host, inside]) {
            interface.mac = link.mac.map(|mac| mac.to_string());
            interface.name = link.name;
        }
        Ok(())
    }

    fn collections(&self, _: &Config) -> Vec<Box<dyn Collection<Kernel>>> {
        vec![Box::new(veth::HostEnds)]
    }

    fn ready(&self, config: &Config, kernel: &mut Kernel) -> Result<(), Error> {
        let link = kernel.host()?.link_by_name(config.bridge.as_str()).map_err(refused)?;
        match link {
            Some(link) if !link.is_bridge() => Err(Error::unavailable(format!(
                "interface {} exists and is not a bridge (it is {})",
                config.bridge,
                link.kind_name()
            ))
            .with_details("choose another name with the key \"bridge\"")),
            _ => Ok(()),
        }
    }
}

fn bridge_link(config: &Config, facts: &Facts<'_>) -> BridgeLink {
    let recorded = facts.result.and_then(|result| {
        result.host_interfaces().find(|interface| interface.name == config.bridge.as_str())
    });
    BridgeLink {
        name: config.bridge.to_string(),
        mtu: config.mtu,
        vlan_filtering: config.vlans.is_some(),
        promiscuous: config.promiscuous,
        expected_mac: recorded.and_then(|interface| interface.mac.clone()),
    }
}

fn port(config: &Config, ifname: &str) -> BridgePort {
    BridgePort {
        bridge: config.bridge.to_string(),
        ifname: ifname.to_owned(),
        hairpin: config.hairpin,
        isolated: config.port_isolation,
        vlans: config.vlans.as_ref().map(vlan::Vlans::of_port),
        keep_default_vlan: config.vlans.as_ref().is_some_and(|vlans| vlans.preserve_default),
        expect_up: !config.container_interface_disabled,
    }
}

/// The gateway addresses on the bridge, and forwarding for their families.
fn gateways(config: &Config, result: &CniResult, ifname: &str) -> Plan<Kernel> {
    let addresses: Vec<_> = result
        .container_addresses(ifname)
        .addresses
        .iter()
        .filter_map(|ip| complete::gateway_network(ip))
        .collect();
    let forwarding = Forwarding::of(addresses.iter().map(ipnet::IpNet::addr));
    let mut plan: Plan<Kernel> = Vec::with_capacity(addresses.len() + 1);
    for address in &addresses {
        plan.push(Box::new(GatewayAddress {
            link: config.bridge.to_string(),
            address: *address,
            force: config.force_address,
            siblings: addresses.clone(),
        }));
    }
    plan.push(Box::new(forwarding));
    plan
}
