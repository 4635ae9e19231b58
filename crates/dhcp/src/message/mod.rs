//! A DHCP message (RFC 2131, section 2) as bytes and as a value.
//!
//! Encoded and decoded here rather than by a library: of the maintained
//! permissive ones, dhcproto brings the whole of hickory-proto, and smoltcp and
//! edge-dhcp know neither long options (RFC 3396), nor overloaded fields, nor
//! the options for routes and search lists, which are most of the work.

pub mod code;
mod domain;
mod options;
mod routes;

use std::net::Ipv4Addr;

pub use options::Options;
pub use routes::Route;

/// Bytes in front of the options, without the magic cookie.
const FIXED: usize = 236;
/// What says that options follow (RFC 2131, section 3).
const COOKIE: [u8; 4] = [99, 130, 83, 99];
/// The shortest message that old relays pass on (RFC 1542, section 2.1).
const SHORTEST: usize = 300;
/// A hardware address is Ethernet's (RFC 1700, "hardware types").
const ETHERNET: u8 = 1;
/// The broadcast flag.
const BROADCAST: u16 = 0x8000;

/// What is wrong with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed DHCP message: {0}")]
pub struct Malformed(pub &'static str);

/// Who sent a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// A client, or a relay for it (`BOOTREQUEST`).
    Request,
    /// A server (`BOOTREPLY`).
    Reply,
}

