//! `bridge`: a veth pair whose host end is a port of a bridge, with addresses
//! from IPAM, the bridge as gateway, masquerading and VLANs as asked.

mod complete;
mod config;
mod vlan;

use ipnet::IpNet;
use podwire_plugin::{
    Addresses, Attachment, Collection, Description, Facts, Inventory, Plan, Request, Role,
};
use podwire_resources::bridge::Bridge as BridgeLink;
use podwire_resources::bridge_port::{BridgePort, PortUp};
use podwire_resources::gateway::{Forwarding, GatewayAddresses};
use podwire_resources::host_end::HostEnds;
use podwire_resources::interface::{DuplicateDetection, Interface, Settled};
use podwire_resources::masquerade::{self, Masquerade, Masquerades};
use podwire_resources::spoof_check::{SpoofCheck, SpoofChecks};
use podwire_resources::veth::{Recorded, Veth};
use podwire_resources::vlan_gateway::VlanGateway;
use podwire_resources::{Kernel, formerly};
use podwire_spec::error::{Error, ErrorCode};
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

    fn addresses(&self, config: &Config) -> Addresses {
        Addresses::delegated_if(config.has_ipam)
    }

    fn complete(
        &self,
        config: &Config,
        attachment: &Attachment,
        base: CniResult,
    ) -> Result<CniResult, Error> {
        complete::complete(config, attachment, base)
    }

    fn foundation(
        &self,
        config: &Config,
        attachment: &Attachment,
        facts: &Facts<'_>,
    ) -> Result<Plan<Kernel>, Error> {
        let ifname = attachment.ifname().as_str();
        let mut pair = Veth::new(attachment);
        pair.mtu = config.mtu;
        pair.mac = config.mac;
        if let Some(result) = facts.result {
            pair.recorded = Recorded::from_result(result, ifname, Some(&config.bridge));
            let mtu = &mut pair.recorded.container_mtu;
            *mtu = mtu.or(config.expected_mtu);
        }
        let mut plan: Plan<Kernel> = vec![Box::new(bridge_link(config, facts)), Box::new(pair)];
        if config.mac_spoof_check {
            plan.push(Box::new(SpoofCheck::new(attachment.owner, &attachment.key)));
        }
        plan.push(Box::new(BridgePort {
            bridge: config.bridge.clone(),
            ifname: ifname.to_owned(),
            hairpin: config.hairpin,
            isolated: config.port_isolation,
            vlans: config.vlans.as_ref().map(vlan::Vlans::of_port),
        }));
        Ok(plan)
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
        let mut plan: Plan<Kernel> = vec![Box::new(inside(config, result, ifname))];
        let gateways = gateways(config, result, ifname);
        let forwarding = Forwarding::of(gateways.addresses.iter().map(ipnet::IpNet::addr));
        if let Some(vlan) = config.vlan_gateway() {
            let mut gateway = VlanGateway::new(&config.bridge, vlan, keeps_default(config));
            if facts.operation == Operation::Check {
                let name = VlanGateway::name(&config.bridge, vlan);
                gateway.expected_mac = recorded_mac(facts, &name);
            }
            plan.push(Box::new(gateway));
        }
        if !gateways.addresses.is_empty() {
            plan.push(Box::new(gateways));
        }
        if config.masquerade {
            let addresses = result.container_addresses(ifname).addresses;
            let addresses = addresses.into_iter().map(|ip| ip.address).collect();
            plan.push(Box::new(Masquerade::new(attachment.owner, &attachment.key, addresses)));
        }
        if !config.container_interface_disabled {
            plan.push(Box::new(PortUp { ifname: ifname.to_owned() }));
            let has_ipv6 = result.ips.iter().any(|ip| ip.address.addr().is_ipv6());
            if config.duplicate_address_detection && has_ipv6 {
                plan.push(Box::new(Settled { ifname: ifname.to_owned() }));
            }
        }
        // Last, since nothing switches it off again.
        plan.push(Box::new(forwarding));
        Ok(plan)
    }

    fn observe(
        &self,
        config: &Config,
        attachment: &Attachment,
        kernel: &mut Kernel,
        result: &mut CniResult,
    ) -> Result<(), Error> {
        let ifname = attachment.ifname().as_str();
        let pair = kernel
            .made_pair(ifname)
            .ok_or_else(|| Error::internal("a bug in Podwire: the pair is unknown"))?;
        let (host_name, host_mac) = (pair.host.name.clone(), pair.host.mac);
        let inside_mac = pair.mac;
        // A bridge that somebody made without a MAC address of its own takes
        // its ports'.
        let bridge_mac = kernel.host_link(&config.bridge)?.mac;
        let mut macs = vec![bridge_mac, host_mac, Some(inside_mac)];
        if let Some(vlan) = config.vlan_gateway() {
            macs.push(kernel.host_link(&VlanGateway::name(&config.bridge, vlan))?.mac);
        }
        for (interface, mac) in result.interfaces.iter_mut().zip(macs) {
            interface.mac = mac.map(|mac| mac.to_string());
        }
        if let Some(host) = result.interfaces.get_mut(HOST_END) {
            host.name = host_name;
        }
        Ok(())
    }

    fn collections(&self, config: &Config) -> Vec<Box<dyn Collection<Kernel>>> {
        // Attachments may have been made when the configuration was another.
        vec![
            Box::new(HostEnds { bridge: Some(config.bridge.clone()) }),
            formerly(config.masquerade, Masquerades),
            formerly(config.mac_spoof_check, SpoofChecks),
        ]
    }

    fn ready(&self, config: &Config, kernel: &mut Kernel) -> Result<(), Error> {
        let facts = Facts { operation: Operation::Status, result: None };
        bridge_link(config, &facts).could_serve(kernel)?;
        if config.masquerade {
            masquerade::available(kernel)?;
        }
        if config.mac_spoof_check {
            kernel.nft().map_err(|error| Error { code: ErrorCode::Unavailable, ..error })?;
        }
        Ok(())
    }
}

