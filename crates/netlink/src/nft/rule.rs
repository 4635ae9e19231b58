//! Rules, and a builder that composes their expressions from whole statements.

use std::net::IpAddr;

use ipnet::IpNet;

use super::expression::{
    Comparison, ConntrackKey, Expression, FibFlags, FibResult, LookupTarget, NatFlags, NatKind,
    PayloadBase,
};
use super::{
    ChainId, Data, DataType, Family, Field, IpVersion, MetaKey, Register, TableId, UserData,
    Verdict, xtables,
};

/// `RTN_LOCAL` (linux/rtnetlink.h): an address of this host.
const ADDRESS_TYPE_LOCAL: u32 = 2;

/// A rule, to be made or as listed.
///
/// Statements are appended in the order that the packet meets them:
///
/// ```
/// use podwire_netlink::nft::{Comparison, Family, Rule, TableId};
/// let chain = TableId::new(Family::Ipv4, "podwire").chain("postrouting");
/// let pod = "10.1.0.5/32".parse().unwrap();
/// let net = "10.1.0.0/24".parse().unwrap();
/// let rule = Rule::new(chain)
///     .source(Comparison::Equal, pod)
///     .destination(Comparison::NotEqual, net)
///     .masquerade()
///     .with_comment("for pod 5");
/// assert_eq!(rule.expressions.len(), 5);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The table's family.
    pub family: Family,
    /// The table's name.
    pub table: String,
    /// The chain's name.
    pub chain: String,
    /// What it does, in order.
    pub expressions: Vec<Expression>,
    /// The comment and other userdata.
    pub userdata: UserData,
    /// The transport protocol that xtables extensions of its own are told, when it has any.
    pub xt_protocol: Option<u8>,
    /// The kernel's number for it, when listed.
    pub handle: Option<u64>,
}

impl Rule {
    /// A rule that does nothing yet.
    pub fn new(chain: ChainId<'_>) -> Self {
        Self {
            family: chain.table.family,
            table: chain.table.name.to_owned(),
            chain: chain.name.to_owned(),
            expressions: Vec::new(),
            userdata: UserData::new(),
            xt_protocol: None,
            handle: None,
        }
    }

