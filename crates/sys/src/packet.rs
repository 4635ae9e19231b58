//! Whole Ethernet frames on one interface (packet(7)), for protocols that run
//! before an interface has an address.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with};

/// `ETH_P_IP`, `include/uapi/linux/if_ether.h`.
const ETH_P_IP: u16 = 0x0800;

/// One instruction of a classic BPF program (`struct sock_filter`).
type Instruction = libc::sock_filter;

/// A socket that sends whole Ethernet frames on one interface, and receives
/// those that its filter admits. It never blocks.
///
/// It belongs to the network namespace it was opened in.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
}

impl PacketSocket {
    /// Opens a socket that receives unfragmented UDP over IPv4 to one port.
    /// Nothing else wakes it: the filter is in place before the first frame.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW`, and for an interface that isn't there.
    pub fn open_udp(interface: u32, port: u16) -> io::Result<Self> {
        let socket = Self::new()?;
        socket.filter(&udp_to(port))?;
        socket.bind(interface, ETH_P_IP)?;
        Ok(socket)
    }

    /// Opens a socket that only sends.
    ///
    /// # Errors
    /// As [`PacketSocket::open_udp`].
    pub fn open_sender(interface: u32) -> io::Result<Self> {
        let socket = Self::new()?;
        // Protocol 0 receives nothing.
        socket.bind(interface, 0)?;
        Ok(socket)
    }

    /// Sends one frame, its Ethernet header included.
    ///
    /// # Errors
    /// `ENETDOWN` when the interface is down, `ENXIO` when it has gone, and
    /// what else the kernel says.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        loop {
            match rustix::net::send(&self.fd, frame, SendFlags::empty()) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next frame that waits; `None` when there is none. What doesn't fit
    /// into `buffer` is cut off.
    ///
    /// # Errors
    /// `ENETDOWN` once when the interface goes down or away.
    pub fn receive<'a>(&self, buffer: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
        loop {
            match rustix::net::recv(&self.fd, &mut *buffer, RecvFlags::empty()) {
                Ok((length, _)) => return Ok(buffer.get(..length)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn new() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        Ok(Self { fd: socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)? })
    }

    fn filter(&self, program: &[Instruction]) -> io::Result<()> {
        let program = libc::sock_fprog {
            len: u16::try_from(program.len()).map_err(|_| Errno::INVAL)?,
            // The kernel only reads it, whatever its declaration says.
            filter: program.as_ptr().cast_mut(),
        };
        let length = libc::socklen_t::try_from(size_of_val(&program)).map_err(|_| Errno::INVAL)?;
        // SAFETY: the descriptor is ours and open; pointer and length describe
        // `program`, which points to `program.len` instructions that outlive the
        // call. The kernel copies them.
        let result = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_FILTER,
                std::ptr::from_ref(&program).cast(),
                length,
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn bind(&self, interface: u32, protocol: u16) -> io::Result<()> {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET.cast_unsigned().try_into().map_err(|_| Errno::INVAL)?,
            sll_protocol: protocol.to_be(),
            sll_ifindex: interface.cast_signed(),
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let length = libc::socklen_t::try_from(size_of_val(&address)).map_err(|_| Errno::INVAL)?;
        // SAFETY: the descriptor is ours and open; pointer and length describe
        // `address`, which outlives the call and is only read.
        let result =
            unsafe { libc::bind(self.fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The filter for unfragmented UDP over IPv4 to `port`, on Ethernet frames.
fn udp_to(port: u16) -> [Instruction; 11] {
    // include/uapi/linux/bpf_common.h
    const LOAD_HALF: u16 = 0x28;
    const LOAD_BYTE: u16 = 0x30;
    const LOAD_HALF_INDEXED: u16 = 0x48;
    const LOAD_HEADER_LENGTH: u16 = 0xb1;
    const JUMP_EQUAL: u16 = 0x15;
    const JUMP_SET: u16 = 0x45;
    const RETURN: u16 = 0x06;
    let step = |code, jt, jf, k| Instruction { code, jt, jf, k };
    [
        step(LOAD_HALF, 0, 0, 12), // the Ethernet type
        step(JUMP_EQUAL, 0, 8, u32::from(ETH_P_IP)),
        step(LOAD_BYTE, 0, 0, 23), // the IP protocol
        step(JUMP_EQUAL, 0, 6, 17),
        step(LOAD_HALF, 0, 0, 20), // flags and fragment offset
        step(JUMP_SET, 4, 0, 0x3fff),
        step(LOAD_HEADER_LENGTH, 0, 0, 14), // of IP, into the index
        step(LOAD_HALF_INDEXED, 0, 0, 16),  // the UDP destination port
        step(JUMP_EQUAL, 0, 1, u32::from(port)),
        step(RETURN, 0, 0, 0xffff),
        step(RETURN, 0, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::NetNs;

    /// A frame to the loopback interface: UDP over IPv4.
    fn frame(protocol: u8, fragment: u16, port: u16) -> Vec<u8> {
        let mut frame = vec![0; 14 + 20 + 8];
        frame[12..14].copy_from_slice(&ETH_P_IP.to_be_bytes());
        frame[14] = 0x45;
        frame[14 + 6..14 + 8].copy_from_slice(&fragment.to_be_bytes());
        frame[14 + 9] = protocol;
        frame[34 + 2..34 + 4].copy_from_slice(&port.to_be_bytes());
        frame
    }

    #[test]
    fn only_udp_to_the_port_is_received() {
        let namespace = NetNs::anonymous().unwrap();
        let (receiver, sender) = namespace
            .run(|| {
                let up = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
                bring_loopback_up(&up);
                (PacketSocket::open_udp(1, 68).unwrap(), PacketSocket::open_sender(1).unwrap())
            })
            .unwrap();
        let wanted = frame(17, 0, 68);
        for other in [frame(6, 0, 68), frame(17, 0x2000, 68), frame(17, 1, 68), frame(17, 0, 67)] {
            sender.send(&other).unwrap();
        }
        sender.send(&wanted).unwrap();
        let limit = rustix::event::Timespec { tv_sec: 5, tv_nsec: 0 };
        let mut sockets = [rustix::event::PollFd::new(&receiver, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut sockets, Some(&limit)).unwrap();
        let mut buffer = [0; 100];
        assert_eq!(receiver.receive(&mut buffer).unwrap(), Some(wanted.as_slice()));
        // Loopback delivers what it sends, so the same frame may come twice.
        while let Some(found) = receiver.receive(&mut buffer).unwrap() {
            assert_eq!(found, wanted);
        }
        assert!(namespace.run(|| PacketSocket::open_sender(99)).unwrap().is_err());
    }

    fn bring_loopback_up(socket: &OwnedFd) {
        // SAFETY: an all-zero ifreq is valid, and the ioctl only reads it.
        let result = unsafe {
            let mut request: libc::ifreq = std::mem::zeroed();
            request.ifr_name[0] = 108; // l
            request.ifr_name[1] = 111; // o
            request.ifr_ifru.ifru_flags = 1; // IFF_UP
            libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)
        };
        assert_eq!(result, 0);
    }
}
