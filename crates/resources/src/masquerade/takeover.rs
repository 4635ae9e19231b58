//! What the Go plugins made for the same purpose, under their names
//! (containernetworking/plugins `pkg/ip`, `ipmasq_iptables_linux.go` and
//! `ipmasq_nftables_linux.go`).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{
    Batch, ChainId, Comparison, Expression, Family, IpVersion, NftSocket, PayloadBase, Rule,
    TableId,
};
use podwire_plugin::{OwnerMark, shorten};
use podwire_spec::error::Error;

use crate::nft::legacy::{LegacyChain, delete, push_removal, xtables};
use crate::nft::owner_of;

/// Where the nftables backend keeps one rule for each address.
const CHECKS: ChainId<'static> =
    TableId::new(Family::Inet, "cni_plugins_masquerade").chain("masq_checks");
/// The chain of the iptables backend that jumps to those of the containers.
const CALLER: &str = "POSTROUTING";
/// The two tables of the iptables backend.
pub(super) const NAT: [TableId<'static>; 2] =
    [TableId::new(Family::Ipv4, "nat"), TableId::new(Family::Ipv6, "nat")];

/// The chain of the iptables backend: one for each network and container,
/// shared by all interfaces that the container has on the network.
pub(super) fn chain_name(network: &str, container: &str) -> String {
    format!("CNI-{}", shorten(&[network, container], 24))
}

/// The network and the container that a comment of the iptables backend names.
fn parse_comment(comment: &str) -> Option<(&str, &str)> {
    let (network, container) = comment.strip_prefix("name: \"")?.split_once("\" id: \"")?;
    Some((network, container.strip_suffix('"')?))
}

/// Rules of the nftables backend that carry this mark.
fn rules_of(socket: &mut NftSocket, mark: &OwnerMark) -> Result<Vec<Rule>, NetlinkError> {
    let mut rules = socket.rules(CHECKS)?;
    rules.retain(|rule| owner_of(&rule.userdata) == Some(*mark));
    Ok(rules)
}

/// Adds the removal of an owner's rules of the nftables backend to a batch.
pub(super) fn push_rules(
    socket: &mut NftSocket,
    batch: &mut Batch,
    mark: &OwnerMark,
) -> Result<(), NetlinkError> {
    for rule in rules_of(socket, mark)? {
        delete(batch, &rule);
    }
    Ok(())
}

/// Adds the removal of a container's chain of the iptables backend to a batch.
///
/// With addresses, only the jumps for these go, and the chain with the last
/// jump: other interfaces of the container may be on the same network, and the
/// chain is theirs too. Without, all of it goes, since nothing tells whose a
/// jump is, and a leak would outlast the container.
pub(super) fn push_chain(
    socket: &mut NftSocket,
    batch: &mut Batch,
    name: &str,
    addresses: &[IpNet],
) -> Result<(), NetlinkError> {
    for table in NAT {
        if socket.chain(table.chain(name))?.is_none() {
            continue;
        }
        let (own, others): (Vec<_>, Vec<_>) = jumps(socket, table, name)?
            .into_iter()
            .partition(|rule| addresses.iter().any(|address| is_from(rule, *address)));
        if addresses.is_empty() || others.is_empty() {
            let chain = name.to_owned();
            let callers = &[CALLER];
            let chain = LegacyChain { family: table.family, table: "nat", chain, callers };
            push_removal(socket, batch, &chain)?;
        } else {
            for rule in &own {
                delete(batch, rule);
            }
        }
    }
    Ok(())
}

fn jumps(
    socket: &mut NftSocket,
    table: TableId<'_>,
    chain: &str,
) -> Result<Vec<Rule>, NetlinkError> {
    let mut rules = socket.rules(table.chain(CALLER))?;
    rules.retain(|rule| rule.target_chain() == Some(chain));
    Ok(rules)
}

/// Whether a rule is for packets from this address, or from its network as
/// old releases wrote it.
fn is_from(rule: &Rule, address: IpNet) -> bool {
    let source_offset = if address.addr().is_ipv4() { 12 } else { 8 };
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let (host, network) = (octets(address.addr()), octets(address.network()));
    let mut loaded_source = false;
    for expression in &rule.expressions {
        match expression {
            Expression::Payload { base, offset, .. } => {
                loaded_source = *base == PayloadBase::Network && *offset == source_offset;
            }
            Expression::Compare { comparison: Comparison::Equal, value, .. } if loaded_source => {
                // Whole bytes of a prefix are compared by their number alone.
                let value = value.as_bytes();
                return value == host || (!value.is_empty() && network.starts_with(value));
            }
            Expression::Bitwise { .. } => {}
            _ => loaded_source = false,
        }
    }
    false
}

/// Whether the Go plugins' rules for an address are in place, in either
/// backend.
pub(super) fn serves(
    socket: &mut NftSocket,
    mark: &OwnerMark,
    chain: &str,
    address: IpNet,
) -> Result<bool, NetlinkError> {
    if rules_of(socket, mark)?.iter().any(|rule| is_from(rule, address)) {
        return Ok(true);
    }
    for table in NAT {
        if (table.family == Family::Ipv4) == address.addr().is_ipv4()
            && jumps(socket, table, chain)?.iter().any(|rule| is_from(rule, address))
        {
            // Both of its rules: accept within the subnet, masquerade the rest.
            return Ok(socket.rules(table.chain(chain))?.len() >= 2);
        }
    }
    Ok(false)
}

/// The owners that have rules of the nftables backend.
pub(super) fn marks(socket: &mut NftSocket) -> Result<BTreeSet<OwnerMark>, NetlinkError> {
    Ok(socket.rules(CHECKS)?.iter().filter_map(|rule| owner_of(&rule.userdata)).collect())
}

/// The iptables backend's chains that comments prove to be of this network,
/// with their containers.
pub(super) fn chains(
    socket: &mut NftSocket,
    network: &str,
) -> Result<BTreeMap<String, String>, NetlinkError> {
    let mut found = BTreeMap::new();
    for table in NAT {
        for rule in socket.rules(table.chain(CALLER))? {
            let comment = rule.comment().unwrap_or_default();
            let Some((of, container)) = parse_comment(&comment) else { continue };
            let chain = chain_name(of, container);
            if of == network && rule.target_chain() == Some(chain.as_str()) {
                found.insert(chain, container.to_owned());
            }
        }
    }
    Ok(found)
}

const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

/// Removes a container's chain from legacy xtables, with all that jumps there:
/// jumps aren't told apart here. Nothing is run where there are none.
pub(super) fn remove_xtables_chain(chain: &str) -> Result<(), Error> {
    for version in VERSIONS {
        xtables::remove_chain(version, "nat", chain)?;
    }
    Ok(())
}

/// Whether the same stands in legacy xtables.
pub(super) fn xtables_serve(chain: &str, address: IpNet) -> Result<bool, Error> {
    let version = if address.addr().is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
    let rules = xtables::rules(version, "nat")?.unwrap_or_default();
    Ok(is_served(&rules, chain, address))
}

/// Whether such rules hold the jump for an address, and both rules of the chain.
fn is_served(rules: &[Vec<String>], chain: &str, address: IpNet) -> bool {
    let of = |from: &str| {
        let from = from.to_owned();
        rules.iter().filter(move |rule| {
            rule.first().is_some_and(|command| command == "-A") && rule.get(1) == Some(&from)
        })
    };
    let is_source = |rule: &Vec<String>| {
        let mut words = rule.iter().skip_while(|word| *word != "-s").skip(1);
        let source = words.next().and_then(|word| word.parse::<IpNet>().ok());
        source.is_some_and(|source| {
            source == IpNet::from(address.addr()) || source == address.trunc()
        })
    };
    of(CALLER).any(|rule| xtables::jumps_to(rule, chain) && is_source(rule))
        && of(chain).count() >= 2
}

/// The chains in legacy xtables that comments prove to be of this network,
/// with their containers.
pub(super) fn xtables_chains(network: &str) -> Result<BTreeMap<String, String>, Error> {
    let mut found = BTreeMap::new();
    for version in VERSIONS {
        for rule in xtables::rules(version, "nat")?.unwrap_or_default() {
            let named = xtables::comment(&rule).and_then(parse_comment);
            let Some((of, container)) = named else { continue };
            let chain = chain_name(of, container);
            if of == network && xtables::jumps_to(&rule, &chain) {
                found.insert(chain, container.to_owned());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_go_plugins() {
        assert_eq!(chain_name("n1", "c1"), "CNI-7be53730afe4dc6eb2178d03");
        assert_eq!(parse_comment("name: \"n1\" id: \"c1\""), Some(("n1", "c1")));
        assert_eq!(parse_comment("name: n1 id: c1"), None);
        assert_eq!(parse_comment("kube-proxy"), None);
    }

    #[test]
    fn a_jump_and_both_rules_of_its_chain_serve_an_address() {
        let lines = [
            "-P POSTROUTING ACCEPT",
            "-N CNI-1",
            "-A POSTROUTING -s 10.1.0.2/32 -m comment --comment x -j CNI-1",
            "-A CNI-1 -d 10.1.0.0/24 -j ACCEPT",
            "-A CNI-1 ! -d 224.0.0.0/4 -j MASQUERADE",
        ];
        let rules = |lines: &[&str]| -> Vec<Vec<String>> {
            lines.iter().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
        };
        let net = |text: &str| text.parse::<IpNet>().unwrap();
        assert!(is_served(&rules(&lines), "CNI-1", net("10.1.0.2/24")));
        assert!(!is_served(&rules(&lines), "CNI-1", net("10.1.0.3/24")));
        assert!(!is_served(&rules(&lines), "CNI-2", net("10.1.0.2/24")));
        for missing in 2..lines.len() {
            let mut fewer = lines.to_vec();
            fewer.remove(missing);
            assert!(!is_served(&rules(&fewer), "CNI-1", net("10.1.0.2/24")), "{missing}");
        }
        assert!(!is_served(&rules(&["-A", "-A POSTROUTING -s", ""]), "CNI-1", net("10.1.0.2/24")));
    }

    #[test]
    fn a_rule_is_from_its_address_and_not_from_a_neighbours() {
        let net = |text: &str| text.parse::<IpNet>().unwrap();
        let rule = |text: &str| {
            Rule::new(NAT[0].chain(CALLER)).source(Comparison::Equal, net(text)).masquerade()
        };
        assert!(is_from(&rule("10.1.0.2/32"), net("10.1.0.2/24")));
        assert!(!is_from(&rule("10.1.0.3/32"), net("10.1.0.2/24")));
        // The form of releases before 0.8.
        assert!(is_from(&rule("10.1.0.0/24"), net("10.1.0.2/24")));
        assert!(!is_from(&rule("10.2.0.0/24"), net("10.1.0.2/24")));
        let to = Rule::new(NAT[0].chain(CALLER))
            .destination(Comparison::Equal, net("10.1.0.2/32"))
            .masquerade();
        assert!(!is_from(&to, net("10.1.0.2/24")));
        let sixth = Rule::new(NAT[1].chain(CALLER))
            .source(Comparison::Equal, net("fd00::2/128"))
            .masquerade();
        assert!(is_from(&sixth, net("fd00::2/64")));
        assert!(!is_from(&sixth, net("fd00::3/64")));
    }
}
