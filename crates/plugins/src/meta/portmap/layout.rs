//! The tables that port mappings live in.
//!
//! ```text
//! table ip podwire_hostports {                       # and ip6
//!   map ports         { protocol . port : address . port }
//!   map address_ports { host address . protocol . port : address . port }
//!   map hairpins      { address . protocol . port . port of the host : verdict }
//!   map owners        { mark . number : goto hostports, or network_H }
//!   chain prerouting  { type nat hook prerouting priority dstnat + 1
//!                       fib daddr type local jump hostports }
//!   chain output      { type nat hook output priority dstnat + 1
//!                       fib daddr type local jump hostports }
//!   chain hostports   { jump conditional
//!                       dnat to ip daddr . meta l4proto . th dport map @address_ports
//!                       dnat to meta l4proto . th dport map @ports }
//!   chain conditional { CONDITIONS OF A NETWORK jump network_H }
//!   chain network_H   { as hostports, with maps address_ports_H and ports_H }
//!   chain postrouting { type nat hook postrouting priority srcnat
//!                       ct status dnat ip daddr . meta l4proto . tcp dport
//!                         . ct original proto-dst vmap @hairpins
//!                       the same for udp and sctp }
//!   chain from_10.1.0.0/24 { ip saddr 10.1.0.0/24 masquerade
//!                            ip saddr 127.0.0.0/8 masquerade }
//!   chain from_anywhere    { masquerade }
//! }
//! ```
//!
//! Why so:
//! - a connection's first packet costs three look-ups, however many mappings there are, and a
//!   mapping is made and removed by its key;
//! - only packets for an address of this host are looked at, with a host
//!   address in the mapping too (CVE-2025-67499, B014); not those for `::1`,
//!   which can't leave the host: a client that tries it goes on to 127.0.0.1
//!   at once;
//! - of chains at one priority the one made later runs first, so ours stand
//!   one behind kube-proxy's, whenever either is made (CVE-2019-9946, B035);
//! - a mapping for one address comes before one for all;
//! - what is masqueraded is told by the connection's first destination port,
//!   so that connections that somebody else forwarded to the same container
//!   keep their source;
//! - a network with conditions has maps of its own, so that they hold for its
//!   mappings alone;
//! - what leads to a chain is counted by the kernel. So the chain of a subnet goes
//!   with its last mapping, that of a network with its last attachment, and with
//!   the last one of the host the table; who relies on a chain that goes meanwhile
//!   names it, is refused, and looks again.

use std::fmt::Write as _;

use ipnet::IpNet;
use podwire_netlink::nft::{
    Chain, ChainKind, Comparison, ConntrackKey, DataType, Expression, Family, Field, Hook,
    IpVersion, LookupTarget, Register, Rule, Set, Table, TableId, Verdict, conntrack_status,
    priority,
};
use podwire_resources::nft::{HOST_PORTS, owners};

use super::mapping::Protocol;

/// The name of both tables.
const TABLE: &str = HOST_PORTS;
/// `NFT_CT_PROTO_DST` (`linux/netfilter/nf_tables.h`).
const ORIGINAL_PORT: ConntrackKey = ConntrackKey::Other(12);
/// Both address families.
pub(super) const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];
/// The chain of base chains' jumps.
pub(super) const HOSTPORTS: &str = "hostports";
/// The chain of the networks' conditions.
pub(super) const CONDITIONAL: &str = "conditional";
/// The verdict map of connections that may have to be masqueraded.
pub(super) const HAIRPINS: &str = "hairpins";
const POSTROUTING: &str = "postrouting";

/// The table of an IP version.
pub(super) const fn table(version: IpVersion) -> TableId<'static> {
    TableId::new(family(version), TABLE)
}

/// The family of tables of an IP version.
pub(super) const fn family(version: IpVersion) -> Family {
    match version {
        IpVersion::V4 => Family::Ipv4,
        IpVersion::V6 => Family::Ipv6,
    }
}

