//! The data types of set keys and map values, and values laid out as the kernel's registers want.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `NFT_DATA_VERDICT`: the data type number of a verdict map.
const VERDICT_TYPE: u32 = 0xffff_ff00;

/// Bits that one type takes in the number of a concatenation (nft's `TYPE_BITS`).
const TYPE_BITS: u32 = 6;

/// The longest key or value, in bytes (`NFT_DATA_VALUE_MAXLEN`).
pub(super) const DATA_MAX: usize = 64;

/// Length of an interface name in a register, in bytes (`IFNAMSIZ`).
pub const INTERFACE_NAME_LENGTH: usize = 16;

/// One field of a set's key or of a map's value.
///
/// The kernel only knows lengths; the type number is what nft goes by when it prints a set
/// (`enum datatypes` of nft's `include/datatype.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// A bare number of so many bytes, in network byte order. nft lists it but can't read it back.
    Integer(u8),
    /// `ipv4_addr`
    Ipv4Address,
    /// `ipv6_addr`
    Ipv6Address,
    /// `ether_addr`
    EtherAddress,
    /// `inet_proto`: a transport protocol's number
    InetProtocol,
    /// `inet_service`: a port
    InetService,
    /// `mark`: a packet mark, host byte order
    Mark,
    /// `iface_index`, host byte order
    InterfaceIndex,
    /// `ifname`
    InterfaceName,
    /// A verdict; only as the whole value of a map.
    Verdict,
}

impl DataType {
    /// nft's number for the type.
    pub fn number(self) -> u32 {
        match self {
            Self::Integer(_) => 4,
            Self::Ipv4Address => 7,
            Self::Ipv6Address => 8,
            Self::EtherAddress => 9,
            Self::InetProtocol => 12,
            Self::InetService => 13,
            Self::Mark => 19,
            Self::InterfaceIndex => 20,
            Self::InterfaceName => 41,
            Self::Verdict => VERDICT_TYPE,
        }
    }

    /// Length in bytes, without padding. Zero for a verdict, which is not data.
    pub fn length(self) -> u32 {
        match self {
            Self::Integer(bytes) => u32::from(bytes),
            Self::Ipv4Address | Self::Mark | Self::InterfaceIndex => 4,
            Self::Ipv6Address | Self::InterfaceName => 16,
            Self::EtherAddress => 6,
            Self::InetProtocol => 1,
            Self::InetService => 2,
            Self::Verdict => 0,
        }
    }

    /// nft's note of the byte order in a set's userdata: 1 host, 2 network, 0 neither.
    pub(super) fn byte_order(self) -> u32 {
        match self {
            Self::Mark | Self::InterfaceIndex | Self::InterfaceName => 1,
            Self::Verdict => 0,
            _ => 2,
        }
    }
}

/// The number, length and byte order of one type or a concatenation of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TypeSummary {
    pub(super) number: u32,
    pub(super) length: u32,
    pub(super) byte_order: u32,
}

/// Sums up the fields as nft does: types packed six bits each, every field padded to four bytes.
pub(super) fn summarise(fields: &[DataType]) -> TypeSummary {
    if let [single] = fields {
        return TypeSummary {
            number: single.number(),
            length: single.length(),
            byte_order: single.byte_order(),
        };
    }
    fields.iter().fold(TypeSummary { number: 0, length: 0, byte_order: 0 }, |sum, field| {
        TypeSummary {
            number: (sum.number << TYPE_BITS) | field.number(),
            length: sum.length.saturating_add(padded(field.length())),
            byte_order: 0,
        }
    })
}

fn padded(length: u32) -> u32 {
    length.next_multiple_of(4)
}

/// A value as registers hold it: a key, a key's end, or a map's data.
///
/// Fields are appended with the methods below; from the second field on each field starts on a
/// four-byte boundary, as concatenations want.
///
/// ```
/// use podwire_netlink::nft::Data;
/// let key = Data::new().protocol(6).port(8080);
/// assert_eq!(key.as_bytes(), [6, 0, 0, 0, 0x1f, 0x90, 0, 0]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Data {
    bytes: Vec<u8>,
}

