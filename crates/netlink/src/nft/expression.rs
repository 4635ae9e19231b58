//! The expressions that rules are made of.

use super::{Data, Register, Verdict};

/// What a `meta` expression reads (`enum nft_meta_keys`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetaKey {
    /// The link layer's protocol, network byte order.
    Protocol,
    /// The packet mark.
    Mark,
    /// Index of the input interface.
    InputIndex,
    /// Index of the output interface.
    OutputIndex,
    /// Name of the input interface.
    InputName,
    /// Name of the output interface.
    OutputName,
    /// The network family (`NFPROTO_*`), one byte.
    NetworkFamily,
    /// The transport protocol, one byte.
    TransportProtocol,
    /// Any other key by its number.
    Other(u32),
}

impl MetaKey {
    pub(super) fn number(self) -> u32 {
        match self {
            Self::Protocol => 1,
            Self::Mark => 3,
            Self::InputIndex => 4,
            Self::OutputIndex => 5,
            Self::InputName => 6,
            Self::OutputName => 7,
            Self::NetworkFamily => 15,
            Self::TransportProtocol => 16,
            Self::Other(number) => number,
        }
    }

    pub(super) fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Protocol,
            3 => Self::Mark,
            4 => Self::InputIndex,
            5 => Self::OutputIndex,
            6 => Self::InputName,
            7 => Self::OutputName,
            15 => Self::NetworkFamily,
            16 => Self::TransportProtocol,
            number => Self::Other(number),
        }
    }
}

/// Where a payload offset counts from (`enum nft_payload_bases`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum PayloadBase {
    /// The link layer header.
    Link = 0,
    /// The network header.
    Network = 1,
    /// The transport header.
    Transport = 2,
}

/// How a value is compared (`enum nft_cmp_ops`). Order comparisons are bytewise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Comparison {
    /// Equal.
    Equal = 0,
    /// Not equal.
    NotEqual = 1,
    /// Less.
    Less = 2,
    /// Less or equal.
    LessOrEqual = 3,
    /// Greater.
    Greater = 4,
    /// Greater or equal.
    GreaterOrEqual = 5,
}

/// What a `ct` expression reads or sets (`enum nft_ct_keys`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConntrackKey {
    /// State bits, see [`conntrack_state`].
    State,
    /// Status bits (`IPS_*`), see [`conntrack_status`].
    Status,
    /// The connection's mark.
    Mark,
    /// Any other key by its number.
    Other(u32),
}

impl ConntrackKey {
    pub(super) fn number(self) -> u32 {
        match self {
            Self::State => 0,
            Self::Status => 2,
            Self::Mark => 3,
            Self::Other(number) => number,
        }
    }

    pub(super) fn from_number(number: u32) -> Self {
        match number {
            0 => Self::State,
            2 => Self::Status,
            3 => Self::Mark,
            number => Self::Other(number),
        }
    }
}

/// Bits of `ct state` (`NF_CT_STATE_BIT`).
pub mod conntrack_state {
    /// Not a valid packet of any connection.
    pub const INVALID: u32 = 1;
    /// Belongs to a connection seen in both directions.
    pub const ESTABLISHED: u32 = 2;
    /// Opens a connection that another one announced.
    pub const RELATED: u32 = 4;
    /// Opens a connection.
    pub const NEW: u32 = 8;
    /// Exempt from tracking.
    pub const UNTRACKED: u32 = 64;
}

/// Bits of `ct status` (`enum ip_conntrack_status`).
pub mod conntrack_status {
    /// Packets were seen in both directions.
    pub const SEEN_REPLY: u32 = 2;
    /// The source address was translated.
    pub const SOURCE_NAT: u32 = 16;
    /// The destination address was translated.
    pub const DESTINATION_NAT: u32 = 32;
}