/// The IP version of an address.
pub(super) const fn version_of(address: std::net::IpAddr) -> IpVersion {
    match address {
        std::net::IpAddr::V4(_) => IpVersion::V4,
        std::net::IpAddr::V6(_) => IpVersion::V6,
    }
}

/// Where mappings are looked up: in everybody's maps, or in those of a network
/// with conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Everybody's.
    Common,
    /// Those of the network with this half of an owner mark.
    Network([u8; 8]),
}

impl Scope {
    fn name(self, base: &str) -> String {
        match self {
            Self::Common => base.to_owned(),
            Self::Network(half) => format!("{base}_{}", hex(half)),
        }
    }

    /// The map for all addresses of the host.
    pub(super) fn ports(self) -> String {
        self.name("ports")
    }

    /// The map for single addresses of the host.
    pub(super) fn address_ports(self) -> String {
        self.name("address_ports")
    }

    /// The chain that looks both up.
    pub(super) fn chain(self) -> String {
        match self {
            Self::Common => HOSTPORTS.to_owned(),
            Self::Network(_) => self.name("network"),
        }
    }

    /// Both maps.
    pub(super) fn maps(self, version: IpVersion) -> [Set; 2] {
        let id = table(version);
        let address = address_type(version);
        let value = [address, DataType::InetService];
        let port = [DataType::InetProtocol, DataType::InetService];
        let address_port = [address, DataType::InetProtocol, DataType::InetService];
        [
            Set::map(id.set(&self.address_ports()), &address_port, &value)
                .with_comment("for one address of this host"),
            Set::map(id.set(&self.ports()), &port, &value).with_comment("for all addresses"),
        ]
    }

    /// The rules that look both up, the single addresses first.
    pub(super) fn lookups(self, version: IpVersion) -> [Rule; 2] {
        let (id, chain) = (table(version), self.chain());
        let destination = Field::destination(version);
        let port = [Field::TransportProtocol, Field::DestinationPort];
        let address_port = [destination, Field::TransportProtocol, Field::DestinationPort];
        [
            Rule::new(id.chain(&chain)).dnat_to_map(version, &address_port, &self.address_ports()),
            Rule::new(id.chain(&chain)).dnat_to_map(version, &port, &self.ports()),
        ]
    }
}

/// Whether a chain is that of a network with conditions.
pub(super) fn is_network_chain(name: &str) -> bool {
    name.starts_with("network_")
}

