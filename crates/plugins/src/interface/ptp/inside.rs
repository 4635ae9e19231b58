//! What the container's end is given: everything goes through the host's end,
//! the container's own subnet too.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use podwire_netlink::route::family::Scope;
use podwire_netlink::route::routes::Route;
use podwire_resources::interface::Interface;
use podwire_spec::result::{CniResult, IpConfig};

/// The host's end for IPv6 addresses that IPAM gave no gateway for. Link-local,
/// so that it costs nobody an address and may stand on every pair.
const NAMELESS_GATEWAY: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1));

/// The container's addresses as they are to be reached, one each.
pub(super) fn paths(result: &CniResult, ifname: &str) -> Vec<(IpNet, Option<IpAddr>)> {
    let path = |ip: &&IpConfig| {
        let address = ip.address;
        let same_family = |via: &IpAddr| via.is_ipv4() == address.addr().is_ipv4();
        let nameless = || address.addr().is_ipv6().then_some(NAMELESS_GATEWAY);
        (address, ip.gateway.filter(same_family).or_else(nameless))
    };
    result.container_addresses(ifname).addresses.iter().map(path).collect()
}

/// Addresses and routes of the container's end. Without a gateway an IPv4
/// destination is on the link: the host answers for it (proxy ARP).
pub(super) fn inside(result: &CniResult, ifname: &str) -> Interface {
    let paths = paths(result, ifname);
    let mut routed = result.clone();
    for ip in &mut routed.ips {
        let path = paths.iter().find(|(address, _)| *address == ip.address);
        ip.gateway = path.and_then(|(_, gateway)| *gateway).or(ip.gateway);
    }
    let mut interface = Interface::from_result(&routed, ifname);
    let mut link_routes: Vec<Route> = Vec::new();
    let mut subnets: Vec<Route> = Vec::new();
    for (address, gateway) in &paths {
        let mut subnet = Route::new(*address);
        subnet.preferred_source = Some(address.addr());
        if let Some(gateway) = gateway {
            let mut route = Route::new(IpNet::from(*gateway));
            route.scope = Scope::LINK;
            route.preferred_source = Some(address.addr());
            push(&mut link_routes, route);
            subnet.gateway = Some(*gateway);
        } else {
            subnet.scope = Scope::LINK;
        }
        let is_alone = address.prefix_len() == address.max_prefix_len();
        if !is_alone && Some(subnet.destination.addr()) != *gateway {
            push(&mut subnets, subnet);
        }
    }
    for route in &mut interface.routes {
        // Our gateways have routes of their own, whatever the subnets say; any
        // other is reached over the link, since no subnet is on it.
        let is_ours = |via| link_routes.iter().any(|link| link.destination.addr() == via);
        route.on_link = route.gateway.is_some_and(|via| !is_ours(via));
    }
    link_routes.append(&mut subnets);
    interface.routes.splice(0..0, link_routes);
    // The subnet isn't on this link.
    interface.prefix_routes = false;
    interface.announce = false;
    interface
}

/// Two addresses may share their gateway and their subnet.
fn push(routes: &mut Vec<Route>, route: Route) {
    if !routes.iter().any(|known| known.destination == route.destination) {
        routes.push(route);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podwire_spec::result::VersionedResult;
    use podwire_spec::version::SpecVersion;

    fn routes(ips: &str) -> Vec<String> {
        let json = format!(
            r#"{{"cniVersion":"1.1.0","interfaces":[{{"name":"v"}},{{"name":"eth0","sandbox":"/n"}}],
                "ips":{ips},"routes":[{{"dst":"0.0.0.0/0"}},{{"dst":"::/0"}}]}}"#
        );
        let result = VersionedResult::parse(&json, SpecVersion::V1_1_0).unwrap();
        let interface = inside(&result.into_newest().unwrap(), "eth0");
        assert!(!interface.prefix_routes);
        let show = |route: &Route| {
            let flag = if route.on_link { " onlink" } else { "" };
            let source = route.preferred_source.map(|from| format!(" from {from}"));
            format!("{route}{}{flag}", source.unwrap_or_default())
        };
        interface.routes.iter().map(show).collect()
    }

    #[test]
    fn everything_goes_through_the_gateway() {
        assert_eq!(
            routes(r#"[{"address":"10.1.0.2/24","gateway":"10.1.0.1","interface":1}]"#),
            [
                "10.1.0.1/32 from 10.1.0.2",
                "10.1.0.0/24 via 10.1.0.1 from 10.1.0.2",
                "default via 10.1.0.1",
                "default (IPv6)"
            ]
        );
    }

    #[test]
    fn an_address_alone_has_no_subnet() {
        assert_eq!(
            routes(r#"[{"address":"10.1.0.2/32","gateway":"169.254.1.1","interface":1}]"#),
            ["169.254.1.1/32 from 10.1.0.2", "default via 169.254.1.1", "default (IPv6)"]
        );
    }

    #[test]
    fn without_a_gateway_ipv4_is_on_the_link_and_ipv6_goes_through_a_link_local_one() {
        assert_eq!(
            routes(
                r#"[{"address":"10.1.0.2/24","interface":1},{"address":"fd00::2/64","interface":1}]"#
            ),
            [
                "fe80::1/128 from fd00::2",
                "10.1.0.0/24 from 10.1.0.2",
                "fd00::/64 via fe80::1 from fd00::2",
                "default",
                "default (IPv6) via fe80::1"
            ]
        );
    }

    #[test]
    fn two_addresses_may_share_their_gateway() {
        let both = r#"[{"address":"10.1.0.2/24","gateway":"10.1.0.1","interface":1},
            {"address":"10.1.0.3/24","gateway":"10.1.0.1","interface":1}]"#;
        assert_eq!(routes(both).len(), 4);
    }
}