/// Position of the host end in the result.
const HOST_END: usize = 1;

fn bridge_link(config: &Config, facts: &Facts<'_>) -> BridgeLink {
    let mut link = BridgeLink::new(&config.bridge);
    link.mtu = config.mtu;
    link.vlan_filtering = config.vlans.is_some();
    link.promiscuous = config.promiscuous;
    if config.gateway > Gateway::None && config.vlan_gateway().is_none() {
        link.expected_mac = recorded_mac(facts, &config.bridge);
    }
    link
}

/// The MAC address that prevResult has for an interface of the host.
fn recorded_mac(facts: &Facts<'_>, name: &str) -> Option<String> {
    let mut interfaces = facts.result.into_iter().flat_map(CniResult::host_interfaces);
    interfaces.find(|interface| interface.name == name)?.mac.clone()
}

/// The container's end. Without addresses its switches are left to whoever
/// gives it some.
fn inside(config: &Config, result: &CniResult, ifname: &str) -> Interface {
    Interface {
        duplicate_detection: match (config.duplicate_address_detection, config.has_ipam) {
            (true, _) => DuplicateDetection::On,
            (false, true) => DuplicateDetection::Off,
            (false, false) => DuplicateDetection::Kernel,
        },
        announce: config.has_ipam,
        down: config.container_interface_disabled,
        ..Interface::from_result(result, ifname)
    }
}

fn keeps_default(config: &Config) -> bool {
    config.vlans.as_ref().is_some_and(|vlans| vlans.preserve_default)
}

/// The gateway addresses, on the bridge or on the interface that stands for
/// it in a VLAN.
fn gateways(config: &Config, result: &CniResult, ifname: &str) -> GatewayAddresses {
    let mut addresses: Vec<IpNet> = Vec::new();
    if config.gateway > Gateway::None {
        let of_container = result.container_addresses(ifname).addresses;
        addresses.extend(of_container.into_iter().filter_map(complete::gateway_network));
        // Two addresses of one subnet share their gateway.
        addresses.sort_unstable();
        addresses.dedup();
    }
    let mut gateways = GatewayAddresses::new(&config.bridge, addresses, config.force_address);
    if let Some(vlan) = config.vlan_gateway() {
        gateways.link = VlanGateway::name(&config.bridge, vlan);
    }
    gateways
}