/// Sixteen hexadecimal digits.
pub(super) fn hex(half: [u8; 8]) -> String {
    half.iter().fold(String::with_capacity(16), |mut text, byte| {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn address_type(version: IpVersion) -> DataType {
    match version {
        IpVersion::V4 => DataType::Ipv4Address,
        IpVersion::V6 => DataType::Ipv6Address,
    }
}

/// A chain with its rules in order.
#[derive(Debug, Clone)]
pub(super) struct Filled {
    pub(super) chain: Chain,
    pub(super) rules: Vec<Rule>,
}

/// The table with its comment.
pub(super) fn table_object(version: IpVersion) -> Table {
    Table::new(table(version)).with_comment("ports of this host that lead to containers")
}

/// The sets that are always there.
pub(super) fn sets(version: IpVersion) -> Vec<Set> {
    let id = table(version);
    let port = DataType::InetService;
    let hairpin = [address_type(version), DataType::InetProtocol, port, port];
    let mut sets = Vec::from(Scope::Common.maps(version));
    sets.push(Set::verdict_map(id.set(HAIRPINS), &hairpin));
    sets.push(owners::counted(id));
    sets
}

/// The chains that are always there, each after those it jumps to.
pub(super) fn chains(version: IpVersion) -> Vec<Filled> {
    let id = table(version);
    let hostports = id.chain(HOSTPORTS);
    let mut common = vec![Rule::new(hostports).verdict(Verdict::jump(CONDITIONAL))];
    common.extend(Scope::Common.lookups(version));
    let entry = |name, hook| {
        let chain = id.chain(name);
        let priority = priority::DESTINATION_NAT + 1;
        let mut rule = Rule::new(chain);
        if version == IpVersion::V6 {
            let localhost = std::net::Ipv6Addr::LOCALHOST;
            rule = rule.destination(Comparison::NotEqual, IpNet::V6(localhost.into()));
        }
        rule = rule.destination_is_local(Comparison::Equal).verdict(Verdict::jump(HOSTPORTS));
        Filled { chain: Chain::base(chain, ChainKind::Nat, hook, priority), rules: vec![rule] }
    };
    vec![
        Filled { chain: Chain::regular(hostports), rules: common },
        entry("prerouting", Hook::Prerouting),
        entry("output", Hook::Output),
        Filled {
            chain: Chain::base(
                id.chain(POSTROUTING),
                ChainKind::Nat,
                Hook::Postrouting,
                priority::SOURCE_NAT,
            ),
            rules: Protocol::ALL.map(|protocol| hairpin_lookup(version, protocol)).into(),
        },
    ]
}

/// The chain that holds the networks' conditions, without them.
pub(super) fn conditional(version: IpVersion) -> Chain {
    Chain::regular(table(version).chain(CONDITIONAL))
}

/// One rule for each protocol: without its name before it, the `nft` command
/// takes the first port for a number without length, and refuses to read back
/// what it listed.
fn hairpin_lookup(version: IpVersion, protocol: Protocol) -> Rule {
    let fields = [Field::destination(version), Field::TransportProtocol, Field::DestinationPort];
    let read = fields.iter().map(|field| field.data_type().length().next_multiple_of(4)).sum();
    let rule = Rule::new(table(version).chain(POSTROUTING))
        .conntrack_status(conntrack_status::DESTINATION_NAT)
        .protocol(protocol.number())
        .load(&fields);
    // At most 24 of the registers' 64 bytes are taken.
    let Some(destination) = Register::R0.after(read) else { return rule };
    rule.expression(Expression::Conntrack { key: ORIGINAL_PORT, direction: Some(0), destination })
        .expression(Expression::Lookup {
            set: HAIRPINS.to_owned(),
            source: Register::R0,
            target: LookupTarget::Verdict,
        })
}

/// The chain that connections from a subnet, or all, go to for masquerading. It
/// goes with the last element that leads to it: where each container has a
/// subnet of its own, one for each would stay.
pub(super) fn masquerade_chain(version: IpVersion, subnet: Option<IpNet>) -> Filled {
    let id = table(version);
    let Some(subnet) = subnet.map(|subnet| subnet.trunc()).filter(|net| net.prefix_len() > 0)
    else {
        let chain = id.chain("from_anywhere");
        return Filled { chain: Chain::regular(chain), rules: vec![Rule::new(chain).masquerade()] };
    };
    // A colon can't be part of a chain's name for the nft command.
    let name = format!("from_{}", subnet.to_string().replace(':', "_"));
    let chain = id.chain(&name);
    let sources = local_sources(version, subnet);
    let rule = |net: &IpNet| Rule::new(chain).source(Comparison::Equal, *net).masquerade();
    Filled { chain: Chain::regular(chain), rules: sources.iter().map(rule).collect() }
}

/// The sources of connections that the container can't answer: its subnet, as
/// answers would go straight to the neighbour, and this host's 127.0.0.0/8.
pub(super) fn local_sources(version: IpVersion, subnet: IpNet) -> Vec<IpNet> {
    let mut sources = vec![subnet];
    if version == IpVersion::V4 {
        let loopback = std::net::Ipv4Addr::new(127, 0, 0, 0);
        sources.push(IpNet::V4(ipnet::Ipv4Net::new_assert(loopback, 8)));
    }
    sources
}
