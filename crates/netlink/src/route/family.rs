//! Address families, scopes and the other small numbers of
//! `linux/rtnetlink.h`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::error::Malformed;

/// An IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The family of an address.
    #[must_use]
    pub const fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// `AF_INET` or `AF_INET6`.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::V4 => 2,
            Self::V6 => 10,
        }
    }

    pub(crate) const fn from_number(number: u8) -> Option<Self> {
        match number {
            2 => Some(Self::V4),
            10 => Some(Self::V6),
            _ => None,
        }
    }

    /// Everything: `0.0.0.0/0` or `::/0`.
    #[must_use]
    pub fn everything(self) -> IpNet {
        match self {
            Self::V4 => Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 0).into(),
            Self::V6 => Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 0).into(),
        }
    }

    /// A prefix from a message's length field and attribute.
    pub(crate) fn prefix(self, address: Option<IpAddr>, length: u8) -> Result<IpNet, Malformed> {
        let address = address.unwrap_or(self.everything().addr());
        if Self::of(address) != self {
            return Err(Malformed("an address of another family than its message"));
        }
        IpNet::new(address, length)
            .map_err(|_| Malformed("a prefix longer than its family's addresses"))
    }
}

/// How far an address or route reaches (`RT_SCOPE_*`): the kernel's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Scope(pub u8);

impl Scope {
    /// Everywhere.
    pub const UNIVERSE: Self = Self(0);
    /// Within the site.
    pub const SITE: Self = Self(200);
    /// To what is attached to the link.
    pub const LINK: Self = Self(253);
    /// Within the host.
    pub const HOST: Self = Self(254);
    /// Nowhere.
    pub const NOWHERE: Self = Self(255);
}

/// The routing table that routes go to unless told otherwise.
pub const TABLE_MAIN: u32 = 254;
/// The routing table of the host's own addresses.
pub const TABLE_LOCAL: u32 = 255;