/// What a routing table lookup answers (`enum nft_fib_result`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum FibResult {
    /// Index of the output interface.
    OutputIndex = 1,
    /// Name of the output interface.
    OutputName = 2,
    /// Type of the address, `RTN_*` (1 unicast, 2 local, 3 broadcast), host byte order.
    AddressType = 3,
}

bitflags::bitflags! {
    /// What a routing table lookup goes by (`enum nft_fib_flags`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct FibFlags: u32 {
        /// Look up the source address.
        const SOURCE_ADDRESS = 1;
        /// Look up the destination address.
        const DESTINATION_ADDRESS = 2;
        /// Regard the packet mark.
        const MARK = 4;
        /// Regard the input interface.
        const INPUT_INTERFACE = 8;
        /// Regard the output interface.
        const OUTPUT_INTERFACE = 16;
        /// Only whether there is a route.
        const PRESENT = 32;
        const _ = !0;
    }

    /// How an address or port is chosen on translation (`NF_NAT_RANGE_*`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct NatFlags: u32 {
        /// An address is given. The kernel sets it by itself.
        const ADDRESS = 1;
        /// A port is given. The kernel sets it by itself.
        const PORT = 2;
        /// Ports by hash.
        const RANDOM = 4;
        /// The same client always gets the same address.
        const PERSISTENT = 8;
        /// Ports wholly at random.
        const FULLY_RANDOM = 16;
        const _ = !0;
    }
}

/// Which side a `nat` expression translates (`enum nft_nat_types`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum NatKind {
    /// The source.
    Source = 0,
    /// The destination.
    Destination = 1,
}

/// Which IP version addresses in registers are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum IpVersion {
    /// IPv4 (`NFPROTO_IPV4`).
    V4 = 2,
    /// IPv6 (`NFPROTO_IPV6`).
    V6 = 10,
}

/// The registers that hold the least and the greatest of a range. For one value both are the
/// same register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegisterRange {
    /// The least value.
    pub least: Register,
    /// The greatest value.
    pub greatest: Register,
}

impl From<Register> for RegisterRange {
    fn from(register: Register) -> Self {
        Self { least: register, greatest: register }
    }
}

