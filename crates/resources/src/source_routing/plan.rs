//! What source-based routing wants of a namespace, computed from what is
//! there. No kernel.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use podwire_netlink::route::family::{Family, Scope, TABLE_MAIN};
use podwire_netlink::route::routes::RouteProtocol;
use podwire_netlink::route::{Route, Rule, rule::RuleAction};

/// The first table that is taken for an address.
pub(super) const FIRST_TABLE: u32 = 100;
/// `default`, `main` and `local`: every packet's tables.
const RESERVED: std::ops::RangeInclusive<u32> = 253..=255;
/// `RTPROT_RA`: made, renewed and forgotten by the kernel with what routers
/// announce.
const ANNOUNCED: RouteProtocol = RouteProtocol(9);

/// An address whose packets get a table of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The address in its subnet.
    pub address: IpNet,
    /// The router for everything else, if there is one.
    pub gateway: Option<IpAddr>,
    /// Whether the configuration named it, so that a default route that is
    /// there doesn't count.
    pub is_configured: bool,
}

impl Source {
    fn family(&self) -> Family {
        Family::of(self.address.addr())
    }

    /// This one address: a subnet would catch its neighbours' packets too.
    pub(super) fn host(&self) -> IpNet {
        IpNet::from(self.address.addr())
    }

    /// The rule that leads its packets to a table.
    pub(super) fn rule(&self, table: u32) -> Rule {
        Rule::from_source(self.host(), table)
    }

    /// The table that its packets are led to already.
    pub(super) fn table(&self, rules: &[Rule], wanted: Option<u32>) -> Option<u32> {
        let mut own = rules.iter().filter(|rule| {
            rule.source == Some(self.host())
                && is_ours(rule)
                && wanted.is_none_or(|one| one == rule.table)
        });
        own.next().map(|rule| rule.table)
    }
}

/// Whether a rule looks like those that are made here: one source, one table,
/// nothing else.
pub(super) fn is_ours(rule: &Rule) -> bool {
    rule.source.is_some_and(|source| source.prefix_len() == source.max_prefix_len())
        && rule.destination.is_none()
        && rule.input.is_none()
        && rule.output.is_none()
        && rule.mark.is_none()
        && !rule.inverted
        && rule.action == RuleAction::TO_TABLE
}

/// Whether a table is one that DEL may take rules and routes of.
pub(super) fn is_takeable(table: u32) -> bool {
    table >= FIRST_TABLE && !RESERVED.contains(&table)
}

/// The tables that anything uses, and the search for one that nothing does.
#[derive(Debug, Default)]
pub(super) struct Tables(BTreeSet<u32>);

impl Tables {
    pub(super) fn new(rules: &[Rule], routes: &[Route]) -> Self {
        let of_rules = rules.iter().map(|rule| rule.table);
        Self(of_rules.chain(routes.iter().map(|route| route.table)).collect())
    }

    /// The first free one; it isn't free any more.
    pub(super) fn take(&mut self) -> Option<u32> {
        let free = (FIRST_TABLE..=u32::MAX)
            .find(|table| !RESERVED.contains(table) && !self.0.contains(table))?;
        self.0.insert(free);
        Some(free)
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => Ipv6Addr::is_unicast_link_local(&address) || address.is_multicast(),
    }
}

/// Whether an address gets a table: link-local ones mean the link, not a way.
pub fn needs_table(address: IpAddr) -> bool {
    !is_link_local(address) && !address.is_loopback()
}

/// The routes of the main table that are moved: those that leave by the link
/// and aren't the link's own business.
pub(super) fn movable(routes: &[Route], link: u32, sources: &[Source]) -> Vec<Route> {
    let is_movable = |route: &&Route| {
        route.table == TABLE_MAIN
            && route.output == Some(link)
            && route.protocol != ANNOUNCED
            && (route.is_default() || !is_link_local(route.destination.addr()))
            && sources.iter().any(|source| source.family() == route.family())
    };
    routes.iter().filter(is_movable).cloned().collect()
}

