//! The number that tells namespaces apart for ever.

use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// `SO_NETNS_COOKIE`, include/uapi/asm-generic/socket.h.
const SO_NETNS_COOKIE: libc::c_int = 71;

/// The cookie of the calling thread's namespace; `None` before Linux 5.14.
pub(super) fn of_current() -> Option<u64> {
    // A Unix socket always exists, whatever protocols the namespace has.
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok()?;
    let mut cookie = 0_u64;
    let mut length = libc::socklen_t::try_from(size_of::<u64>()).ok()?;
    // SAFETY: the pointers are to live locals of exactly the size given, and the
    // kernel writes at most `length` bytes.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    (result == 0 && cookie != 0).then_some(cookie)
}
