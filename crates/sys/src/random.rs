//! Random bytes from the kernel (getrandom(2)), for temporary names.

use std::fmt::Write as _;
use std::io;

/// `N` random bytes.
///
/// # Errors
/// When the kernel has no random numbers to give, which on a booted system does
/// not happen.
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut buffer = [0_u8; N];
    let mut filled = 0;
    while filled < N {
        let rest = buffer.get_mut(filled..).unwrap_or_default();
        match rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(buffer)
}

/// Sixteen lower-case hexadecimal digits: 64 random bits.
///
/// # Errors
/// As [`bytes`].
pub fn hex() -> io::Result<String> {
    let mut text = String::with_capacity(16);
    for byte in bytes::<8>()? {
        // Writing to a String can't fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_draws_differ() {
        assert_ne!(super::bytes::<16>().unwrap(), super::bytes::<16>().unwrap());
    }

    #[test]
    fn hex_is_sixteen_digits() {
        let text = super::hex().unwrap();
        assert_eq!(text.len(), 16);
        assert!(text.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