/// The routes that an address has in its table: its default route, and copies
/// of those of the main table that are its own or nobody's in particular.
pub(super) fn routes_of(
    source: &Source,
    sources: &[Source],
    main: &[Route],
    table: u32,
    link: u32,
) -> Vec<Route> {
    let belongs = |route: &&Route| {
        if route.family() != source.family() {
            return false;
        }
        if let Some(preferred) = route.preferred_source {
            return preferred == source.address.addr();
        }
        match route.gateway {
            Some(_) if source.is_configured && route.is_default() => false,
            Some(gateway) => {
                let nearest = sources.iter().any(|other| other.address.contains(&gateway));
                source.address.contains(&gateway) || !nearest
            }
            // The kernel's route to another address's subnet is none of ours.
            None if route.protocol == RouteProtocol::KERNEL => {
                route.destination.contains(&source.address.addr())
            }
            None => true,
        }
    };
    let mut copies: Vec<_> = main.iter().filter(belongs).cloned().collect();
    for copy in &mut copies {
        copy.table = table;
        // By hand now, and not to go with the address alone.
        copy.protocol = RouteProtocol::BOOT;
    }
    // What a gateway is reached by must be there before it.
    copies.sort_by_key(|route| route.gateway.is_some());
    let has_default = copies.iter().any(|route| route.is_default() && route.gateway.is_some());
    if let Some(gateway) = source.gateway.filter(|_| !has_default) {
        let mut default = Route::new(source.family().everything());
        default.gateway = Some(gateway);
        default.table = table;
        default.output = Some(link);
        let on_link =
            |route: &Route| route.gateway.is_none() && route.destination.contains(&gateway);
        default.on_link = !copies.iter().any(on_link);
        copies.push(default);
    }
    copies
}

