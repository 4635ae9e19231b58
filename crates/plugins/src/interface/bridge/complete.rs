//! What a bridge attachment's result is to be, from what IPAM gave.

use std::net::IpAddr;

use ipnet::IpNet;
use podwire_plugin::Attachment;
use podwire_spec::error::Error;
use podwire_spec::result::{CniResult, Interface, IpConfig, Route};

use super::config::{Config, Gateway};
use crate::interface::dns;
use podwire_resources::vlan_gateway::VlanGateway;

/// Position of the container's interface in the result: behind the bridge and
/// the host end. Other plugins and runtimes rely on the order.
const CONTAINER: usize = 2;

/// The result an ADD is to have. Names and MAC addresses of the interfaces
/// are filled in once the kernel has them.
///
/// # Errors
/// A gateway that is the container's own address.
pub(super) fn complete(
    config: &Config,
    attachment: &Attachment,
    base: CniResult,
) -> Result<CniResult, Error> {
    let mut result = base;
    result.interfaces = vec![
        Interface { name: config.bridge.clone(), ..Interface::default() },
        Interface::default(),
        Interface {
            name: attachment.ifname().to_string(),
            sandbox: Some(attachment.sandbox_text()),
            ..Interface::default()
        },
    ];
    if let Some(vlan) = config.vlan_gateway() {
        let name = VlanGateway::name(&config.bridge, vlan);
        result.interfaces.push(Interface { name, ..Interface::default() });
    }
    for ip in &mut result.ips {
        ip.interface = Some(CONTAINER);
        if config.gateway > Gateway::None && ip.gateway.is_none() {
            ip.gateway = first_host(&ip.address);
        }
        if config.gateway > Gateway::None && ip.gateway == Some(ip.address.addr()) {
            return Err(Error::config(format!(
                "address {} of the container is its gateway's too",
                ip.address.addr()
            ))
            .with_details("give the container another address, or the subnet another gateway"));
        }
    }
    if config.gateway == Gateway::DefaultRoute {
        add_default_routes(&mut result);
    }
    dns::prefer(&config.dns, &mut result);
    Ok(result)
}

/// A default route for each family that has a gateway and none yet.
fn add_default_routes(result: &mut CniResult) {
    for ipv4 in [true, false] {
        let gateway = result
            .ips
            .iter()
            .filter(|ip| ip.address.addr().is_ipv4() == ipv4)
            .find_map(|ip| ip.gateway);
        let Some(gateway) = gateway else { continue };
        let has_default = result.routes.iter().any(|route| {
            route.dst.prefix_len() == 0 && route.dst.addr().is_ipv4() == ipv4 && route.gw.is_some()
        });
        if !has_default {
            result.routes.push(Route::new(everything(ipv4), Some(gateway)));
        }
    }
}

fn everything(ipv4: bool) -> IpNet {
    if ipv4 { IpNet::V4(ipnet::Ipv4Net::default()) } else { IpNet::V6(ipnet::Ipv6Net::default()) }
}

/// The gateway where IPAM names none: the subnet's first address behind the
/// network address.
fn first_host(address: &IpNet) -> Option<IpAddr> {
    match address {
        IpNet::V4(net) => {
            u32::from(net.network()).checked_add(1).map(|next| IpAddr::V4(next.into()))
        }
        IpNet::V6(net) => {
            u128::from(net.network()).checked_add(1).map(|next| IpAddr::V6(next.into()))
        }
    }
}

/// The bridge's own address for a container address: its gateway, in its
/// subnet.
pub(super) fn gateway_network(ip: &IpConfig) -> Option<IpNet> {
    let gateway = ip.gateway?;
    if gateway.is_ipv4() != ip.address.addr().is_ipv4() {
        return None;
    }
    IpNet::new(gateway, ip.address.prefix_len()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    #[test]
    fn the_gateway_defaults_to_the_first_host() {
        assert_eq!(first_host(&net("10.1.2.77/24")), Some("10.1.2.1".parse().unwrap()));
        assert_eq!(first_host(&net("fd00::77/64")), Some("fd00::1".parse().unwrap()));
        assert_eq!(first_host(&net("255.255.255.255/32")), None);
    }

    #[test]
    fn each_family_gets_one_default_route() {
        let ip = |address: &str, gateway: &str| IpConfig {
            gateway: Some(gateway.parse().unwrap()),
            ..IpConfig::new(net(address))
        };
        let mut result = CniResult {
            ips: vec![ip("10.1.0.2/24", "10.1.0.1"), ip("fd00::2/64", "fd00::1")],
            routes: vec![Route::new(net("0.0.0.0/0"), Some("10.1.0.9".parse().unwrap()))],
            ..CniResult::default()
        };
        add_default_routes(&mut result);
        add_default_routes(&mut result);
        assert_eq!(result.routes.len(), 2);
        assert_eq!(result.routes[1], Route::new(net("::/0"), Some("fd00::1".parse().unwrap())));
    }

    #[test]
    fn the_bridge_takes_only_gateways_of_the_same_family() {
        let mut ip = IpConfig::new(net("10.1.0.2/24"));
        assert_eq!(gateway_network(&ip), None);
        ip.gateway = Some("10.1.0.1".parse().unwrap());
        assert_eq!(gateway_network(&ip), Some(net("10.1.0.1/24")));
        ip.gateway = Some("fd00::1".parse().unwrap());
        assert_eq!(gateway_network(&ip), None);
    }
}