    /// Its table and chain.
    pub fn chain_id(&self) -> ChainId<'_> {
        TableId::new(self.family, &self.table).chain(&self.chain)
    }

    /// The comment, wherever it is: in the userdata, or in an xtables `comment` match.
    pub fn comment(&self) -> Option<String> {
        self.userdata.comment().or_else(|| self.expressions.iter().find_map(xtables::comment_of))
    }

    /// Whether two rules do the same and carry the same userdata, whatever they counted so far,
    /// and wherever they are.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        let uncounted = |expression: &Expression| match expression {
            Expression::Counter { .. } => Expression::counter(),
            other => other.clone(),
        };
        self.userdata == other.userdata
            && self.expressions.iter().map(uncounted).eq(other.expressions.iter().map(uncounted))
    }

    /// The chain that the rule jumps or goes over to.
    pub fn target_chain(&self) -> Option<&str> {
        self.expressions.iter().find_map(|expression| match expression {
            Expression::Verdict(verdict) => verdict.chain(),
            _ => None,
        })
    }

    /// Sets the comment, as nft shows it (and iptables-nft, too).
    #[must_use]
    pub fn with_comment(mut self, comment: &str) -> Self {
        self.userdata = UserData::from_comment(comment);
        self
    }

    /// Sets all userdata.
    #[must_use]
    pub fn with_userdata(mut self, userdata: UserData) -> Self {
        self.userdata = userdata;
        self
    }

    /// Appends one expression.
    #[must_use]
    pub fn expression(mut self, expression: Expression) -> Self {
        self.expressions.push(expression);
        self
    }

    fn compare(self, comparison: Comparison, value: Data) -> Self {
        self.expression(Expression::Compare { comparison, source: Register::R0, value })
    }

    /// Compares a field with a value.
    #[must_use]
    pub fn field(self, field: Field, comparison: Comparison, value: impl Into<Data>) -> Self {
        self.expression(field.load(Register::R0)).compare(comparison, value.into())
    }

    /// Only packets of one IP version. In tables of the ip and ip6 families it says nothing new
    /// and adds nothing.
    #[must_use]
    pub fn ip_version(self, version: IpVersion) -> Self {
        let (key, value) = match self.family {
            Family::Bridge | Family::Netdev => {
                // ETH_P_IP and ETH_P_IPV6.
                let protocol: u16 = if version == IpVersion::V4 { 0x0800 } else { 0x86dd };
                (MetaKey::Protocol, Data::from_bytes(protocol.to_be_bytes()))
            }
            Family::Inet => (MetaKey::NetworkFamily, Data::from_bytes([version as u8])),
            Family::Ipv4 | Family::Ipv6 | Family::Arp => return self,
        };
        self.expression(Expression::Meta { key, destination: Register::R0 })
            .compare(Comparison::Equal, value)
    }

    /// Compares the source address with a prefix.
    #[must_use]
    pub fn source(self, comparison: Comparison, net: IpNet) -> Self {
        self.prefix(Field::source(version_of(net.addr())), comparison, net)
    }

    /// Compares the destination address with a prefix.
    #[must_use]
    pub fn destination(self, comparison: Comparison, net: IpNet) -> Self {
        self.prefix(Field::destination(version_of(net.addr())), comparison, net)
    }

    /// As nft and iptables-nft write a prefix: whole bytes by reading fewer of them, others with
    /// a mask. A prefix of no length compares with nothing and adds nothing.
    fn prefix(mut self, field: Field, comparison: Comparison, net: IpNet) -> Self {
        let mut load = field.load(Register::R0);
        let network = Data::from(net.network());
        if net.prefix_len() == 0 {
            return self;
        }
        if !net.prefix_len().is_multiple_of(8) {
            self.expressions.push(load);
            let mask = Data::from(net.netmask());
            let xor = Data::from_bytes(vec![0; mask.as_bytes().len()]);
            let (source, destination) = (Register::R0, Register::R0);
            self.expressions.push(Expression::Bitwise { source, destination, mask, xor });
            return self.compare(comparison, network);
        }
        let bytes = net.prefix_len() / 8;
        if let Expression::Payload { length, .. } = &mut load {
            *length = u32::from(bytes);
        }
        self.expressions.push(load);
        let value = network.as_bytes().get(..usize::from(bytes)).unwrap_or_default();
        self.compare(comparison, Data::from_bytes(value))
    }

    /// Compares the name of the input interface.
    #[must_use]
    pub fn input_interface(self, comparison: Comparison, name: &str) -> Self {
        self.field(Field::InputInterface, comparison, Data::new().interface_name(name))
    }

    /// Compares the name of the output interface.
    #[must_use]
    pub fn output_interface(self, comparison: Comparison, name: &str) -> Self {
        self.field(Field::OutputInterface, comparison, Data::new().interface_name(name))
    }

    /// Only packets of one transport protocol (6 TCP, 17 UDP, 132 SCTP).
    #[must_use]
    pub fn protocol(self, number: u8) -> Self {
        self.field(Field::TransportProtocol, Comparison::Equal, Data::new().protocol(number))
    }

    /// Only packets to one port. [`Rule::protocol`] must come before it.
    #[must_use]
    pub fn destination_port(self, port: u16) -> Self {
        self.field(Field::DestinationPort, Comparison::Equal, Data::new().port(port))
    }

    /// Only packets whose destination is (or isn't) an address of this host.
    #[must_use]
    pub fn destination_is_local(self, comparison: Comparison) -> Self {
        self.expression(Expression::Fib {
            result: FibResult::AddressType,
            flags: FibFlags::DESTINATION_ADDRESS,
            destination: Register::R0,
        })
        .compare(comparison, Data::from_bytes(ADDRESS_TYPE_LOCAL.to_ne_bytes()))
    }

    /// Compares the masked bits of the packet mark: `mark & mask == value`.
    #[must_use]
    pub fn mark(mut self, comparison: Comparison, value: u32, mask: u32) -> Self {
        self.expressions.push(Field::Mark.load(Register::R0));
        if mask != u32::MAX {
            self = self.mask_host_order(mask, 0);
        }
        self.compare(comparison, Data::new().mark(value))
    }

    /// Sets the masked bits of the packet mark, and leaves the others.
    #[must_use]
    pub fn set_mark(mut self, value: u32, mask: u32) -> Self {
        if mask == u32::MAX {
            let value = Data::new().mark(value);
            self = self.expression(Expression::Immediate { destination: Register::R0, value });
        } else {
            self.expressions.push(Field::Mark.load(Register::R0));
            self = self.mask_host_order(!mask, value & mask);
        }
        self.expression(Expression::MetaSet { key: MetaKey::Mark, source: Register::R0 })
    }

    /// Only connections with any of these state bits
    /// ([`conntrack_state`](super::conntrack_state)).
    #[must_use]
    pub fn conntrack_state(self, bits: u32) -> Self {
        self.conntrack_bits(ConntrackKey::State, bits)
    }

    /// Only connections with any of these status bits
    /// ([`conntrack_status`](super::conntrack_status)).
    #[must_use]
    pub fn conntrack_status(self, bits: u32) -> Self {
        self.conntrack_bits(ConntrackKey::Status, bits)
    }

    fn conntrack_bits(self, key: ConntrackKey, bits: u32) -> Self {
        self.expression(Expression::Conntrack { key, direction: None, destination: Register::R0 })
            .mask_host_order(bits, 0)
            .compare(Comparison::NotEqual, Data::from_bytes([0; 4]))
    }

    fn mask_host_order(self, mask: u32, xor: u32) -> Self {
        self.expression(Expression::Bitwise {
            source: Register::R0,
            destination: Register::R0,
            mask: Data::from_bytes(mask.to_ne_bytes()),
            xor: Data::from_bytes(xor.to_ne_bytes()),
        })
    }

    /// Reads the fields into consecutive registers, as keys of several fields want them.
    /// Fields beyond the last register are left out; the kernel then refuses the rule, as the
    /// set's key is longer than what was read.
    #[must_use]
    pub fn load(mut self, fields: &[Field]) -> Self {
        let mut register = Some(Register::R0);
        for field in fields {
            let Some(destination) = register else { break };
            self.expressions.push(field.load(destination));
            register = destination.after(field.data_type().length());
        }
        self
    }

    fn lookup(self, fields: &[Field], set: &str, target: LookupTarget) -> Self {
        let set = set.to_owned();
        self.load(fields).expression(Expression::Lookup { set, source: Register::R0, target })
    }

    /// Only packets whose fields are in the set.
    #[must_use]
    pub fn in_set(self, fields: &[Field], set: &str) -> Self {
        self.lookup(fields, set, LookupTarget::Present)
    }

    /// Only packets whose fields are not in the set.
    #[must_use]
    pub fn not_in_set(self, fields: &[Field], set: &str) -> Self {
        self.lookup(fields, set, LookupTarget::Absent)
    }

    /// Applies the verdict that the map has for the fields; goes on if it has none.
    #[must_use]
    pub fn verdict_map(self, fields: &[Field], map: &str) -> Self {
        self.lookup(fields, map, LookupTarget::Verdict)
    }

    /// Translates the destination to the address and port that the map has for the fields; goes
    /// on if it has none. The map's values are [`Field`] types address and port.
    #[must_use]
    pub fn dnat_to_map(self, version: IpVersion, fields: &[Field], map: &str) -> Self {
        let address = Register::R0;
        let port = address.after(address_length(version)).map(Into::into);
        self.lookup(fields, map, LookupTarget::Value(address)).expression(Expression::Nat {
            kind: NatKind::Destination,
            version,
            address: Some(address.into()),
            port,
            flags: NatFlags::empty(),
        })
    }

    /// Translates the destination to an address and, if given, a port. With a port,
    /// [`Rule::protocol`] must come before it.
    #[must_use]
    pub fn dnat(self, address: IpAddr, port: Option<u16>) -> Self {
        self.nat(NatKind::Destination, address, port)
    }

    /// Translates the source to an address.
    #[must_use]
    pub fn snat(self, address: IpAddr) -> Self {
        self.nat(NatKind::Source, address, None)
    }

    fn nat(mut self, kind: NatKind, address: IpAddr, port: Option<u16>) -> Self {
        let version = version_of(address);
        let register = Register::R0;
        let value = Data::from(address);
        self.expressions.push(Expression::Immediate { destination: register, value });
        let port_register = port.and(register.after(address_length(version)));
        if let (Some(port), Some(destination)) = (port, port_register) {
            let value = Data::new().port(port);
            self.expressions.push(Expression::Immediate { destination, value });
        }
        self.expression(Expression::Nat {
            kind,
            version,
            address: Some(register.into()),
            port: port_register.map(Into::into),
            flags: NatFlags::empty(),
        })
    }

    /// Translates the source to the output interface's address.
    #[must_use]
    pub fn masquerade(self) -> Self {
        self.masquerade_with(NatFlags::empty())
    }

    /// The same, with a choice of how ports are taken.
    #[must_use]
    pub fn masquerade_with(self, flags: NatFlags) -> Self {
        self.expression(Expression::Masquerade { flags, port: None })
    }

    /// Counts.
    #[must_use]
    pub fn counter(self) -> Self {
        self.expression(Expression::counter())
    }

    /// Decides.
    #[must_use]
    pub fn verdict(self, verdict: Verdict) -> Self {
        self.expression(Expression::Verdict(verdict))
    }

    /// Compares the hardware protocol of a bridge's frame (`ether type`, 0x0806 is ARP).
    #[must_use]
    pub fn ether_type(self, comparison: Comparison, number: u16) -> Self {
        self.expression(Expression::Payload {
            base: PayloadBase::Link,
            offset: 12,
            length: 2,
            destination: Register::R0,
        })
        .compare(comparison, Data::from_bytes(number.to_be_bytes()))
    }
}

fn version_of(address: IpAddr) -> IpVersion {
    match address {
        IpAddr::V4(_) => IpVersion::V4,
        IpAddr::V6(_) => IpVersion::V6,
    }
}

fn address_length(version: IpVersion) -> u32 {
    match version {
        IpVersion::V4 => DataType::Ipv4Address.length(),
        IpVersion::V6 => DataType::Ipv6Address.length(),
    }
}