/// What a message is for (RFC 2132, section 9.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A client looks for servers.
    Discover,
    /// A server offers an address.
    Offer,
    /// A client takes an offer, or asks to go on with what it has.
    Request,
    /// A client refuses an address that is in use.
    Decline,
    /// A server agrees.
    Ack,
    /// A server refuses.
    Nak,
    /// A client gives its address back.
    Release,
    /// A client that has an address asks for the rest.
    Inform,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Discover,
        Self::Offer,
        Self::Request,
        Self::Decline,
        Self::Ack,
        Self::Nak,
        Self::Release,
        Self::Inform,
    ];

    const fn number(self) -> u8 {
        match self {
            Self::Discover => 1,
            Self::Offer => 2,
            Self::Request => 3,
            Self::Decline => 4,
            Self::Ack => 5,
            Self::Nak => 6,
            Self::Release => 7,
            Self::Inform => 8,
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

/// A DHCP message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who sent it.
    pub direction: Direction,
    /// What it's for.
    pub kind: Kind,
    /// The transaction (`xid`).
    pub transaction: u32,
    /// Seconds since the client began (`secs`).
    pub seconds: u16,
    /// Whether the client asks for answers by broadcast.
    pub broadcast: bool,
    /// The address that the client has and answers at (`ciaddr`).
    pub client: Ipv4Addr,
    /// The address that the server gives (`yiaddr`).
    pub yours: Ipv4Addr,
    /// The relay on the way (`giaddr`).
    pub relay: Ipv4Addr,
    /// The client's hardware address (`chaddr`).
    pub hardware: [u8; 6],
    /// All options but the message's kind.
    pub options: Options,
}

impl Message {
    /// A client's message without addresses and options.
    pub fn request(kind: Kind, transaction: u32, hardware: [u8; 6]) -> Self {
        Self {
            direction: Direction::Request,
            kind,
            transaction,
            seconds: 0,
            broadcast: false,
            client: Ipv4Addr::UNSPECIFIED,
            yours: Ipv4Addr::UNSPECIFIED,
            relay: Ipv4Addr::UNSPECIFIED,
            hardware,
            options: Options::default(),
        }
    }

    /// Reads a message, at most as long as a UDP datagram.
    ///
    /// # Errors
    /// [`Malformed`], for all that isn't a DHCP message about an Ethernet
    /// client.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let short = Malformed("shorter than its fixed fields");
        let byte = |at: usize| bytes.get(at).copied().ok_or(short);
        let address = |at: usize| -> Result<Ipv4Addr, Malformed> {
            let field = bytes.get(at..at + 4).and_then(|field| <[u8; 4]>::try_from(field).ok());
            field.map(Ipv4Addr::from).ok_or(short)
        };
        let direction = match byte(0)? {
            1 => Direction::Request,
            2 => Direction::Reply,
            _ => return Err(Malformed("neither a request nor a reply")),
        };
        if byte(1)? != ETHERNET || byte(2)? != 6 {
            return Err(Malformed("not about an Ethernet address"));
        }
        let hardware = bytes.get(28..34).and_then(|field| field.try_into().ok()).ok_or(short)?;
        let (file, name) = (bytes.get(108..FIXED).ok_or(short)?, bytes.get(44..108).ok_or(short)?);
        let rest = bytes.get(FIXED..).ok_or(short)?;
        let Some(area) = rest.strip_prefix(&COOKIE) else {
            return Err(Malformed("without the cookie in front of the options"));
        };
        let mut options = Options::decode(area, file, name)?;
        let kind = match options.remove(code::MESSAGE_TYPE).as_deref() {
            Some([number]) => Kind::from_number(*number).ok_or(Malformed("of an unknown type"))?,
            _ => return Err(Malformed("without a type")),
        };
        Ok(Self {
            direction,
            kind,
            transaction: u32::from_be_bytes([byte(4)?, byte(5)?, byte(6)?, byte(7)?]),
            seconds: u16::from_be_bytes([byte(8)?, byte(9)?]),
            broadcast: u16::from_be_bytes([byte(10)?, byte(11)?]) & BROADCAST != 0,
            client: address(12)?,
            yours: address(16)?,
            relay: address(24)?,
            hardware,
            options,
        })
    }

    /// The message as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SHORTEST);
        let operation = match self.direction {
            Direction::Request => 1,
            Direction::Reply => 2,
        };
        bytes.extend([operation, ETHERNET, 6, 0]);
        bytes.extend(self.transaction.to_be_bytes());
        bytes.extend(self.seconds.to_be_bytes());
        bytes.extend((if self.broadcast { BROADCAST } else { 0 }).to_be_bytes());
        for address in [self.client, self.yours, Ipv4Addr::UNSPECIFIED, self.relay] {
            bytes.extend(address.octets());
        }
        bytes.extend(self.hardware);
        bytes.resize(FIXED, 0);
        bytes.extend(COOKIE);
        bytes.extend([code::MESSAGE_TYPE, 1, self.kind.number()]);
        self.options.encode(&mut bytes);
        if bytes.len() < SHORTEST {
            bytes.resize(SHORTEST, code::PAD);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn offer() -> Message {
        let mut message = Message::request(Kind::Offer, 0x0102_0304, [2, 0, 0, 0, 0, 9]);
        message.direction = Direction::Reply;
        message.yours = Ipv4Addr::new(10, 0, 0, 9);
        message.options.set(code::SERVER_IDENTIFIER, vec![10, 0, 0, 1]);
        message
    }

    #[test]
    fn written_as_read() {
        let message = offer();
        let bytes = message.encode();
        assert_eq!(bytes.len(), SHORTEST);
        assert_eq!(Message::decode(&bytes), Ok(message));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let bytes = offer().encode();
        for length in 0..FIXED + 5 {
            assert!(Message::decode(&bytes[..length]).is_err(), "{length}");
        }
        for (at, byte) in [(0, 3), (1, 6), (2, 16), (FIXED, 0), (FIXED + 6, 99), (FIXED + 4, 0)] {
            let mut broken = bytes.clone();
            broken[at] = byte;
            assert!(Message::decode(&broken).is_err(), "{at}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..1500)) {
            let _ = Message::decode(&bytes);
        }

        #[test]
        fn garbage_options_never_panic(tail in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut bytes = offer().encode();
            bytes.truncate(FIXED + 7);
            bytes.extend(tail);
            if let Ok(message) = Message::decode(&bytes) {
                prop_assert_eq!(Message::decode(&message.encode()), Ok(message));
            }
        }
    }
}