/// What becomes of the routes in the main table: which go, and which are
/// replaced by one that names its source. With source hints the routes to
/// what is on the link stay, so that packets without a source still find it.
pub(super) fn main_after(
    main: &[Route],
    sources: &[Source],
    add_source_hints: bool,
) -> (Vec<Route>, Vec<Route>) {
    let (mut going, mut hinted) = (Vec::new(), Vec::new());
    for route in main {
        let is_on_link = route.gateway.is_none()
            && (route.scope == Scope::LINK || route.family() == Family::V6)
            && !route.is_default();
        if !add_source_hints || !is_on_link {
            going.push(route.clone());
            continue;
        }
        let own = sources.iter().find(|source| route.destination == source.address.trunc());
        if let Some(source) = own.filter(|_| route.preferred_source.is_none()) {
            let mut hint = route.clone();
            hint.preferred_source = Some(source.address.addr());
            hint.protocol = RouteProtocol::BOOT;
            hinted.push(hint);
        }
    }
    // Those behind a gateway first: the kernel needs none of the others then.
    going.sort_by_key(|route| route.gateway.is_none());
    (going, hinted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: u32 = 7;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    fn source(address: &str, gateway: Option<&str>) -> Source {
        let gateway = gateway.map(|text| text.parse().unwrap());
        Source { address: net(address), gateway, is_configured: false }
    }

    fn route(destination: &str, gateway: Option<&str>, preferred: Option<&str>) -> Route {
        let mut route = Route::new(net(destination));
        route.gateway = gateway.map(|text| text.parse().unwrap());
        route.preferred_source = preferred.map(|text| text.parse().unwrap());
        route.output = Some(LINK);
        if gateway.is_none() {
            route.scope = Scope::LINK;
            route.protocol = RouteProtocol::KERNEL;
        }
        route
    }

    fn shown(routes: &[Route]) -> Vec<String> {
        routes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn b113_the_next_free_table_is_taken_and_no_reserved_one() {
        let rules = [Rule::new(Family::V4, 100), Rule::new(Family::V6, 102)];
        let mut held = route("10.9.0.0/16", None, None);
        held.table = 101;
        let mut tables = Tables::new(&rules, &[held]);
        assert_eq!((tables.take(), tables.take()), (Some(103), Some(104)));
        let many: Vec<_> = (100..253).map(|table| Rule::new(Family::V4, table)).collect();
        assert_eq!(Tables::new(&many, &[]).take(), Some(256));
        assert!(!is_takeable(99) && is_takeable(100) && !is_takeable(254) && is_takeable(256));
    }

    #[test]
    fn b113_each_address_has_its_own_routes_and_those_of_nobody() {
        let sources =
            [source("10.1.0.2/24", Some("10.1.0.1")), source("10.2.0.2/24", Some("10.2.0.1"))];
        let mut static_route = route("10.8.0.0/16", None, None);
        static_route.protocol = RouteProtocol::BOOT;
        let main = [
            route("0.0.0.0/0", Some("10.1.0.1"), None),
            route("10.1.0.0/24", None, Some("10.1.0.2")),
            route("10.2.0.0/24", None, Some("10.2.0.2")),
            static_route,
            route("10.7.0.0/16", Some("10.2.0.9"), None),
            route("fd00:1::/64", None, None),
        ];
        let of = |index: usize| routes_of(&sources[index], &sources, &main, 100, LINK);
        assert_eq!(
            shown(&of(0)),
            ["10.1.0.0/24 table 100", "10.8.0.0/16 table 100", "default via 10.1.0.1 table 100"]
        );
        assert_eq!(
            shown(&of(1)),
            [
                "10.2.0.0/24 table 100",
                "10.8.0.0/16 table 100",
                "10.7.0.0/16 via 10.2.0.9 table 100",
                "default via 10.2.0.1 table 100"
            ]
        );
        assert!(of(1).iter().all(|route| !route.on_link && route.output == Some(LINK)));
    }

    #[test]
    fn b113_without_a_gateway_there_is_no_default_and_a_configured_one_wins() {
        let main = [route("10.1.0.0/24", None, Some("10.1.0.2"))];
        let lonely = source("10.1.0.2/24", None);
        let routes = routes_of(&lonely, std::slice::from_ref(&lonely), &main, 100, LINK);
        assert_eq!(shown(&routes), ["10.1.0.0/24 table 100"]);
        let configured = Source { is_configured: true, ..source("10.1.0.2/24", Some("10.1.0.9")) };
        let main = [main[0].clone(), route("0.0.0.0/0", Some("10.1.0.1"), None)];
        let routes = routes_of(&configured, std::slice::from_ref(&configured), &main, 100, LINK);
        assert_eq!(shown(&routes)[1..], ["default via 10.1.0.9 table 100"]);
    }

    #[test]
    fn b113_ipv6_has_a_rule_for_one_address_and_link_local_is_left_alone() {
        let sources = [source("fd00::2/64", Some("fe80::1"))];
        assert_eq!(sources[0].rule(100).source, Some(net("fd00::2/128")));
        let mut announced = route("::/0", Some("fe80::9"), None);
        announced.protocol = ANNOUNCED;
        let all = [route("fd00::/64", None, None), route("fe80::/64", None, None), announced];
        let main = movable(&all, LINK, &sources);
        assert_eq!(shown(&main), ["fd00::/64"]);
        let routes = routes_of(&sources[0], &sources, &main, 100, LINK);
        assert_eq!(shown(&routes), ["fd00::/64 table 100", "default (IPv6) via fe80::1 table 100"]);
        assert!(routes[1].on_link);
        assert!(!needs_table("fe80::2".parse().unwrap()));
        assert!(!needs_table("169.254.0.2".parse().unwrap()));
        assert!(needs_table("fd00::2".parse().unwrap()));
    }

    #[test]
    fn source_hints_keep_what_is_on_the_link() {
        let sources = [source("10.1.0.2/24", Some("10.1.0.1")), source("fd00::2/64", None)];
        let main = [
            route("0.0.0.0/0", Some("10.1.0.1"), None),
            route("10.1.0.0/24", None, Some("10.1.0.2")),
            route("fd00::/64", None, None),
        ];
        let (going, hinted) = main_after(&main, &sources, true);
        assert_eq!(shown(&going), ["default via 10.1.0.1"]);
        assert_eq!(shown(&hinted), ["fd00::/64"]);
        assert_eq!(hinted[0].preferred_source, Some("fd00::2".parse().unwrap()));
        let (going, hinted) = main_after(&main, &sources, false);
        assert_eq!((going.len(), hinted.len()), (3, 0));
    }

    #[test]
    fn rules_of_others_are_not_ours() {
        let own = source("10.1.0.2/24", None).rule(100);
        assert!(is_ours(&own));
        let other = |change: fn(&mut Rule)| {
            let mut rule = own.clone();
            change(&mut rule);
            rule
        };
        assert!(!is_ours(&other(|rule| rule.source = Some("10.1.0.0/24".parse().unwrap()))));
        assert!(!is_ours(&other(|rule| rule.mark = Some((1, 1)))));
        assert!(!is_ours(&other(|rule| rule.input = Some("eth1".into()))));
        assert!(!is_ours(&other(|rule| rule.inverted = true)));
        assert_eq!(source("10.1.0.2/24", None).table(std::slice::from_ref(&own), None), Some(100));
        assert_eq!(source("10.1.0.2/24", None).table(&[own], Some(7)), None);
    }
}
