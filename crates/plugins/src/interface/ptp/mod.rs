//! `ptp`: a veth pair between the container and the host, which routes. No
//! bridge: containers of one subnet reach each other through the host.
//!
//! Beyond the reference: addresses without a subnet (`/32`, `/128`) and without
//! a gateway, gateways outside the subnet, and no IPAM at all (layer 2).

mod config;
mod inside;

use ipnet::IpNet;
use podwire_plugin::{
    Addresses, Attachment, Collection, Description, Facts, Inventory, Plan, Request, Role,
};
use podwire_resources::gateway::Forwarding;
use podwire_resources::host_end::HostEnds;
use podwire_resources::host_route::HostRoutes;
use podwire_resources::interface::{DuplicateDetection, Interface};
use podwire_resources::masquerade::{self, Masquerade, Masquerades};
use podwire_resources::veth::{Recorded, Veth};
use podwire_resources::{Kernel, formerly};
use podwire_spec::error::Error;
use podwire_spec::operation::Operation;
use podwire_spec::result::{CniResult, Interface as ResultInterface};

use crate::interface::dns;

pub use config::Config;

/// Position of the host's end in the result.
const HOST_END: usize = 0;
/// Position of the container's end: other plugins rely on the order.
const CONTAINER: usize = 1;

/// The plugin.
pub struct Ptp;

impl Inventory for Ptp {
    type Config = Config;
    type Kernel = Kernel;

    fn description(&self) -> Description {
        Description::new("ptp", Role::Interface)
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
        let mut result = base;
        result.interfaces = vec![
            ResultInterface::default(),
            ResultInterface {
                name: attachment.ifname().to_string(),
                sandbox: Some(attachment.sandbox_text()),
                ..ResultInterface::default()
            },
        ];
        for ip in &mut result.ips {
            ip.interface = Some(CONTAINER);
            if ip.gateway == Some(ip.address.addr()) {
                return Err(Error::config(format!(
                    "address {} of the container is its gateway's too",
                    ip.address.addr()
                ))
                .with_details(
                    "give the container another address, or the subnet another gateway",
                ));
            }
        }
        dns::prefer(&config.dns, &mut result);
        Ok(result)
    }

    fn foundation(
        &self,
        config: &Config,
        attachment: &Attachment,
        facts: &Facts<'_>,
    ) -> Result<Plan<Kernel>, Error> {
        let mut pair = Veth::new(attachment);
        pair.mtu = config.mtu;
        if let Some(result) = facts.result {
            pair.recorded = Recorded::from_result(result, attachment.ifname().as_str(), None);
            let mtu = &mut pair.recorded.container_mtu;
            *mtu = mtu.or(config.expected_mtu);
        }
        Ok(vec![Box::new(pair)])
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
        let paths = inside::paths(result, ifname);
        let interface = Interface {
            duplicate_detection: if config.has_ipam {
                DuplicateDetection::Off
            } else {
                DuplicateDetection::Kernel
            },
            ..inside::inside(result, ifname)
        };
        let mut plan: Plan<Kernel> =
            vec![Box::new(interface), Box::new(HostRoutes::new(ifname, &paths))];
        let addresses: Vec<IpNet> = paths.iter().map(|(address, _)| *address).collect();
        let forwarding = Forwarding::of(addresses.iter().map(IpNet::addr));
        if config.masquerade {
            plan.push(Box::new(Masquerade::new(attachment.owner, &attachment.key, addresses)));
        }
        // Last, since nothing switches it off again.
        plan.push(Box::new(forwarding));
        Ok(plan)
    }

    fn observe(
        &self,
        _: &Config,
        attachment: &Attachment,
        kernel: &mut Kernel,
        result: &mut CniResult,
    ) -> Result<(), Error> {
        let pair = kernel
            .made_pair(attachment.ifname().as_str())
            .ok_or_else(|| Error::internal("a bug in Podwire: the pair is unknown"))?;
        if let Some(host) = result.interfaces.get_mut(HOST_END) {
            host.name.clone_from(&pair.host.name);
            host.mac = pair.host.mac.map(|mac| mac.to_string());
        }
        if let Some(container) = result.interfaces.get_mut(CONTAINER) {
            container.mac = Some(pair.mac.to_string());
        }
        Ok(())
    }

    fn collections(&self, config: &Config) -> Vec<Box<dyn Collection<Kernel>>> {
        // Attachments may have been made when the configuration was another.
        vec![Box::new(HostEnds { bridge: None }), formerly(config.masquerade, Masquerades)]
    }

    fn ready(&self, config: &Config, kernel: &mut Kernel) -> Result<(), Error> {
        if config.masquerade {
            masquerade::available(kernel)?;
        }
        Ok(())
    }
}
