//! Whether an interface is there, without netlink.

use std::ffi::CString;
use std::io;

/// Whether the calling thread's namespace has an interface of this name.
pub(super) fn exists_in_current(name: &str) -> io::Result<bool> {
    let name = CString::new(name)?;
    // SAFETY: the pointer is to a string that ends with a zero byte and outlives
    // the call, which only reads it.
    if unsafe { libc::if_nametoindex(name.as_ptr()) } != 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENODEV | libc::ENXIO) => Ok(false),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_there_is_found() {
        assert!(exists_in_current("lo").unwrap());
        assert!(!exists_in_current("nowhere9").unwrap());
        assert!(exists_in_current("a\0b").is_err());
    }
}
