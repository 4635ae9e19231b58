//! TAP devices: Ethernet interfaces whose other end is a program
//! (`Documentation/networking/tuntap.rst`, `linux/if_tun.h`).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::PathError;
use crate::error::at;

/// Where the kernel hands them out.
const DEVICE: &str = "/dev/net/tun";
/// `IFNAMSIZ`, linux/if.h.
const NAME_SIZE: usize = 16;

/// A TAP device to make.
#[derive(Debug, Clone, Copy)]
pub struct Tap<'a> {
    /// Its name.
    pub name: &'a str,
    /// The user who may attach to it beside root; root alone if none.
    pub owner: Option<u32>,
    /// The group that may attach to it.
    pub group: Option<u32>,
    /// Several programs, or threads, may attach a queue each.
    pub multi_queue: bool,
}

/// Whether TAP devices can be made: the driver is there, and we may use it.
///
/// # Errors
/// What the kernel said to opening its device file.
pub fn available() -> Result<(), PathError> {
    open().map(drop)
}

/// Makes a TAP device in the calling thread's network namespace that stays when
/// nobody is attached, without packet information in front of frames. Nothing
/// else is changed: it is down, and has a MAC address of the kernel's choice.
///
/// # Errors
/// `ResourceBusy` where anything has the name. Nothing is left of the device.
pub fn create(tap: &Tap<'_>) -> Result<(), PathError> {
    let file = open()?;
    let fail = at("making a TAP device by", Path::new(DEVICE));
    let mut flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_TUN_EXCL;
    if tap.multi_queue {
        flags |= libc::IFF_MULTI_QUEUE;
    }
    let requests = || -> io::Result<()> {
        claim(file.as_fd(), tap.name, flags)?;
        if let Some(owner) = tap.owner {
            set(file.as_fd(), libc::TUNSETOWNER as libc::Ioctl, owner)?;
        }
        if let Some(group) = tap.group {
            set(file.as_fd(), libc::TUNSETGROUP as libc::Ioctl, group)?;
        }
        // Last: until now the device goes with the descriptor.
        set(file.as_fd(), libc::TUNSETPERSIST as libc::Ioctl, 1)
    };
    requests().map_err(fail)
}

fn open() -> Result<OwnedFd, PathError> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    rustix::fs::open(DEVICE, flags, Mode::empty()).map_err(at("opening", Path::new(DEVICE)))
}

/// `struct ifreq` with `ifr_flags`.
#[repr(C)]
struct Request {
    name: [u8; NAME_SIZE],
    flags: libc::c_short,
    /// The rest of the union.
    rest: [u8; 22],
}

/// Makes the interface and attaches the descriptor to it.
fn claim(file: BorrowedFd<'_>, name: &str, flags: libc::c_int) -> io::Result<()> {
    let mut request = Request { name: [0; NAME_SIZE], flags: 0, rest: [0; 22] };
    // An empty name, or one with `%d`, would have the kernel choose.
    let is_plain = !name.is_empty() && name.len() < NAME_SIZE && !name.contains(['%', '\0']);
    if !is_plain {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.name.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    // IFF_TUN_EXCL is the sign bit.
    let [low, high, ..] = flags.to_le_bytes();
    request.flags = libc::c_short::from_le_bytes([low, high]);
    // SAFETY: the request is a live `struct ifreq` of 40 bytes, whose name ends
    // with a NUL; the kernel reads it and writes the name back within its bounds.
    let result =
        unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as libc::Ioctl, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A setting whose argument is the number itself.
fn set(file: BorrowedFd<'_>, operation: libc::Ioctl, value: u32) -> io::Result<()> {
    // SAFETY: these requests take a number, not a pointer; they touch no memory
    // of ours.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), operation, libc::c_ulong::from(value)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::NetNs;

    fn tap(name: &str) -> Tap<'_> {
        Tap { name, owner: Some(1000), group: None, multi_queue: true }
    }

    #[test]
    fn the_request_is_an_ifreq() {
        assert_eq!(size_of::<Request>(), size_of::<libc::ifreq>());
    }

    #[test]
    fn a_tap_stays_and_its_name_is_taken_once() {
        NetNs::anonymous()
            .unwrap()
            .run(|| {
                create(&tap("t0")).unwrap();
                let error = create(&tap("t0")).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::ResourceBusy, "{error}");
                assert_eq!(create(&tap("lo")).unwrap_err().errno(), Some(libc::EBUSY));
            })
            .unwrap();
    }

    #[test]
    fn the_kernel_never_chooses_the_name() {
        for name in ["", "t%d", "sixteen-letters-", "a\0b"] {
            assert_eq!(create(&tap(name)).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }
}
