//! Parts of a packet that rules match and sets are keyed by.

use super::{DataType, Expression, IpVersion, MetaKey, PayloadBase, Register};

/// A part of the packet, with where it is found and which data type it has.
///
/// In tables of the inet and bridge families a rule must make sure of the protocol before it
/// reads a header: see [`Rule::ip_version`](super::Rule::ip_version).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// The IPv4 source address.
    Ipv4Source,
    /// The IPv4 destination address.
    Ipv4Destination,
    /// The IPv6 source address.
    Ipv6Source,
    /// The IPv6 destination address.
    Ipv6Destination,
    /// The transport protocol.
    TransportProtocol,
    /// The source port of TCP, UDP, SCTP and other protocols that have it in the same place.
    SourcePort,
    /// The destination port of the same.
    DestinationPort,
    /// The hardware source address.
    EtherSource,
    /// The hardware destination address.
    EtherDestination,
    /// The name of the input interface.
    InputInterface,
    /// The name of the output interface.
    OutputInterface,
    /// The packet mark.
    Mark,
}

impl Field {
    /// The source address of an IP version.
    pub fn source(version: IpVersion) -> Self {
        match version {
            IpVersion::V4 => Self::Ipv4Source,
            IpVersion::V6 => Self::Ipv6Source,
        }
    }

    /// The destination address of an IP version.
    pub fn destination(version: IpVersion) -> Self {
        match version {
            IpVersion::V4 => Self::Ipv4Destination,
            IpVersion::V6 => Self::Ipv6Destination,
        }
    }

    /// The type that a set keyed by this field has.
    pub fn data_type(self) -> DataType {
        match self {
            Self::Ipv4Source | Self::Ipv4Destination => DataType::Ipv4Address,
            Self::Ipv6Source | Self::Ipv6Destination => DataType::Ipv6Address,
            Self::TransportProtocol => DataType::InetProtocol,
            Self::SourcePort | Self::DestinationPort => DataType::InetService,
            Self::EtherSource | Self::EtherDestination => DataType::EtherAddress,
            Self::InputInterface | Self::OutputInterface => DataType::InterfaceName,
            Self::Mark => DataType::Mark,
        }
    }

    /// The expression that reads it.
    pub fn load(self, destination: Register) -> Expression {
        let length = self.data_type().length();
        let payload = |base, offset| Expression::Payload { base, offset, length, destination };
        let meta = |key| Expression::Meta { key, destination };
        match self {
            Self::Ipv4Source => payload(PayloadBase::Network, 12),
            Self::Ipv4Destination => payload(PayloadBase::Network, 16),
            Self::Ipv6Source => payload(PayloadBase::Network, 8),
            Self::Ipv6Destination => payload(PayloadBase::Network, 24),
            Self::TransportProtocol => meta(MetaKey::TransportProtocol),
            Self::SourcePort => payload(PayloadBase::Transport, 0),
            Self::DestinationPort => payload(PayloadBase::Transport, 2),
            Self::EtherDestination => payload(PayloadBase::Link, 0),
            Self::EtherSource => payload(PayloadBase::Link, 6),
            Self::InputInterface => meta(MetaKey::InputName),
            Self::OutputInterface => meta(MetaKey::OutputName),
            Self::Mark => meta(MetaKey::Mark),
        }
    }
}
