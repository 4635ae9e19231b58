//! Which addresses there are, asked of the C library rather than of code of ours.

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses of the calling thread's namespace, with their interfaces.
#[track_caller]
pub fn addresses_here() -> Vec<(String, IpAddr)> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the pointer is to a live local; the list is freed below.
    let result = unsafe { libc::getifaddrs(&raw mut list) };
    assert_eq!(result, 0, "getifaddrs: {}", std::io::Error::last_os_error());
    let mut found = Vec::new();
    let mut next = list;
    while !next.is_null() {
        // SAFETY: getifaddrs(3) gives a list of valid entries that ends with null.
        let entry = unsafe { &*next };
        // SAFETY: the name of an entry is a C string that lives as long as the list.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        if let Some(address) = address_of(entry.ifa_addr) {
            found.push((name.to_string_lossy().into_owned(), address));
        }
        next = entry.ifa_next;
    }
    // SAFETY: it is the list that getifaddrs gave, and nothing of it is used any more.
    unsafe { libc::freeifaddrs(list) };
    found
}

fn address_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: every socket address begins with its family.
    let family = i32::from(unsafe { (*address).sa_family });
    match family {
        libc::AF_INET => {
            // SAFETY: an address of this family is a sockaddr_in; it may be unaligned.
            let address: libc::sockaddr_in = unsafe { std::ptr::read_unaligned(address.cast()) };
            Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: an address of this family is a sockaddr_in6; it may be unaligned.
            let address: libc::sockaddr_in6 = unsafe { std::ptr::read_unaligned(address.cast()) };
            Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_its_address() {
        std::thread::scope(|scope| {
            let work = || {
                let _world = crate::World::new();
                let found = addresses_here();
                assert!(
                    found.contains(&("lo".to_owned(), Ipv4Addr::LOCALHOST.into())),
                    "{found:?}"
                );
            };
            scope.spawn(work).join().unwrap();
        });
    }
}
