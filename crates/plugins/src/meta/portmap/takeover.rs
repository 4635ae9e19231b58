//! What the Go plugin made, in any of its versions and with either backend.
//!
//! | where | what | found by |
//! |---|---|---|
//! | `ip nat`, `ip6 nat` (iptables-nft) | chain `CNI-DN-…` and the rules of `CNI-HOSTPORT-DNAT` that jump to it; `CNI-SN-…` of old | name: SHA-512 of network and container |
//! | legacy xtables | the same | the same |
//! | `ip cni_hostport`, `ip6 cni_hostport` | rules of three chains | comment: the container |
//!
//! DEL removes them, CHECK takes them for the attachment's mappings. Garbage
//! collection removes a chain whose entry rule names this network and a
//! container that isn't among the valid ones; rules in `cni_hostport` don't
//! name their network: they are reported, and stay until their container's DEL.

use std::collections::BTreeMap;
use std::net::IpAddr;

use podwire_netlink::nft::{Batch, Expression, Family, IpVersion, NftSocket, Rule, TableId};
use podwire_plugin::{Belongs, Difference, Made, Resource, shorten};
use podwire_resources::nft::legacy::{self, LegacyChain, xtables};
use podwire_resources::nft::retrying;
use podwire_resources::{Kernel, refused};
use podwire_spec::Error;

use super::forwarding::Forwarding;
use super::layout::{self, VERSIONS};

/// The chain of the Go plugin that all its entry rules are in.
const ENTRY_CHAIN: &str = "CNI-HOSTPORT-DNAT";
/// The same for masquerading, up to version 0.7.
const OLD_ENTRY_CHAIN: &str = "CNI-HOSTPORT-SNAT";
/// The chains of `cni_hostport` that hold rules of containers, in all versions.
const OWNED_CHAINS: [&str; 3] = ["hostports", "hostip_hostports", "masquerading"];

/// The chain of the Go plugin for a container on a network; `kind` is `DN` or,
/// of old, `SN`.
fn chain_name(kind: &str, network: &str, container: &str) -> String {
    format!("CNI-{kind}-{}", shorten(&[network, container], 21))
}

/// What the Go plugin made for one container on one network.
pub(super) struct GoMappings {
    /// The network.
    pub(super) network: String,
    /// The container.
    pub(super) container: String,
    /// The container's addresses on this network, if they are known: rules of
    /// its other networks in `cni_hostport` bear the same comment.
    pub(super) addresses: Vec<IpAddr>,
    /// Whether rules that name only the container may be removed.
    pub(super) by_container: bool,
}

