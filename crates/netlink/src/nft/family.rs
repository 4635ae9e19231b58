//! Protocol families, hooks and the other small words of nftables.

use std::fmt;

/// The family a table belongs to (`NFPROTO_*` of `linux/netfilter.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Family {
    /// IPv4 and IPv6 in one table. NAT chains in it need Linux 5.2.
    Inet = 1,
    /// IPv4 only.
    Ipv4 = 2,
    /// ARP.
    Arp = 3,
    /// Ingress and egress of one device.
    Netdev = 5,
    /// Frames crossing a bridge.
    Bridge = 7,
    /// IPv6 only.
    Ipv6 = 10,
}

impl Family {
    /// The family's number, as in `nfgenmsg.nfgen_family`.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The family with this number, or `None` when it isn't one that nftables has.
    pub fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Inet,
            2 => Self::Ipv4,
            3 => Self::Arp,
            5 => Self::Netdev,
            7 => Self::Bridge,
            10 => Self::Ipv6,
            _ => return None,
        })
    }

    /// The word that nft uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inet => "inet",
            Self::Ipv4 => "ip",
            Self::Arp => "arp",
            Self::Netdev => "netdev",
            Self::Bridge => "bridge",
            Self::Ipv6 => "ip6",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Where in the packet's way a base chain sits (`NF_INET_*`, the same numbers in `NF_BR_*`).
///
/// The numbers differ for the arp and netdev families, so those can't have base chains here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Hook {
    /// Before the routing decision.
    Prerouting = 0,
    /// Towards a local socket.
    Input = 1,
    /// Routed (or bridged) through this host.
    Forward = 2,
    /// Sent by a local socket.
    Output = 3,
    /// After the routing decision.
    Postrouting = 4,
}

impl Hook {
    /// The hook with this number.
    pub fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Prerouting,
            1 => Self::Input,
            2 => Self::Forward,
            3 => Self::Output,
            4 => Self::Postrouting,
            _ => return None,
        })
    }
}

/// What a base chain may do with packets (`type` in nft).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChainKind {
    /// Accept and drop.
    Filter,
    /// Sees the first packet of a connection and may translate its addresses.
    Nat,
    /// As filter, and reroutes when the mark or the header changed. Output hook only.
    Route,
}

impl ChainKind {
    /// The kernel's name for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Nat => "nat",
            Self::Route => "route",
        }
    }

    /// Reads the kernel's name.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "filter" => Self::Filter,
            "nat" => Self::Nat,
            "route" => Self::Route,
            _ => return None,
        })
    }
}

/// What happens to a packet that reaches a base chain's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// It goes on (`NF_ACCEPT`).
    Accept,
    /// It is dropped (`NF_DROP`).
    Drop,
}

/// Usual priorities of base chains: lower numbers see packets earlier.
///
/// From `linux/netfilter_ipv4.h` and `linux/netfilter_bridge.h`.
pub mod priority {
    /// Destination translation, ip, ip6 and inet.
    pub const DESTINATION_NAT: i32 = -100;
    /// Filtering, ip, ip6 and inet.
    pub const FILTER: i32 = 0;
    /// Source translation, ip, ip6 and inet.
    pub const SOURCE_NAT: i32 = 100;
    /// Before connection tracking, ip, ip6 and inet.
    pub const RAW: i32 = -300;
    /// Packet alteration, ip, ip6 and inet.
    pub const MANGLE: i32 = -150;
    /// Destination translation, bridge.
    pub const BRIDGE_DESTINATION_NAT: i32 = -300;
    /// Filtering, bridge.
    pub const BRIDGE_FILTER: i32 = -200;
}

/// What a rule, or a verdict map, decides about a packet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Let it pass this hook's chain.
    Accept,
    /// Drop it.
    Drop,
    /// Go on with the next rule, even out of a base chain's map.
    Continue,
    /// Leave this rule and go on with the next.
    Break,
    /// Return to the calling chain.
    Return,
    /// Run another chain, then come back.
    Jump(String),
    /// Go over to another chain for good.
    Goto(String),
    /// A code with no name here (queueing, for one), kept as read.
    Other(i32),
}

impl Verdict {
    /// The kernel's code (`enum nft_verdicts`, `NF_ACCEPT`, `NF_DROP`).
    pub fn code(&self) -> i32 {
        match self {
            Self::Drop => 0,
            Self::Accept => 1,
            Self::Continue => -1,
            Self::Break => -2,
            Self::Jump(_) => -3,
            Self::Goto(_) => -4,
            Self::Return => -5,
            Self::Other(code) => *code,
        }
    }

    /// The chain that it leads to.
    pub fn chain(&self) -> Option<&str> {
        match self {
            Self::Jump(chain) | Self::Goto(chain) => Some(chain),
            _ => None,
        }
    }

    /// Jump to the named chain.
    pub fn jump(chain: impl Into<String>) -> Self {
        Self::Jump(chain.into())
    }

    /// Go over to the named chain.
    pub fn goto(chain: impl Into<String>) -> Self {
        Self::Goto(chain.into())
    }

    pub(super) fn from_code(code: i32, chain: Option<String>) -> Self {
        match (code, chain) {
            (0, _) => Self::Drop,
            (1, _) => Self::Accept,
            (-1, _) => Self::Continue,
            (-2, _) => Self::Break,
            (-3, Some(chain)) => Self::Jump(chain),
            (-4, Some(chain)) => Self::Goto(chain),
            (-5, _) => Self::Return,
            (code, _) => Self::Other(code),
        }
    }
}