/// One expression of a rule: reads into, works on, or judges by registers.
///
/// What has no variant is kept as [`Expression::Unknown`] with its attributes' bytes and is
/// written back the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expression {
    /// Reads a property of the packet.
    Meta {
        /// Which one.
        key: MetaKey,
        /// Where to.
        destination: Register,
    },
    /// Sets a property of the packet.
    MetaSet {
        /// Which one.
        key: MetaKey,
        /// Where from.
        source: Register,
    },
    /// Reads bytes of the packet.
    Payload {
        /// The header that the offset counts from.
        base: PayloadBase,
        /// Offset in bytes.
        offset: u32,
        /// Length in bytes.
        length: u32,
        /// Where to.
        destination: Register,
    },
    /// Goes on only if a register compares so.
    Compare {
        /// How.
        comparison: Comparison,
        /// The register.
        source: Register,
        /// The value; only its length is compared, so a shorter value compares a prefix.
        value: Data,
    },
    /// Goes on only if a register is within (or outside) a range.
    Range {
        /// Outside instead of within.
        outside: bool,
        /// The register.
        source: Register,
        /// The least value.
        least: Data,
        /// The greatest value.
        greatest: Data,
    },
    /// `destination = (source & mask) ^ xor`
    Bitwise {
        /// Operand.
        source: Register,
        /// Result.
        destination: Register,
        /// Bits to keep.
        mask: Data,
        /// Bits to flip, as long as the mask.
        xor: Data,
    },
    /// Looks a register up in a set or map.
    Lookup {
        /// The set's name.
        set: String,
        /// The key.
        source: Register,
        /// What to do with the element found.
        target: LookupTarget,
    },
    /// Puts a constant into a register.
    Immediate {
        /// Where to.
        destination: Register,
        /// What.
        value: Data,
    },
    /// Decides.
    Verdict(Verdict),
    /// Looks an address up in the routing table.
    Fib {
        /// What to answer.
        result: FibResult,
        /// What to look up.
        flags: FibFlags,
        /// Where to.
        destination: Register,
    },
    /// Reads a property of the connection.
    Conntrack {
        /// Which one.
        key: ConntrackKey,
        /// Of the original (0) or reply (1) direction, for keys that have one.
        direction: Option<u8>,
        /// Where to.
        destination: Register,
    },
    /// Sets a property of the connection.
    ConntrackSet {
        /// Which one.
        key: ConntrackKey,
        /// Where from.
        source: Register,
    },
    /// Counts packets and bytes.
    Counter {
        /// Packets so far.
        packets: u64,
        /// Bytes so far.
        bytes: u64,
    },
    /// Translates an address and port to what registers hold.
    Nat {
        /// Source or destination.
        kind: NatKind,
        /// The IP version of the address.
        version: IpVersion,
        /// The address.
        address: Option<RegisterRange>,
        /// The port, network byte order.
        port: Option<RegisterRange>,
        /// How to choose.
        flags: NatFlags,
    },
    /// Translates the source to the output interface's address.
    Masquerade {
        /// How to choose a port.
        flags: NatFlags,
        /// The ports to choose from.
        port: Option<RegisterRange>,
    },
    /// Translates the destination to this host.
    Redirect {
        /// The port.
        port: Option<RegisterRange>,
        /// How to choose.
        flags: NatFlags,
    },
    /// Refuses the packet with an answer (`enum nft_reject_types`).
    Reject {
        /// 0 an ICMP error of the packet's family, 1 a TCP reset, 2 an ICMP error named
        /// independent of the family.
        kind: u32,
        /// The ICMP code.
        code: u8,
    },
    /// A match extension of xtables, as iptables-nft writes it.
    XtMatch {
        /// Its name.
        name: String,
        /// Its revision.
        revision: u32,
        /// Its structure, of the C layout that the revision has.
        info: Vec<u8>,
    },
    /// A target extension of xtables, as iptables-nft writes it.
    XtTarget {
        /// Its name.
        name: String,
        /// Its revision.
        revision: u32,
        /// Its structure, of the C layout that the revision has.
        info: Vec<u8>,
    },
    /// Any other expression.
    Unknown {
        /// The kernel's name for it.
        name: String,
        /// Its attributes, encoded.
        attributes: Vec<u8>,
    },
}

/// What a lookup does with its finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LookupTarget {
    /// Goes on only if the key is in the set.
    Present,
    /// Goes on only if the key is not in the set.
    Absent,
    /// Goes on only if the key is in the map, with its value in this register.
    Value(Register),
    /// Applies the verdict that the map has for the key.
    Verdict,
}

impl Expression {
    /// A fresh counter.
    pub fn counter() -> Self {
        Self::Counter { packets: 0, bytes: 0 }
    }

    /// The kernel's name for the expression.
    pub fn name(&self) -> &str {
        match self {
            Self::Meta { .. } | Self::MetaSet { .. } => "meta",
            Self::Payload { .. } => "payload",
            Self::Compare { .. } => "cmp",
            Self::Range { .. } => "range",
            Self::Bitwise { .. } => "bitwise",
            Self::Lookup { .. } => "lookup",
            Self::Immediate { .. } | Self::Verdict(_) => "immediate",
            Self::Fib { .. } => "fib",
            Self::Conntrack { .. } | Self::ConntrackSet { .. } => "ct",
            Self::Counter { .. } => "counter",
            Self::Nat { .. } => "nat",
            Self::Masquerade { .. } => "masq",
            Self::Redirect { .. } => "redir",
            Self::Reject { .. } => "reject",
            Self::XtMatch { .. } => "match",
            Self::XtTarget { .. } => "target",
            Self::Unknown { name, .. } => name,
        }
    }
}
