//! Names of devices: by index and name, and by MAC address.

use std::fmt;
use std::str::FromStr;

use crate::message::Body;

/// `IFLA_IFNAME` (`linux/if_link.h`).
const IFLA_IFNAME: u16 = 3;
/// Longest name of a link (`IFNAMSIZ` less the NUL, linux/if.h).
pub const NAME_LIMIT: usize = 15;

/// A link that a request is about: by its index, with its name for errors, or
/// by name alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device<'a> {
    index: u32,
    name: &'a str,
}

impl<'a> Device<'a> {
    /// A device by its index; the name is only used in error texts.
    #[must_use]
    pub const fn new(index: u32, name: &'a str) -> Self {
        Self { index, name }
    }

    /// A device by its name alone, which the kernel looks up. Only requests
    /// about the link itself can be made so.
    #[must_use]
    pub const fn named(name: &'a str) -> Self {
        Self { index: 0, name }
    }

    /// The index, or `None` where only the name is known.
    #[must_use]
    pub const fn index(&self) -> Option<u32> {
        if self.index == 0 { None } else { Some(self.index) }
    }

    /// The name.
    #[must_use]
    pub const fn name(&self) -> &'a str {
        self.name
    }

    /// The index for a fixed header, with a fault where there is none.
    pub(crate) fn required(&self, body: &mut Body<'_>) -> u32 {
        if self.index == 0 {
            body.fail("the device's index is needed and only its name is known");
        }
        self.index
    }

    /// `IFLA_IFNAME`, where the device is known by name alone.
    pub(crate) fn encode_name(&self, body: &mut Body<'_>) {
        if self.index == 0 {
            encode_name(body, self.name);
        }
    }
}

impl fmt::Display for Device<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.is_empty() {
            write!(formatter, "link {}", self.index)
        } else {
            formatter.write_str(self.name)
        }
    }
}

/// A link's name, refused before the kernel would cut or misread it.
pub(crate) fn encode_name(body: &mut Body<'_>, name: &str) {
    if name.is_empty() {
        body.fail("a link's name is empty");
    } else if name.len() > NAME_LIMIT {
        body.fail("a link's name is longer than 15 bytes");
    }
    body.string(IFLA_IFNAME, name);
}

/// An Ethernet address.
///
/// ```
/// use podwire_netlink::route::MacAddress;
///
/// let mac: MacAddress = "0A:58:0a:01:00:02".parse().unwrap();
/// assert_eq!(mac.to_string(), "0a:58:0a:01:00:02");
/// assert!(mac.is_local() && !mac.is_multicast());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// Whether it was assigned locally rather than by a vendor.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        self.0[0] & 2 != 0
    }

    /// Whether it names a group, which no link can have.
    #[must_use]
    pub const fn is_multicast(&self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, octet) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { ":" };
            write!(formatter, "{separator}{octet:02x}")?;
        }
        Ok(())
    }
}

/// The text isn't six pairs of hexadecimal digits with `:` or `-` between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a MAC address: expected six pairs of hexadecimal digits, such as 0a:58:0a:01:00:02")]
pub struct NotAMacAddress;

impl FromStr for MacAddress {
    type Err = NotAMacAddress;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let separator = if text.contains('-') { '-' } else { ':' };
        let mut octets = [0; 6];
        let mut parts = text.split(separator);
        for octet in &mut octets {
            let part = parts.next().filter(|part| {
                part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit())
            });
            *octet =
                part.and_then(|part| u8::from_str_radix(part, 16).ok()).ok_or(NotAMacAddress)?;
        }
        if parts.next().is_some() { Err(NotAMacAddress) } else { Ok(Self(octets)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_addresses_are_read_strictly() {
        assert_eq!("02-00-00-00-00-ff".parse(), Ok(MacAddress([2, 0, 0, 0, 0, 255])));
        for wrong in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:00:00",
            "2:0:0:0:0:0",
            "+2:00:00:00:00:00",
            "0g:00:00:00:00:00",
            "02:00-00:00:00:00",
        ] {
            assert_eq!(wrong.parse::<MacAddress>(), Err(NotAMacAddress), "{wrong}");
        }
    }
}
