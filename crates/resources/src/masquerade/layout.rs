//! What stands in the kernel: names, sets, chains and rules. Pure.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use podwire_netlink::nft::{
    Batch, Chain, ChainId, ChainKind, Comparison, Data, DataType, Element, Family, Field, Hook,
    IpVersion, Rule, Set, SetId, Table, TableId, Verdict, priority,
};
use podwire_spec::id::AttachmentKey;

use crate::nft::{Entry, owner_comment, owners};

/// The name of the table in each family.
pub const TABLE: &str = "podwire_masquerade";
/// The chain that packets enter.
pub(super) const ENTRY: &str = "postrouting";
/// The map from a container's address to the chain of its subnet.
pub(super) const SOURCES: &str = "sources";
/// Objects of the table that stay: the entry chain, the map, the owners set.
pub(super) const LASTING: u32 = 3;
/// RFC 5771.
const MULTICAST_V4: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(224, 0, 0, 0), 4);
/// RFC 4291.
const MULTICAST_V6: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8);

/// The objects of one IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) version: IpVersion,
    name: &'static str,
}

impl Layout {
    pub(super) const V4: Self = Self { version: IpVersion::V4, name: TABLE };
    pub(super) const V6: Self = Self { version: IpVersion::V6, name: TABLE };
    pub(super) const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// The same objects in a table of another name.
    pub(super) const fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    pub(super) fn holds(self, address: IpAddr) -> bool {
        address.is_ipv4() == (self.version == IpVersion::V4)
    }

    pub(super) const fn table(self) -> TableId<'static> {
        let family = match self.version {
            IpVersion::V4 => Family::Ipv4,
            IpVersion::V6 => Family::Ipv6,
        };
        TableId::new(family, self.name)
    }

    pub(super) const fn entry(self) -> ChainId<'static> {
        self.table().chain(ENTRY)
    }

    pub(super) const fn sources(self) -> SetId<'static> {
        self.table().set(SOURCES)
    }

    pub(super) fn entry_chain(self) -> Chain {
        let (kind, hook) = (ChainKind::Nat, Hook::Postrouting);
        Chain::base(self.entry(), kind, hook, priority::SOURCE_NAT)
    }

    /// Multicast keeps its source; the rest goes by its source.
    pub(super) fn entry_rules(self) -> [Rule; 2] {
        let source = Field::source(self.version);
        [
            Rule::new(self.entry())
                .destination(Comparison::Equal, self.multicast())
                .verdict(Verdict::Return),
            Rule::new(self.entry()).verdict_map(&[source], SOURCES),
        ]
    }

    fn multicast(self) -> IpNet {
        match self.version {
            IpVersion::V4 => IpNet::V4(MULTICAST_V4),
            IpVersion::V6 => IpNet::V6(MULTICAST_V6),
        }
    }

    /// What stays within the subnet keeps its source.
    pub(super) fn subnet_rules(self, subnet: IpNet) -> [Rule; 2] {
        let name = subnet_chain(subnet);
        let chain = self.table().chain(&name);
        [
            Rule::new(chain).destination(Comparison::Equal, subnet).verdict(Verdict::Return),
            Rule::new(chain).masquerade(),
        ]
    }

    fn sources_map(self) -> Set {
        let key = match self.version {
            IpVersion::V4 => DataType::Ipv4Address,
            IpVersion::V6 => DataType::Ipv6Address,
        };
        Set::verdict_map(self.sources(), &[key]).with_comment("containers and their subnets")
    }

    /// Makes whatever is missing of table and sets, and writes the chains that
    /// `wrong` names, with their rules. What is right is left alone, for speed
    /// ([`crate::nft::transaction`]).
    pub(super) fn declare(self, batch: &mut Batch, wrong: &WrongRules) {
        batch.add_table(&Table::new(self.table()).with_comment("podwire: ipMasq of CNI networks"));
        batch.add_set(&self.sources_map());
        batch.add_set(&owners::set(self.table()));
        wrong.entry.push(batch, &self.entry_chain(), &self.entry_rules());
        for subnet in &wrong.subnets {
            let name = subnet_chain(*subnet);
            let chain = self.table().chain(&name);
            batch.add_chain(&Chain::regular(chain));
            batch.flush_chain(chain);
            for rule in self.subnet_rules(*subnet) {
                batch.add_rule(&rule);
            }
        }
    }
}

/// Which chains don't hold the rules that they must.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrongRules {
    /// The chain that packets enter.
    pub(super) entry: Entry,
    /// Those of these subnets, which don't hold theirs.
    pub(super) subnets: BTreeSet<IpNet>,
}

/// The element of a container's address.
pub(super) fn element(key: &AttachmentKey, address: IpNet) -> Element {
    source(address.addr())
        .with_verdict(Verdict::goto(subnet_chain(address)))
        .with_comment(&owner_comment(key))
}

/// The key of an address in the map.
pub(super) fn source(address: IpAddr) -> Element {
    Element::new(Data::from(address))
}

/// The chain of a subnet: `leaving_10.1.0.0_24`.
///
/// Only characters that the `nft` command reads back: an IPv6 address is
/// written out, with dots.
pub(super) fn subnet_chain(subnet: IpNet) -> String {
    let network = match subnet.network() {
        IpAddr::V4(network) => network.to_string(),
        IpAddr::V6(network) => network.segments().map(|segment| format!("{segment:x}")).join("."),
    };
    format!("leaving_{network}_{}", subnet.prefix_len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    #[test]
    fn a_subnets_chain_is_named_after_its_network() {
        assert_eq!(subnet_chain(net("10.1.0.7/24")), "leaving_10.1.0.0_24");
        assert_eq!(subnet_chain(net("fd00:1::7/64")), "leaving_fd00.1.0.0.0.0.0.0_64");
    }

    #[test]
    fn what_is_right_is_left_alone() {
        let mut batch = Batch::new();
        let subnets = BTreeSet::from([net("10.1.0.0/24")]);
        Layout::V4.declare(&mut batch, &WrongRules { entry: Entry::Wrong, subnets });
        // Table and two sets; two chains, each with its flush and two rules.
        assert_eq!(batch.len(), 11);
        let mut batch = Batch::new();
        let right = WrongRules { entry: Entry::Right, subnets: BTreeSet::new() };
        Layout::V4.declare(&mut batch, &right);
        assert_eq!(batch.len(), 3);
    }

    #[test]
    fn an_element_leads_to_the_chain_of_its_subnet_and_names_its_owner() {
        let key = crate::masquerade::tests::key();
        let element = element(&key, net("10.1.0.7/24"));
        assert_eq!(element.key.as_bytes(), [10, 1, 0, 7]);
        let comment = element.comment().unwrap();
        assert_eq!(comment, "43d91f8451058a70-f4d01f2ef4b92245 n1/c1/eth0");
        let chain = element.value.and_then(|value| match value {
            podwire_netlink::nft::ElementValue::Verdict(verdict) => {
                verdict.chain().map(String::from)
            }
            podwire_netlink::nft::ElementValue::Data(_) => None,
        });
        assert_eq!(chain.as_deref(), Some("leaving_10.1.0.0_24"));
    }
}