impl Data {
    /// No fields yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes taken as they are: one field, or a concatenation already laid out.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into() }
    }

    /// Appends one field of any length.
    #[must_use]
    pub fn field(mut self, bytes: &[u8]) -> Self {
        // A single field keeps its own length; a second one makes it a concatenation, in which
        // every field, the last included, fills whole registers.
        let concatenated = !self.bytes.is_empty();
        self.pad();
        self.bytes.extend_from_slice(bytes);
        if concatenated {
            self.pad();
        }
        self
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// Appends an IPv4 address.
    #[must_use]
    pub fn ipv4(self, address: Ipv4Addr) -> Self {
        self.field(&address.octets())
    }

    /// Appends an IPv6 address.
    #[must_use]
    pub fn ipv6(self, address: Ipv6Addr) -> Self {
        self.field(&address.octets())
    }

    /// Appends an address of either family.
    #[must_use]
    pub fn address(self, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => self.ipv4(address),
            IpAddr::V6(address) => self.ipv6(address),
        }
    }

    /// Appends a transport protocol's number (6 TCP, 17 UDP, 132 SCTP).
    #[must_use]
    pub fn protocol(self, number: u8) -> Self {
        self.field(&[number])
    }

    /// Appends a port.
    #[must_use]
    pub fn port(self, port: u16) -> Self {
        self.field(&port.to_be_bytes())
    }

    /// Appends a packet mark.
    #[must_use]
    pub fn mark(self, mark: u32) -> Self {
        self.field(&mark.to_ne_bytes())
    }

    /// Appends a hardware address.
    #[must_use]
    pub fn ether(self, address: [u8; 6]) -> Self {
        self.field(&address)
    }

    /// Appends an interface's name, filled up with zeros. What is longer than a name can be is
    /// cut, so that it still compares equal to no interface or to that name only.
    #[must_use]
    pub fn interface_name(self, name: &str) -> Self {
        self.field(&interface_name_bytes(name))
    }

    /// The bytes so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// True when there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl From<IpAddr> for Data {
    fn from(address: IpAddr) -> Self {
        Self::new().address(address)
    }
}

impl From<Ipv4Addr> for Data {
    fn from(address: Ipv4Addr) -> Self {
        Self::new().ipv4(address)
    }
}

impl From<Ipv6Addr> for Data {
    fn from(address: Ipv6Addr) -> Self {
        Self::new().ipv6(address)
    }
}

/// An interface's name as the kernel holds it: zero-filled, at most 15 bytes of name.
pub(super) fn interface_name_bytes(name: &str) -> [u8; INTERFACE_NAME_LENGTH] {
    let mut field = [0; INTERFACE_NAME_LENGTH];
    for (slot, byte) in field.iter_mut().zip(name.bytes().take(INTERFACE_NAME_LENGTH - 1)) {
        *slot = byte;
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concatenation_numbers_are_those_of_nft() {
        let key = summarise(&[DataType::InetProtocol, DataType::InetService]);
        assert_eq!((key.number, key.length), (0x30d, 8));
        let data = summarise(&[DataType::Ipv4Address, DataType::InetService]);
        assert_eq!((data.number, data.length), (0x1cd, 8));
        let verdict = summarise(&[DataType::Verdict]);
        assert_eq!((verdict.number, verdict.length), (0xffff_ff00, 0));
        let check = summarise(&[DataType::EtherAddress, DataType::InterfaceName]);
        assert_eq!(check.length, 24);
    }

    #[test]
    fn single_fields_are_not_padded_and_concatenated_ones_are() {
        assert_eq!(Data::new().port(80).as_bytes(), [0, 80]);
        assert_eq!(Data::new().port(80).protocol(6).as_bytes(), [0, 80, 0, 0, 6, 0, 0, 0]);
        assert_eq!(Data::new().ether([1, 2, 3, 4, 5, 6]).interface_name("a").as_bytes().len(), 24);
    }

    #[test]
    fn long_interface_names_are_cut_to_what_a_name_can_be() {
        assert_eq!(interface_name_bytes("0123456789abcdefgh")[15], 0);
    }
}
