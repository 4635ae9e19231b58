//! Sockets in the container's namespace, open only while an answer is due.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use podwire_sys::datagram;
use podwire_sys::packet::PacketSocket;

use super::interface::{Host, Whereabouts};
use crate::frame::{self, CLIENT_PORT, EVERYONE, End, SERVER_PORT};
use crate::machine::Listening;
use crate::message::Message;
use crate::record::Record;

/// Room for one packet: more than any message that was asked for.
const PACKET: usize = 2048;

/// A socket for the answers that are due.
#[derive(Debug)]
pub(super) enum Exchange {
    /// Hears the whole segment.
    Segment(PacketSocket),
    /// Hears what is sent to the leased address.
    Address(UdpSocket, Ipv4Addr),
}

/// What arrived.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) message: Message,
    /// Whence, where the segment was heard.
    pub(super) hardware: Option<[u8; 6]>,
}

/// One read.
#[derive(Debug)]
pub(super) enum Heard {
    /// An answer, perhaps.
    Message(Arrived),
    /// Something else.
    Noise,
    /// Nothing more.
    Silence,
}

/// Why no socket could be had.
#[derive(Debug)]
pub(super) enum NoExchange {
    /// The interface has gone.
    Gone,
    /// It can't be reached now.
    Trouble(String),
}

impl Exchange {
    /// Opens the socket for what a lease listens for.
    pub(super) fn open(
        host: &mut Host,
        record: &Record,
        listening: Listening,
    ) -> Result<Self, NoExchange> {
        let (netns, name) = match host.find(record) {
            Whereabouts::There { netns, name } => (netns, name),
            Whereabouts::Gone => return Err(NoExchange::Gone),
            Whereabouts::Unknown { why } => return Err(NoExchange::Trouble(why)),
        };
        let opened = host.inside(&netns, || -> io::Result<Self> {
            match listening {
                Listening::Address { address } => {
                    let local = SocketAddrV4::new(address, CLIENT_PORT);
                    datagram::bound_to_interface(local, &name)
                        .map(|socket| Self::Address(socket, address))
                }
                _ => PacketSocket::open_udp(record.place.index, CLIENT_PORT).map(Self::Segment),
            }
        });
        opened.and_then(|opened| opened).map_err(|error| NoExchange::Trouble(error.to_string()))
    }

    /// Whether it hears what is listened for.
    pub(super) fn serves(&self, listening: Listening) -> bool {
        match (self, listening) {
            (Self::Segment(_), Listening::Segment) => true,
            (Self::Address(_, own), Listening::Address { address }) => *own == address,
            _ => false,
        }
    }

    /// Sends to everyone on the segment.
    pub(super) fn broadcast(
        &self,
        hardware: [u8; 6],
        source: Ipv4Addr,
        message: &Message,
    ) -> io::Result<()> {
        let Self::Segment(socket) = self else { return Err(io::ErrorKind::NotConnected.into()) };
        let from = End { hardware, address: source };
        let to = End { hardware: EVERYONE, address: Ipv4Addr::BROADCAST };
        socket.send(&frame::to_server(from, to, None, &message.encode()))
    }

    /// Sends to one server.
    pub(super) fn unicast(&self, server: Ipv4Addr, message: &Message) -> io::Result<()> {
        let Self::Address(socket, _) = self else { return Err(io::ErrorKind::NotConnected.into()) };
        socket.send_to(&message.encode(), SocketAddrV4::new(server, SERVER_PORT)).map(drop)
    }

    /// The next packet that waits.
    pub(super) fn hear(&self) -> Heard {
        let mut buffer = [0; PACKET];
        let (hardware, message) = match self {
            Self::Segment(socket) => match socket.receive(&mut buffer) {
                Ok(Some(bytes)) => match frame::from_server(bytes) {
                    Some((hardware, message)) => (Some(hardware), message),
                    None => return Heard::Noise,
                },
                Ok(None) | Err(_) => return Heard::Silence,
            },
            Self::Address(socket, _) => match socket.recv_from(&mut buffer) {
                Ok((length, from)) if from.port() == SERVER_PORT => {
                    (None, buffer.get(..length).unwrap_or_default())
                }
                Ok(_) => return Heard::Noise,
                // An ICMP error of an earlier packet comes this way; the next
                // try is planned anyway.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    return Heard::Noise;
                }
                Err(_) => return Heard::Silence,
            },
        };
        match Message::decode(message) {
            Ok(message) => Heard::Message(Arrived { message, hardware }),
            Err(error) => {
                log::debug!("{error}");
                Heard::Noise
            }
        }
    }
}

impl AsFd for Exchange {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Segment(socket) => socket.as_fd(),
            Self::Address(socket, _) => socket.as_fd(),
        }
    }
}
