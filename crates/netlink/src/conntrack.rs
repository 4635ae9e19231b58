//! Connection tracking over netlink (`linux/netfilter/nfnetlink_conntrack.h`): listing the
//! connections that the kernel knows, and forgetting some.
//!
//! ```no_run
//! use podwire_netlink::conntrack::ConntrackSocket;
//! use podwire_netlink::nft::IpVersion;
//!
//! # fn main() -> Result<(), podwire_netlink::Error> {
//! let mut conntrack = ConntrackSocket::open()?;
//! // UDP to port 53 that was translated to an address that is no more.
//! let gone: std::net::IpAddr = std::net::Ipv4Addr::new(10, 1, 0, 5).into();
//! conntrack.delete_matching(Some(IpVersion::V4), |connection| {
//!     connection.original.protocol == 17
//!         && connection.original.destination_port() == Some(53)
//!         && connection.reply.source == gone
//! })?;
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::net::IpAddr;

use rustix::io::Errno;

use crate::attribute::{Attribute, Attributes};
use crate::error::{Cause, Error, Malformed, Subject};
use crate::message::{Body, Flags, Requests};
use crate::nft::IpVersion;
use crate::socket::{Protocol, Socket};

/// `NFNL_SUBSYS_CTNETLINK` and `enum cntl_msg_types`.
const GET: u16 = (1 << 8) | 1;
const DELETE: u16 = (1 << 8) | 2;
/// `enum ctattr_type`
const TUPLE_ORIGINAL: u16 = 1;
const TUPLE_REPLY: u16 = 2;
const STATUS: u16 = 3;
const TIMEOUT: u16 = 7;
const MARK: u16 = 8;
const ID: u16 = 12;
const ZONE: u16 = 18;
/// `enum ctattr_tuple`
const TUPLE_IP: u16 = 1;
const TUPLE_PROTOCOL: u16 = 2;
const TUPLE_ZONE: u16 = 3;
/// `sizeof(struct nfgenmsg)`
const NFGENMSG: usize = 4;
/// Deletions sent at once, so that their answers fit a receive buffer.
const DELETIONS_AT_ONCE: usize = 64;

/// What tells the packets of one connection apart, beside addresses and protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Ports, for TCP, UDP, SCTP, DCCP, UDP-Lite (and the keys of GRE).
    Ports {
        /// The source port.
        source: u16,
        /// The destination port.
        destination: u16,
    },
    /// An ICMP exchange, of either IP version.
    Icmp {
        /// The identifier.
        id: u16,
        /// The type.
        kind: u8,
        /// The code.
        code: u8,
    },
    /// A protocol that has nothing of the kind.
    Nothing,
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// The source address.
    pub source: IpAddr,
    /// The destination address.
    pub destination: IpAddr,
    /// The transport protocol's number.
    pub protocol: u8,
    /// Ports or their like.
    pub endpoint: Endpoint,
    /// The zone, where it holds for one direction only.
    pub zone: Option<u16>,
}

impl Tuple {
    /// The source port, if the protocol has ports.
    pub fn source_port(&self) -> Option<u16> {
        match self.endpoint {
            Endpoint::Ports { source, .. } => Some(source),
            _ => None,
        }
    }

    /// The destination port, if the protocol has ports.
    pub fn destination_port(&self) -> Option<u16> {
        match self.endpoint {
            Endpoint::Ports { destination, .. } => Some(destination),
            _ => None,
        }
    }
}

impl fmt::Display for Tuple {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, destination, protocol, endpoint, .. } = self;
        write!(formatter, "protocol {protocol} from {source}")?;
        match endpoint {
            Endpoint::Ports { source, destination: port } => {
                write!(formatter, " port {source} to {destination} port {port}")
            }
            Endpoint::Icmp { id, kind, code } => {
                write!(formatter, " to {destination} type {kind} code {code} id {id}")
            }
            Endpoint::Nothing => write!(formatter, " to {destination}"),
        }
    }
}

