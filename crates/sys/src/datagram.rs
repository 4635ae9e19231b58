//! UDP from one interface, whatever the routes say.

use std::ffi::CString;
use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

/// Opens a non-blocking UDP socket of the calling thread's network namespace
/// that sends from `local` and only through `interface`.
///
/// # Errors
/// `EADDRNOTAVAIL` when the address isn't on this machine, `ENODEV` when the
/// interface isn't there, `EADDRINUSE` when another program has the port.
pub fn bound_to_interface(local: SocketAddrV4, interface: &str) -> io::Result<UdpSocket> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind_to_device(&socket, interface)?;
    bind(&socket, &local)?;
    Ok(UdpSocket::from(socket))
}

fn bind_to_device(socket: &OwnedFd, interface: &str) -> io::Result<()> {
    let name = CString::new(interface)?;
    let bytes = name.as_bytes_with_nul();
    let length = libc::socklen_t::try_from(bytes.len()).map_err(|_| Errno::INVAL)?;
    // SAFETY: the descriptor is open, and pointer and length describe `bytes`,
    // which outlives the call and is only read.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_BINDTODEVICE,
            bytes.as_ptr().cast(),
            length,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn address_and_interface_must_be_there() {
        let local = |address| SocketAddrV4::new(address, 0);
        assert!(bound_to_interface(local(Ipv4Addr::LOCALHOST), "lo").is_ok());
        assert!(bound_to_interface(local(Ipv4Addr::LOCALHOST), "nowhere9").is_err());
        let error = bound_to_interface(local(Ipv4Addr::new(192, 0, 2, 1)), "lo").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
    }
}