impl GoMappings {
    fn chains(&self) -> Vec<LegacyChain> {
        let mut chains = Vec::with_capacity(4);
        for version in VERSIONS {
            for (kind, callers) in
                [("DN", &[ENTRY_CHAIN] as &'static [_]), ("SN", &[OLD_ENTRY_CHAIN])]
            {
                chains.push(LegacyChain {
                    family: layout::family(version),
                    table: "nat",
                    chain: chain_name(kind, &self.network, &self.container),
                    callers,
                });
            }
        }
        chains
    }

    fn remove_rules(&self, socket: &mut NftSocket) -> Result<(), Error> {
        retrying(|| {
            let generation = socket.generation()?;
            let mut batch = Batch::new();
            for version in VERSIONS {
                for rule in socket.table_rules(go_table(layout::family(version)))? {
                    if self.owns(&rule) {
                        legacy::delete(&mut batch, &rule);
                    }
                }
            }
            if !batch.is_empty() {
                batch.require_generation(generation);
                socket.commit(&batch)?;
            }
            Ok(())
        })
    }

    fn owns(&self, rule: &Rule) -> bool {
        is_owned(rule)
            && rule.comment().as_deref() == Some(&self.container)
            && (self.addresses.is_empty()
                || self.addresses.iter().any(|address| mentions(rule, *address)))
    }

    /// Whether the Go plugin's objects are there for these mappings. They are
    /// counted, not compared: what was made by another program is not ours to
    /// judge by the letter.
    pub(super) fn cover(
        &self,
        socket: &mut NftSocket,
        forwarding: &Forwarding,
    ) -> Result<bool, Error> {
        let family = layout::family(forwarding.version);
        let count = forwarding.mappings.len();
        let nat = host_table(forwarding.version);
        let own = chain_name("DN", &self.network, &self.container);
        let mut jumps = |from: &str, to: &str| -> Result<bool, Error> {
            let rules = socket.rules(nat.chain(from)).map_err(refused)?;
            Ok(rules.iter().any(|rule| rule.target_chain() == Some(to)))
        };
        if jumps(ENTRY_CHAIN, &own)? && jumps("PREROUTING", ENTRY_CHAIN)? {
            let rules = socket.rules(nat.chain(&own)).map_err(refused)?;
            return Ok(rules.iter().filter(|rule| translates(rule)).count() >= count);
        }
        let rules = socket.table_rules(go_table(family)).map_err(refused)?;
        let entered = rules.iter().any(|rule| rule.chain == "prerouting");
        let own = rules.iter().filter(|rule| self.owns(rule) && translates(rule)).count();
        if entered && own >= count {
            return Ok(true);
        }
        self.cover_in_legacy(forwarding.version, count)
    }

    /// The same in legacy xtables, where they are in use.
    fn cover_in_legacy(&self, version: IpVersion, count: usize) -> Result<bool, Error> {
        let rules = xtables::rules(version, "nat")?.unwrap_or_default();
        let own = chain_name("DN", &self.network, &self.container);
        let count_of = |from: &str, to: &str| {
            let is_of = |rule: &&Vec<String>| rule.get(1).is_some_and(|chain| chain == from);
            rules.iter().filter(is_of).filter(|rule| xtables::jumps_to(rule, to)).count()
        };
        Ok(count_of("PREROUTING", ENTRY_CHAIN) > 0
            && count_of(ENTRY_CHAIN, &own) > 0
            && count_of(&own, "DNAT") >= count)
    }
}

/// Whether a rule of `cni_hostport` may be a container's.
pub(super) fn is_owned(rule: &Rule) -> bool {
    OWNED_CHAINS.contains(&rule.chain.as_str())
}

/// The host's own table, which iptables-nft works in.
pub(super) fn host_table(version: IpVersion) -> TableId<'static> {
    TableId::new(layout::family(version), "nat")
}

/// The table of the Go plugin's nftables backend.
pub(super) fn go_table(family: Family) -> TableId<'static> {
    TableId::new(family, "cni_hostport")
}

/// Whether a rule holds the address, to compare with or to translate to.
fn mentions(rule: &Rule, address: IpAddr) -> bool {
    let bytes = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    rule.expressions.iter().any(|expression| match expression {
        Expression::Compare { value, .. } | Expression::Immediate { value, .. } => {
            value.as_bytes() == bytes
        }
        _ => false,
    })
}

fn translates(rule: &Rule) -> bool {
    rule.expressions.iter().any(|expression| match expression {
        Expression::Nat { .. } => true,
        Expression::XtTarget { name, .. } => name == "DNAT",
        _ => false,
    })
}

impl Resource<Kernel> for GoMappings {
    fn describe(&self) -> String {
        format!("port mappings that the Go plugin made for container {}", self.container)
    }

    fn belongs(&self) -> Belongs {
        Belongs::Attachment
    }

    fn make(&mut self, _: &mut Kernel) -> Result<Made, Error> {
        Ok(Made::Found)
    }

    fn check(&self, _: &mut Kernel) -> Result<Vec<Difference>, Error> {
        Ok(Vec::new())
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        let socket = kernel.nft()?;
        let chains = self.chains();
        // A kernel without nftables may still have legacy xtables.
        if socket.generation().is_ok() {
            legacy::remove_chains(socket, &chains)?;
            if self.by_container {
                self.remove_rules(socket)?;
            }
        }
        for version in VERSIONS {
            let family = layout::family(version);
            for chain in chains.iter().filter(|chain| chain.family == family) {
                xtables::remove_chain(version, chain.table, &chain.chain)?;
            }
        }
        Ok(())
    }
}

