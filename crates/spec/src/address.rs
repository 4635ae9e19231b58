//! Reading IP addresses as the Go implementation reads and prints them.
//!
//! An IPv6 address that stands for an IPv4 one (`::ffff:10.1.2.3`) is the IPv4
//! address; bits beside the prefix are kept (`10.1.2.3/8` stays).

use std::net::IpAddr;

use ipnet::IpNet;

/// Bits in front of the IPv4 address in an IPv4-mapped one (RFC 4291, 2.5.5.2).
const MAPPED_PREFIX: u8 = 96;

/// Reads an address without a prefix.
pub fn parse_ip(text: &str) -> Option<IpAddr> {
    text.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

/// Reads an address with a prefix, as `10.1.2.3/24`; the address keeps the
/// bits the prefix doesn't cover.
pub fn parse_cidr(text: &str) -> Option<IpNet> {
    let (address, prefix) = text.split_once('/')?;
    let address = address.parse::<IpAddr>().ok()?;
    // Only digits: a sign would pass the number parser.
    if prefix.is_empty() || prefix.len() > 3 || !prefix.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let prefix = prefix.parse::<u8>().ok()?;
    let canonical = address.to_canonical();
    let prefix = if canonical == address { prefix } else { prefix.checked_sub(MAPPED_PREFIX)? };
    IpNet::new(canonical, prefix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_go_prints_them() {
        let cidr = |text| parse_cidr(text).map(|network| network.to_string());
        assert_eq!(cidr("10.1.2.3/8").unwrap(), "10.1.2.3/8");
        assert_eq!(cidr("::ffff:1.2.3.4/120").unwrap(), "1.2.3.4/24");
        assert_eq!(cidr("FD00:0::0001/64").unwrap(), "fd00::1/64");
        assert_eq!(cidr("0.0.0.0/0").unwrap(), "0.0.0.0/0");
        for text in [
            "",
            "10.1.2.3",
            "10.1.2.3/",
            "10.1.2.3/33",
            "10.1.2.3/+8",
            "10.1.2.3/0008",
            "::1/129",
            "::ffff:1.2.3.4/64",
            "010.1.2.3/8",
            "10.1.2/8",
            "fe80::1%eth0/64",
            "10.1.2.3/8/8",
        ] {
            assert_eq!(cidr(text), None, "{text}");
        }
        assert_eq!(parse_ip("::ffff:1.2.3.4").unwrap().to_string(), "1.2.3.4");
        assert_eq!(parse_ip("10.0.0.1/8"), None);
    }
}
