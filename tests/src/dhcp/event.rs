//! What servers say of what they do, each in words of its own.

use std::net::Ipv4Addr;

use super::software::Software;

/// One line of a server's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A lease of the address was given or renewed: DHCPACK.
    Acknowledged(Ipv4Addr),
    /// A request was refused: DHCPNAK.
    Refused,
    /// The address was given back: DHCPRELEASE, and the server took it.
    Released(Ipv4Addr),
    /// Somebody looked for a server: DHCPDISCOVER; udhcpd writes down its DHCPOFFER.
    Searched,
}

impl Software {
    /// Whether a line of this server's log is the event.
    pub fn shows(self, event: Event, line: &str) -> bool {
        match (self, event) {
            (Self::Dnsmasq, Event::Acknowledged(address)) => {
                line.contains("DHCPACK(") && has_word(line, address)
            }
            (Self::Dnsmasq, Event::Refused) => line.contains("DHCPNAK("),
            (Self::Dnsmasq, Event::Released(address)) => {
                // An unknown one is logged with a reason behind it.
                line.contains("DHCPRELEASE(")
                    && has_word(line, address)
                    && !line.contains("unknown lease")
            }
            (Self::Dnsmasq, Event::Searched) => line.contains("DHCPDISCOVER("),
            (Self::Kea, Event::Acknowledged(address)) => {
                line.contains("DHCP4_LEASE_ALLOC ") && has_word(line, address)
            }
            (Self::Kea, Event::Refused) => line.contains("DHCPNAK"),
            (Self::Kea, Event::Released(address)) => {
                line.contains("DHCP4_RELEASE ") && has_word(line, address)
            }
            (Self::Kea, Event::Searched) => line.contains("DHCPDISCOVER"),
            (Self::Isc, Event::Acknowledged(address)) => {
                line.starts_with("DHCPACK on ") && has_word(line, address)
            }
            (Self::Isc, Event::Refused) => line.starts_with("DHCPNAK on "),
            (Self::Isc, Event::Released(address)) => {
                line.starts_with("DHCPRELEASE of ")
                    && has_word(line, address)
                    && line.ends_with("(found)")
            }
            (Self::Isc, Event::Searched) => line.starts_with("DHCPDISCOVER from "),
            (Self::Udhcpd, Event::Acknowledged(address)) => {
                line.contains("sending ACK to ") && has_word(line, address)
            }
            (Self::Udhcpd, Event::Refused) => line.contains("sending NAK"),
            // It doesn't write what it receives: its lease file tells of releases.
            (Self::Udhcpd, Event::Released(_)) => false,
            (Self::Udhcpd, Event::Searched) => line.contains("sending OFFER to "),
        }
    }
}

impl Software {
    /// The address that was given or renewed, if a line of the log says so.
    pub(super) fn acknowledged(self, line: &str) -> Option<Ipv4Addr> {
        words(line)
            .filter_map(|word| word.parse().ok())
            .find(|address| self.shows(Event::Acknowledged(*address), line))
    }
}

/// Whether an address is in a line, not as the beginning of a longer one.
fn has_word(line: &str, address: Ipv4Addr) -> bool {
    words(line).any(|word| word == address.to_string())
}

/// What could be an address.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|character: char| !(character.is_ascii_digit() || character == '.'))
        .map(|word| word.trim_end_matches('.'))
}
