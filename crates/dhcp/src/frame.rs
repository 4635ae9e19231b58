//! Ethernet, IPv4 and UDP around a DHCP message, for sending before an address
//! is there, and from the host after an interface has gone.

use std::net::Ipv4Addr;

/// The client's port (RFC 2131, section 4.1).
pub const CLIENT_PORT: u16 = 68;
/// The server's port.
pub const SERVER_PORT: u16 = 67;
/// Everyone on the segment.
pub const EVERYONE: [u8; 6] = [0xff; 6];

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const UDP: usize = 8;
const ETHER_TYPE_IPV4: [u8; 2] = [8, 0];
const ETHER_TYPE_VLAN: [u8; 2] = [0x81, 0];
const PROTOCOL_UDP: u8 = 17;

/// One end of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Its hardware address.
    pub hardware: [u8; 6],
    /// Its address.
    pub address: Ipv4Addr,
}

/// A client's message as a frame; tagged for a VLAN where one is given.
pub fn to_server(from: End, to: End, vlan: Option<u16>, message: &[u8]) -> Vec<u8> {
    let udp_length = UDP + message.len();
    let length = |bytes: usize| u16::try_from(bytes).unwrap_or(u16::MAX).to_be_bytes();
    let mut frame = Vec::with_capacity(ETHERNET + 4 + IPV4 + udp_length);
    frame.extend(to.hardware);
    frame.extend(from.hardware);
    if let Some(vlan) = vlan {
        frame.extend(ETHER_TYPE_VLAN);
        frame.extend((vlan & 0xfff).to_be_bytes());
    }
    frame.extend(ETHER_TYPE_IPV4);

    // Version and header length, lowest delay (as clients send it).
    let mut header = vec![0x45, 0x10];
    header.extend(length(IPV4 + udp_length));
    header.extend([0, 0, 0x40, 0, 64, PROTOCOL_UDP, 0, 0]);
    header.extend(from.address.octets());
    header.extend(to.address.octets());
    let sum = checksum(&[&header]).to_be_bytes();
    header.splice(10..12, sum);
    frame.extend(&header);

    let mut udp = Vec::with_capacity(UDP);
    udp.extend(CLIENT_PORT.to_be_bytes());
    udp.extend(SERVER_PORT.to_be_bytes());
    udp.extend(length(udp_length));
    udp.extend([0, 0]);
    let pseudo = [
        &from.address.octets()[..],
        &to.address.octets(),
        &[0, PROTOCOL_UDP],
        &length(udp_length),
        &udp,
        message,
    ];
    // A sum of zero would mean that there is none (RFC 768).
    let sum = match checksum(&pseudo) {
        0 => u16::MAX,
        sum => sum,
    };
    udp.splice(6..8, sum.to_be_bytes());
    frame.extend(udp);
    frame.extend(message);
    frame
}

/// The hardware address of whoever sent a frame to the client's port, and the
/// DHCP message in it. `None` for every other frame.
///
/// The UDP checksum isn't looked at: between interfaces of one machine the
/// kernel leaves it unset, and on a wire Ethernet has its own.
pub fn from_server(frame: &[u8]) -> Option<([u8; 6], &[u8])> {
    let (ethernet, rest) = frame.split_at_checked(ETHERNET)?;
    let sender = ethernet.get(6..12)?.try_into().ok()?;
    if ethernet.get(12..14)? != ETHER_TYPE_IPV4 {
        return None;
    }
    let first = *rest.first()?;
    let header_length = usize::from(first & 15) * 4;
    if first >> 4 != 4 || header_length < IPV4 {
        return None;
    }
    let total = usize::from(number(rest, 2)?);
    // Short frames are padded.
    let packet = rest.get(..total)?;
    let (header, datagram) = packet.split_at_checked(header_length)?;
    let fragmented = number(header, 6)? & 0x3fff != 0;
    if *header.get(9)? != PROTOCOL_UDP || fragmented || checksum(&[header]) != 0 {
        return None;
    }
    let udp_length = usize::from(number(datagram, 4)?);
    if number(datagram, 2)? != CLIENT_PORT || udp_length < UDP {
        return None;
    }
    Some((sender, datagram.get(..udp_length)?.get(UDP..)?))
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes)
}

/// The Internet checksum (RFC 1071) of parts of which all but the last have an
/// even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0_u32;
    for part in parts {
        for pair in part.chunks(2) {
            let (high, low) = (pair.first().copied(), pair.get(1).copied());
            let word = u16::from_be_bytes([high.unwrap_or(0), low.unwrap_or(0)]);
            sum = sum.wrapping_add(u32::from(word));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(!sum & 0xffff).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CLIENT: End = End { hardware: [2, 0, 0, 0, 0, 1], address: Ipv4Addr::new(10, 0, 0, 9) };
    const SERVER: End = End { hardware: [2, 0, 0, 0, 0, 2], address: Ipv4Addr::new(10, 0, 0, 1) };

    /// The same frame as a server would send it.
    fn answer(message: &[u8]) -> Vec<u8> {
        let mut frame = to_server(SERVER, CLIENT, None, message);
        frame[34..38].copy_from_slice(&[0, 67, 0, 68]);
        frame
    }

    #[test]
    fn a_frame_holds_what_was_put_in() {
        let frame = answer(b"hello");
        assert_eq!(from_server(&frame), Some((SERVER.hardware, &b"hello"[..])));
        let mut padded = frame.clone();
        padded.resize(100, 0);
        assert_eq!(from_server(&padded), Some((SERVER.hardware, &b"hello"[..])));
        for length in 0..frame.len() {
            assert_eq!(from_server(&frame[..length]), None, "{length}");
        }
    }

    #[test]
    fn checksums_are_right() {
        let frame = to_server(CLIENT, SERVER, None, b"odd");
        assert_eq!(checksum(&[&frame[14..34]]), 0);
        let pseudo = [&frame[26..34], &[0, 17], &frame[38..40], &frame[34..]];
        assert_eq!(checksum(&pseudo), 0);
        // RFC 1071, section 3.
        assert_eq!(!checksum(&[&[0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7]]), 0xddf2);
    }

    #[test]
    fn a_vlan_is_a_tag_behind_the_addresses() {
        let plain = to_server(CLIENT, SERVER, None, b"x");
        let tagged = to_server(CLIENT, SERVER, Some(100), b"x");
        assert_eq!(tagged[12..16], [0x81, 0, 0, 100]);
        assert_eq!(tagged[16..], plain[12..]);
    }

    #[test]
    fn frames_of_other_kinds_are_nothing() {
        for (at, byte) in [(12, 9), (14, 0x65), (14, 0x41), (20, 0x20), (23, 6), (37, 67), (39, 1)]
        {
            let mut frame = answer(b"hello");
            frame[at] = byte;
            assert_eq!(from_server(&frame), None, "{at}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(frame in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = from_server(&frame);
        }
    }
}