/// Reads the comment of an entry rule: `dnat name: "NETWORK" id: "CONTAINER"`.
/// One that was cut (`...`) names nobody for certain.
fn entry_owner(comment: &str) -> Option<(&str, &str)> {
    let rest = comment.strip_prefix("dnat name: \"")?;
    let (network, rest) = rest.split_once("\" id: \"")?;
    let container = rest.strip_suffix('"')?;
    let plain = |text: &str| !text.is_empty() && !text.contains(['"', '\\']);
    (plain(network) && plain(container)).then_some((network, container))
}

/// An entry rule, with proof of what it says: it jumps to the chain whose name
/// follows from network and container.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EntryRule {
    pub(super) network: String,
    pub(super) container: String,
    /// The container's chain.
    pub(super) chain: String,
}

impl EntryRule {
    fn read(comment: &str, jumps: impl Fn(&str) -> bool) -> Option<Self> {
        let (network, container) = entry_owner(comment)?;
        let chain = chain_name("DN", network, container);
        let named = Self { network: network.to_owned(), container: container.to_owned(), chain };
        jumps(&named.chain).then_some(named)
    }
}

/// The entry rules that nftables hold.
pub(super) fn entries(socket: &mut NftSocket, version: IpVersion) -> Result<Vec<EntryRule>, Error> {
    let rules = socket.rules(host_table(version).chain(ENTRY_CHAIN)).map_err(refused)?;
    let read = |rule: &Rule| {
        let comment = rule.comment()?;
        EntryRule::read(&comment, |chain| rule.target_chain() == Some(chain))
    };
    Ok(rules.iter().filter_map(read).collect())
}

/// Those among rules of legacy xtables.
pub(super) fn legacy_entries(rules: &[Vec<String>]) -> Vec<EntryRule> {
    let is_entry = |rule: &&Vec<String>| rule.get(1).is_some_and(|chain| chain == ENTRY_CHAIN);
    let read = |rule: &Vec<String>| {
        EntryRule::read(xtables::comment(rule)?, |chain| xtables::jumps_to(rule, chain))
    };
    rules.iter().filter(is_entry).filter_map(read).collect()
}

/// The containers that entry rules name for a network.
pub(super) fn containers_of(socket: &mut NftSocket, network: &str) -> Result<Vec<String>, Error> {
    let mut containers = Vec::new();
    for version in VERSIONS {
        let mut found = entries(socket, version)?;
        found.extend(legacy_entries(&xtables::rules(version, "nat")?.unwrap_or_default()));
        let of_network = found.into_iter().filter(|entry| entry.network == network);
        containers.extend(of_network.map(|entry| entry.container));
    }
    containers.sort_unstable();
    containers.dedup();
    Ok(containers)
}

/// How many rules each container has in `cni_hostport`.
pub(super) fn rules_by_container(socket: &mut NftSocket) -> Result<BTreeMap<String, usize>, Error> {
    let mut counts = BTreeMap::new();
    for version in VERSIONS {
        for rule in socket.table_rules(go_table(layout::family(version))).map_err(refused)? {
            let is_owned = OWNED_CHAINS.contains(&rule.chain.as_str());
            if let Some(container) = rule.comment().filter(|_| is_owned) {
                *counts.entry(container).or_default() += 1;
            }
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_go_plugin() {
        assert_eq!(chain_name("DN", "n1", "c1"), "CNI-DN-7be53730afe4dc6eb2178");
    }

    #[test]
    fn entry_rules_name_network_and_container() {
        assert_eq!(entry_owner(r#"dnat name: "n1" id: "c1""#), Some(("n1", "c1")));
        for other in [
            r#"dnat name: "n1" id: "c1..."#,
            r#"dnat name: "n1" id: """#,
            r#"dnat name: "a\"b" id: "c1""#,
            "something else",
            "",
        ] {
            assert_eq!(entry_owner(other), None, "{other}");
        }
    }

    #[test]
    fn both_chains_of_both_families_are_looked_for() {
        let mappings = GoMappings {
            network: "n1".into(),
            container: "c1".into(),
            addresses: Vec::new(),
            by_container: true,
        };
        let chains = mappings.chains();
        assert_eq!(chains.len(), 4);
        assert_eq!(chains[0].callers, [ENTRY_CHAIN]);
        assert!(chains.iter().any(|chain| chain.chain.starts_with("CNI-SN-")));
    }
}