/// A connection that the kernel tracks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// As the first packet was sent.
    pub original: Tuple,
    /// As answers are expected, so with source and destination exchanged and translated.
    pub reply: Tuple,
    /// `IPS_*` bits, see [`conntrack_status`](crate::nft::conntrack_status).
    pub status: u32,
    /// The connection's mark.
    pub mark: u32,
    /// The zone, where it holds for both directions.
    pub zone: u16,
    /// Seconds until it is forgotten.
    pub timeout: Option<u32>,
    /// The kernel's number for it, which tells it from a later one of the same tuple.
    pub id: Option<u32>,
}

/// A connection to connection tracking of the network namespace that it was opened in.
#[derive(Debug)]
pub struct ConntrackSocket {
    socket: Socket,
}

impl ConntrackSocket {
    /// Opens a connection in the calling thread's network namespace.
    ///
    /// Whether the kernel tracks connections shows at the first use: the error says so with
    /// [`Error::is_unsupported`].
    pub fn open() -> Result<Self, Error> {
        Ok(Self { socket: Socket::open(Protocol::Netfilter)? })
    }

    /// The connections of one IP version or both that `wanted` picks.
    pub fn matching(
        &mut self,
        version: Option<IpVersion>,
        mut wanted: impl FnMut(&Connection) -> bool,
    ) -> Result<Vec<Connection>, Error> {
        let subject = Subject::new("listing tracked connections", &"");
        let listed = self.socket.dump(
            subject,
            GET,
            |body| header(body, version),
            |reply| Ok(decode(reply.payload)?.filter(&mut wanted)),
        );
        listed.map_err(|error| explain(subject, error))
    }

    /// All connections of one IP version or both.
    pub fn connections(&mut self, version: Option<IpVersion>) -> Result<Vec<Connection>, Error> {
        self.matching(version, |_| true)
    }

    /// Forgets the connection with this tuple in its original direction.
    ///
    /// # Errors
    /// [`Error::is_not_found`] when there is none.
    pub fn delete(&mut self, original: &Tuple, zone: u16) -> Result<(), Error> {
        let subject = Subject::new("deleting tracked connection", original);
        self.socket
            .request(subject, DELETE, Flags::empty(), |body| {
                header(body, Some(version_of(original)));
                identify(body, original, zone, None);
            })
            .map_err(|error| explain(subject, error))
    }

    /// Forgets the connections that `wanted` picks, and returns how many there were. One that
    /// ended by itself in between doesn't count.
    pub fn delete_matching(
        &mut self,
        version: Option<IpVersion>,
        wanted: impl FnMut(&Connection) -> bool,
    ) -> Result<usize, Error> {
        let connections = self.matching(version, wanted)?;
        let mut deleted = 0;
        for some in connections.chunks(DELETIONS_AT_ONCE) {
            let mut requests = Requests::new();
            for connection in some {
                requests.push(DELETE, Flags::REQUEST | Flags::ACK, |body| {
                    header(body, Some(version_of(&connection.original)));
                    identify(body, &connection.original, connection.zone, connection.id);
                });
            }
            let verdicts = self
                .socket
                .transact(&mut requests)
                .map_err(|cause| Subject::new("deleting tracked connections", &"").error(cause))?;
            for (connection, verdict) in some.iter().zip(verdicts) {
                match verdict {
                    Ok(()) => deleted += 1,
                    Err(refusal) if refusal.errno == Errno::NOENT => {}
                    Err(refusal) => {
                        let subject =
                            Subject::new("deleting tracked connection", &connection.original);
                        return Err(subject.error(Cause::Kernel(refusal)));
                    }
                }
            }
        }
        Ok(deleted)
    }
}

/// nfnetlink answers EINVAL when nobody serves the subsystem, here to requests that are valid.
fn explain(subject: Subject<'_>, error: Error) -> Error {
    match error.errno() {
        Some(Errno::INVAL | Errno::OPNOTSUPP) => {
            let missing = "connection tracking over netlink (CONFIG_NF_CT_NETLINK)";
            subject.error(Cause::Unsupported(missing.to_owned()))
        }
        _ => error,
    }
}

