//! DHCP packets as bytes, read and made without the code under test.

use std::net::Ipv4Addr;

/// DHCPDISCOVER (option 53, RFC 2132).
pub const DISCOVER: u8 = 1;
/// DHCPOFFER.
pub const OFFER: u8 = 2;
/// DHCPREQUEST.
pub const REQUEST: u8 = 3;
/// DHCPACK.
pub const ACK: u8 = 5;
/// DHCPNAK.
pub const NAK: u8 = 6;
/// DHCPRELEASE.
pub const RELEASE: u8 = 7;

const ETHERNET: usize = 14;
const UDP: usize = 8;
const COOKIE: [u8; 4] = [0x63, 0x82, 0x53, 0x63];
/// Where options begin: behind the fixed fields and the cookie.
pub const FIXED: usize = 240;

/// What a client sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The transaction.
    pub xid: [u8; 4],
    /// The client's MAC address.
    pub mac: [u8; 6],
    /// Which message it is.
    pub kind: u8,
    /// The address that the client has.
    pub client_address: Ipv4Addr,
    /// The client identifier.
    pub client: Vec<u8>,
}

impl Request {
    /// Reads an Ethernet frame; `None` if it is no DHCP message.
    pub fn read(frame: &[u8]) -> Option<Self> {
        let header = usize::from(frame.get(ETHERNET)? & 0xf) * 4;
        let message = frame.get(ETHERNET + header + UDP..)?;
        if message.get(236..FIXED)? != COOKIE {
            return None;
        }
        let mut request = Self {
            xid: message[4..8].try_into().ok()?,
            mac: message[28..34].try_into().ok()?,
            kind: 0,
            client_address: <[u8; 4]>::try_from(&message[12..16]).ok()?.into(),
            client: Vec::new(),
        };
        let mut options = &message[FIXED..];
        while let [code, rest @ ..] = options {
            match code {
                0 => options = rest,
                255 => break,
                _ => {
                    let length = usize::from(*rest.first()?);
                    let value = rest.get(1..=length)?;
                    match code {
                        53 => request.kind = *value.first()?,
                        61 => request.client = value.to_vec(),
                        _ => {}
                    }
                    options = &rest[1 + length..];
                }
            }
        }
        Some(request)
    }

    /// A well-formed answer.
    pub fn answer(&self, kind: u8, yours: Ipv4Addr, options: &[(u8, &[u8])]) -> Vec<u8> {
        let mut message = vec![0; FIXED];
        message[..4].copy_from_slice(&[2, 1, 6, 0]);
        message[4..8].copy_from_slice(&self.xid);
        message[12..16].copy_from_slice(&self.client_address.octets());
        message[16..20].copy_from_slice(&yours.octets());
        message[28..34].copy_from_slice(&self.mac);
        message[236..FIXED].copy_from_slice(&COOKIE);
        message.extend([53, 1, kind]);
        for (code, value) in options {
            message.extend([*code, u8::try_from(value.len()).expect("at most 255 bytes")]);
            message.extend(*value);
        }
        message.push(255);
        message
    }
}

/// One end of a packet: MAC and IPv4 address.
pub type End = ([u8; 6], Ipv4Addr);

/// An Ethernet frame from a server to a client.
pub fn frame(from: End, to: End, message: &[u8]) -> Vec<u8> {
    let length = |more: usize| u16::try_from(message.len() + more).expect("a packet's size");
    let mut packet = vec![0x45, 0];
    packet.extend(length(28).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    packet.extend(from.1.octets());
    packet.extend(to.1.octets());
    let checksum = checksum(&packet);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend(67_u16.to_be_bytes());
    packet.extend(68_u16.to_be_bytes());
    packet.extend(length(8).to_be_bytes());
    packet.extend([0, 0]); // No checksum, as IPv4 allows.
    packet.extend(message);
    let mut frame = Vec::with_capacity(packet.len() + ETHERNET);
    frame.extend(to.0);
    frame.extend(from.0);
    frame.extend([8, 0]);
    frame.extend(packet);
    frame
}

/// RFC 1071, of an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).expect("it was folded")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_what_it_is() {
        let request = Request {
            xid: [1, 2, 3, 4],
            mac: [2, 0, 0, 0, 0, 1],
            kind: ACK,
            client_address: Ipv4Addr::new(10, 9, 0, 10),
            client: b"me".to_vec(),
        };
        let answer = request.answer(ACK, Ipv4Addr::new(10, 9, 0, 10), &[(61, b"me"), (0, b"")]);
        let end = ([0; 6], Ipv4Addr::UNSPECIFIED);
        assert_eq!(Request::read(&frame(end, end, &answer)), Some(request));
        assert_eq!(Request::read(&[0; 300]), None);
    }
}
