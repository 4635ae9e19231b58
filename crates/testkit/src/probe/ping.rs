//! ICMP echo by a raw socket: no program needed, and one packet at a time.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto};

use crate::world::Netns;

/// How long before an unanswered request is sent once more.
const AGAIN: Duration = Duration::from_millis(250);

/// Sends echo requests from a namespace until one is answered; returns the time that
/// the answer took.
///
/// # Errors
/// `TimedOut` when none is answered within `patience`; else the kernel's reason
/// (network unreachable).
pub fn ping(from: &Netns, to: impl Into<IpAddr>, patience: Duration) -> io::Result<Duration> {
    let to = to.into();
    let (family, protocol) = match to {
        IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP),
        IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6),
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket =
        from.run(|| rustix::net::socket_with(family, SocketType::RAW, flags, Some(protocol)))?;
    let identifier = podwire_sys::random::bytes::<2>()?;
    let started = Instant::now();
    let mut sequence = 0_u16;
    loop {
        let sent = Instant::now();
        sequence += 1;
        let request = request(to, identifier, sequence);
        let target = SocketAddr::new(to, 0);
        match rustix::net::sendto(&socket, &request, SendFlags::empty(), &target) {
            Ok(_) => {}
            // IPv6 addresses need a moment until they may be used as a source.
            Err(rustix::io::Errno::ADDRNOTAVAIL) if started.elapsed() < patience => {}
            Err(error) => return Err(error.into()),
        }
        while sent.elapsed() < AGAIN {
            let left = AGAIN.saturating_sub(sent.elapsed());
            let mut fds = [PollFd::new(&socket, PollFlags::IN)];
            let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
            if poll(&mut fds, Some(&timeout))? == 0 {
                break;
            }
            let mut buffer = [0_u8; 2048];
            let (received, _, peer) =
                rustix::net::recvfrom(&socket, &mut buffer, RecvFlags::empty())?;
            let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok()).map(|peer| peer.ip());
            if peer == Some(to) && is_answer(to, &buffer[..received], identifier) {
                return Ok(sent.elapsed());
            }
        }
        if started.elapsed() >= patience {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("{to} did not answer {sequence} echo requests from {}", from.name()),
            ));
        }
    }
}

/// An echo request, RFC 792 and RFC 4443.
fn request(to: IpAddr, identifier: [u8; 2], sequence: u16) -> Vec<u8> {
    let kind = if to.is_ipv4() { 8 } else { 128 };
    let mut packet = vec![kind, 0, 0, 0];
    packet.extend(identifier);
    packet.extend(sequence.to_be_bytes());
    packet.extend(b"podwire!");
    if to.is_ipv4() {
        // For ICMPv6 the kernel fills it in.
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    packet
}

/// The Internet checksum, RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap()
}

/// An echo reply with our identifier; IPv4 sockets deliver the IP header too.
fn is_answer(to: IpAddr, packet: &[u8], identifier: [u8; 2]) -> bool {
    let (kind, start) = match to {
        IpAddr::V4(_) => (0, packet.first().map_or(0, |first| usize::from(first & 0xf) * 4)),
        IpAddr::V6(_) => (129, 0),
    };
    packet.get(start) == Some(&kind) && packet.get(start + 4..start + 6) == Some(&identifier)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_a_packet_with_its_checksum_is_zero() {
        let packet = request([10, 0, 0, 1].into(), [1, 2], 3);
        assert_eq!(checksum(&packet), 0);
        assert_ne!(packet[2..4], [0, 0]);
    }
}