fn version_of(tuple: &Tuple) -> IpVersion {
    match tuple.source {
        IpAddr::V4(_) => IpVersion::V4,
        IpAddr::V6(_) => IpVersion::V6,
    }
}

fn header(body: &mut Body<'_>, version: Option<IpVersion>) {
    body.raw(&[version.map_or(0, |version| version as u8), 0, 0, 0]);
}

/// Writes what a deletion goes by. It must never be empty: a deletion without a tuple empties
/// the whole table.
fn identify(body: &mut Body<'_>, original: &Tuple, zone: u16, id: Option<u32>) {
    body.nest(TUPLE_ORIGINAL, |body| tuple(body, original));
    if zone != 0 {
        body.u16_be(ZONE, zone);
    }
    if let Some(id) = id {
        body.u32_be(ID, id);
    }
}

fn tuple(body: &mut Body<'_>, tuple: &Tuple) {
    // CTA_IP_V4_SRC, _V4_DST, _V6_SRC and _V6_DST.
    let (source, destination) = match version_of(tuple) {
        IpVersion::V4 => (1, 2),
        IpVersion::V6 => (3, 4),
    };
    body.nest(TUPLE_IP, |body| {
        body.ip(source, tuple.source);
        body.ip(destination, tuple.destination);
    });
    // enum ctattr_l4proto: number, ports; then id, type and code of ICMP and of ICMPv6.
    body.nest(TUPLE_PROTOCOL, |body| {
        body.u8(1, tuple.protocol);
        match tuple.endpoint {
            Endpoint::Ports { source, destination } => {
                body.u16_be(2, source);
                body.u16_be(3, destination);
            }
            Endpoint::Icmp { id, kind, code } => {
                let first = if version_of(tuple) == IpVersion::V4 { 4 } else { 7 };
                body.u16_be(first, id);
                body.u8(first + 1, kind);
                body.u8(first + 2, code);
            }
            Endpoint::Nothing => {}
        }
    });
    if let Some(zone) = tuple.zone {
        body.u16_be(TUPLE_ZONE, zone);
    }
}

impl Connection {
    /// Reads a message of the kernel, without the netlink header; `None` for a
    /// connection that is neither IPv4 nor IPv6.
    ///
    /// # Errors
    /// It breaks the format.
    pub fn decode(message: &[u8]) -> Result<Option<Self>, Malformed> {
        decode(message)
    }
}

/// Reads a connection; `None` for one that is neither IPv4 nor IPv6.
fn decode(payload: &[u8]) -> Result<Option<Connection>, Malformed> {
    if !matches!(payload.first(), Some(2 | 10)) {
        return Ok(None);
    }
    let (mut original, mut reply) = (None, None);
    let (mut status, mut mark, mut zone, mut timeout, mut id) = (0, 0, 0, None, None);
    for attribute in Attributes::after(payload, NFGENMSG)? {
        let attribute = attribute?;
        match attribute.kind {
            TUPLE_ORIGINAL => original = Some(decode_tuple(&attribute)?),
            TUPLE_REPLY => reply = Some(decode_tuple(&attribute)?),
            STATUS => status = attribute.u32_be()?,
            TIMEOUT => timeout = Some(attribute.u32_be()?),
            MARK => mark = attribute.u32_be()?,
            ID => id = Some(attribute.u32_be()?),
            ZONE => zone = attribute.u16_be()?,
            _ => {}
        }
    }
    match (original, reply) {
        (Some(original), Some(reply)) => {
            Ok(Some(Connection { original, reply, status, mark, zone, timeout, id }))
        }
        _ => Err(Malformed("a tracked connection without both directions")),
    }
}

