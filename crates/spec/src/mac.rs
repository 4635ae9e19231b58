//! Hardware addresses of six bytes (IEEE 802 MAC-48).

use std::fmt;
use std::str::FromStr;

/// A hardware address. Compared as bytes, so that the ways of writing one
/// don't matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress([u8; 6]);

impl MacAddress {
    /// The address of these bytes.
    pub const fn new(octets: [u8; 6]) -> Self {
        Self(octets)
    }

    /// Its bytes, in the order they are sent.
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// Whether it means a group of stations, so that none can have it.
    pub const fn is_multicast(self) -> bool {
        let [first, ..] = self.0;
        first & 1 != 0
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, octet) in self.0.into_iter().enumerate() {
            let separator = if index == 0 { "" } else { ":" };
            write!(formatter, "{separator}{octet:02x}")?;
        }
        Ok(())
    }
}

/// The text isn't a hardware address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAMac;

impl fmt::Display for NotAMac {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("not a hardware address, as 02:00:5e:10:00:01")
    }
}

impl std::error::Error for NotAMac {}

impl FromStr for MacAddress {
    type Err = NotAMac;

    /// Reads the three ways the Go library reads: `02:00:5e:10:00:01`,
    /// `02-00-5e-10-00-01` and `0200.5e10.0001`.
    fn from_str(text: &str) -> Result<Self, NotAMac> {
        let (separator, width) = match text.as_bytes().get(2) {
            Some(b':') => (':', 2),
            Some(b'-') => ('-', 2),
            _ => ('.', 4),
        };
        let mut octets = [0; 6];
        let mut slots = octets.iter_mut();
        for part in text.split(separator) {
            if part.len() != width || !part.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(NotAMac);
            }
            for start in (0..width).step_by(2) {
                let digits = part.get(start..start + 2).ok_or(NotAMac)?;
                *slots.next().ok_or(NotAMac)? =
                    u8::from_str_radix(digits, 16).map_err(|_| NotAMac)?;
            }
        }
        if slots.next().is_some() { Err(NotAMac) } else { Ok(Self(octets)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_ways_of_writing_are_one_address() {
        for text in ["02:00:5e:10:00:AB", "02-00-5E-10-00-ab", "0200.5e10.00ab"] {
            let address: MacAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), "02:00:5e:10:00:ab");
            assert!(!address.is_multicast());
        }
        assert!(MacAddress::new([0xff; 6]).is_multicast());
        for text in [
            "",
            ":",
            "02:00:5e:10:00",
            "02:00:5e:10:00:ab:cd",
            "2:0:5e:10:0:ab",
            "02:00:5e:10:00:zz",
            "02005e1000ab",
            "02:00-5e:10:00:ab",
            "0200.5e10",
            "é2:00:5e:10:00:ab",
            "+2:00:5e:10:00:ab",
        ] {
            assert_eq!(text.parse::<MacAddress>(), Err(NotAMac), "{text}");
        }
    }
}
