//! The servers' own files, as a witness that doesn't depend on us.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::software::Software;

/// A lease that a server holds for someone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The address.
    pub address: Ipv4Addr,
    /// The client's MAC address, with colons.
    pub mac: String,
    /// The client identifier (option 61) in hexadecimal digits; empty where the
    /// server's file has none.
    pub client: String,
}

/// Reads the leases in force.
#[track_caller]
pub(super) fn read(software: Software, directory: &Path) -> Vec<Lease> {
    let content = match std::fs::read(directory.join("leases")) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        content => content.unwrap(),
    };
    let text = String::from_utf8_lossy(&content);
    match software {
        Software::Dnsmasq => dnsmasq(&text),
        Software::Kea => kea(&text),
        Software::Isc => isc(&text),
        Software::Udhcpd => udhcpd(&content),
    }
}

/// Expiry, MAC, address, host name, client identifier.
fn dnsmasq(text: &str) -> Vec<Lease> {
    let fields = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    fields
        .filter(|fields| fields.len() == 5)
        .map(|fields| Lease {
            address: fields[2].parse().unwrap(),
            mac: fields[1].to_owned(),
            client: fields[4].replace([':', '*'], ""),
        })
        .collect()
}

/// A table with a heading; a later line on an address replaces an earlier one.
fn kea(text: &str) -> Vec<Lease> {
    let mut lines = text.lines();
    let Some(heading) = lines.next() else { return Vec::new() };
    let column = |name: &str| heading.split(',').position(|found| found == name).expect("a column");
    let [address, mac, client, lifetime, expires, state] =
        ["address", "hwaddr", "client_id", "valid_lifetime", "expire", "state"].map(column);
    let mut leases = BTreeMap::new();
    for line in lines {
        let fields: Vec<_> = line.split(',').collect();
        let address: Ipv4Addr = fields[address].parse().unwrap();
        // A deleted lease has a lifetime of 0.
        let is_held = fields[lifetime] != "0"
            && fields[state] == "0"
            && fields[expires].parse::<u64>().unwrap() > now();
        let client = fields[client].replace(':', "");
        let lease = Lease { address, mac: fields[mac].to_owned(), client };
        leases.insert(address, is_held.then_some(lease));
    }
    leases.into_values().flatten().collect()
}

/// `lease ADDRESS { statement; ... }`; a later block on an address replaces an
/// earlier one.
fn isc(text: &str) -> Vec<Lease> {
    let mut leases = BTreeMap::new();
    for block in text.split("\nlease ").skip(1) {
        let (address, rest) = block.split_once(" {").expect("a block");
        let (body, _) = rest.split_once("\n}").expect("an end");
        let statement = |name: &str| {
            let found = body.lines().find_map(|line| line.trim().strip_prefix(name));
            found.map_or("", |value| value.trim().trim_end_matches(';')).to_owned()
        };
        let address: Ipv4Addr = address.parse().unwrap();
        let is_held = statement("binding state ") == "active";
        let mac = statement("hardware ethernet ");
        let client = hexadecimal(&statement("uid "));
        leases.insert(address, is_held.then_some(Lease { address, mac, client }));
    }
    leases.into_values().flatten().collect()
}

/// A quoted string with octal escapes, as hexadecimal digits.
fn hexadecimal(quoted: &str) -> String {
    let mut digits = String::new();
    let inside = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let mut rest = inside.unwrap_or(quoted).bytes().peekable();
    while let Some(byte) = rest.next() {
        let byte = match (byte, rest.peek()) {
            (b'\\', Some(b'0'..=b'7')) => {
                let octal: Vec<u8> = rest.by_ref().take(3).collect();
                u8::from_str_radix(&String::from_utf8(octal).unwrap(), 8).unwrap()
            }
            (b'\\', Some(_)) => rest.next().unwrap(),
            _ => byte,
        };
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// The time of writing (8 bytes), then for each lease: seconds left, address,
/// MAC address, host name (20 bytes), padding (2 bytes), all in network order.
fn udhcpd(content: &[u8]) -> Vec<Lease> {
    let records = content.get(8..).unwrap_or_default().chunks_exact(36);
    records
        .filter(|record| record[..4] != [0; 4])
        .map(|record| Lease {
            address: <[u8; 4]>::try_from(&record[4..8]).unwrap().into(),
            mac: record[8..14]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<Vec<_>>()
                .join(":"),
            client: String::new(),
        })
        .collect()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_identifier_is_read() {
        assert_eq!(hexadecimal(r#""\000c1/n\\\"""#), "0063312f6e5c22");
    }
}