fn decode_tuple(attribute: &Attribute<'_>) -> Result<Tuple, Malformed> {
    let (mut source, mut destination, mut protocol, mut zone) = (None, None, None, None);
    let mut endpoint = Endpoint::Nothing;
    for part in attribute.nested() {
        let part = part?;
        match part.kind {
            TUPLE_IP => {
                for address in part.nested() {
                    let address = address?;
                    match address.kind {
                        1 | 3 => source = Some(address.ip()?),
                        2 | 4 => destination = Some(address.ip()?),
                        _ => {}
                    }
                }
            }
            TUPLE_PROTOCOL => (protocol, endpoint) = decode_protocol(part.nested())?,
            TUPLE_ZONE => zone = Some(part.u16_be()?),
            _ => {}
        }
    }
    match (source, destination, protocol) {
        (Some(source), Some(destination), Some(protocol)) => {
            Ok(Tuple { source, destination, protocol, endpoint, zone })
        }
        _ => Err(Malformed("a connection's direction without addresses or protocol")),
    }
}

fn decode_protocol(attributes: Attributes<'_>) -> Result<(Option<u8>, Endpoint), Malformed> {
    let mut protocol = None;
    let (mut source, mut destination) = (None, None);
    let (mut id, mut kind, mut code) = (None, None, None);
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.kind {
            1 => protocol = Some(attribute.u8()?),
            2 => source = Some(attribute.u16_be()?),
            3 => destination = Some(attribute.u16_be()?),
            4 | 7 => id = Some(attribute.u16_be()?),
            5 | 8 => kind = Some(attribute.u8()?),
            6 | 9 => code = Some(attribute.u8()?),
            _ => {}
        }
    }
    let endpoint = match (source, destination, id, kind, code) {
        (Some(source), Some(destination), ..) => Endpoint::Ports { source, destination },
        (_, _, Some(id), Some(kind), Some(code)) => Endpoint::Icmp { id, kind, code },
        _ => Endpoint::Nothing,
    };
    Ok((protocol, endpoint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn connection(original: Tuple) -> Connection {
        let reply =
            Tuple { source: original.destination, destination: original.source, ..original };
        Connection { original, reply, status: 8, mark: 1, zone: 7, timeout: None, id: Some(9) }
    }

    fn encoded(connection: &Connection) -> Vec<u8> {
        let mut requests = Requests::new();
        requests.push(GET, Flags::empty(), |body| {
            header(body, Some(version_of(&connection.original)));
            identify(body, &connection.original, connection.zone, connection.id);
            body.nest(TUPLE_REPLY, |body| tuple(body, &connection.reply));
            body.u32_be(STATUS, connection.status);
            body.u32_be(MARK, connection.mark);
        });
        requests.bytes()[16..].to_vec()
    }

    #[test]
    fn what_is_written_is_read_back() {
        for (source, destination, protocol, endpoint) in [
            ("10.0.0.1", "10.0.0.2", 17, Endpoint::Ports { source: 5, destination: 53 }),
            ("fd00::1", "fd00::2", 58, Endpoint::Icmp { id: 3, kind: 128, code: 0 }),
            ("10.0.0.1", "10.0.0.2", 2, Endpoint::Nothing),
        ] {
            let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
            let original = Tuple { source, destination, protocol, endpoint, zone: Some(4) };
            let written = connection(original);
            assert_eq!(decode(&encoded(&written)), Ok(Some(written)));
        }
    }

    #[test]
    fn a_tuple_without_addresses_is_refused() {
        let mut requests = Requests::new();
        requests.push(GET, Flags::empty(), |body| {
            header(body, Some(IpVersion::V4));
            body.nest(TUPLE_ORIGINAL, |body| body.nest(TUPLE_PROTOCOL, |body| body.u8(1, 6)));
        });
        assert!(decode(&requests.bytes()[16..]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(mut bytes: Vec<u8>) {
            let _ = decode(&bytes);
            if let Some(first) = bytes.first_mut() {
                *first = 2;
            }
            let _ = decode(&bytes);
        }

        #[test]
        fn damaged_messages_are_read_without_panic(index in 0_usize..200, value: u8) {
            let endpoint = Endpoint::Ports { source: 5, destination: 53 };
            let address = "10.0.0.1".parse().unwrap();
            let tuple =
                Tuple { source: address, destination: address, protocol: 6, endpoint, zone: None };
            let mut bytes = encoded(&connection(tuple));
            if let Some(byte) = bytes.get_mut(index) {
                *byte = value;
            }
            let _ = decode(&bytes);
        }
    }
}
