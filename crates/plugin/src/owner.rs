//! Who an object on the host belongs to, as a mark short enough for a
//! comment, a map key or an interface name.
//!
//! The mark has two parts that are shortened separately, so that garbage
//! collection still knows the network of an object whose attachment it can't
//! name any more. Both parts are what the Go plugins write in front of the
//! comment of their nftables masquerade rules: one rule finds theirs and ours.

use std::fmt;

use podwire_spec::id::{AttachmentKey, NetworkName};
use sha2::{Digest, Sha512};

/// Bytes of each half of a mark: 16 hexadecimal digits in text.
pub(crate) const HALF: usize = 8;

/// The first `digits` lower-case hexadecimal digits of SHA-512 of the parts
/// joined: the way CNI plugins shorten names (containernetworking/plugins
/// `pkg/utils`).
pub fn shorten(parts: &[&str], digits: usize) -> String {
    let mut hash = Sha512::new();
    for part in parts {
        hash.update(part.as_bytes());
    }
    let mut text = String::with_capacity(digits);
    for byte in hash.finalize() {
        for nibble in [byte >> 4, byte & 15] {
            if text.len() == digits {
                return text;
            }
            text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
    }
    text
}

/// First bytes of SHA-512 of the parts joined.
fn digest(parts: &[&str]) -> [u8; HALF] {
    let mut hash = Sha512::new();
    for part in parts {
        hash.update(part.as_bytes());
    }
    let mut half = [0; HALF];
    for (to, from) in half.iter_mut().zip(hash.finalize()) {
        *to = from;
    }
    half
}

/// The owner of one attachment's objects: H(network), H(container id and
/// interface).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerMark {
    /// H(network).
    pub network: [u8; HALF],
    /// H(interface, container id).
    pub attachment: [u8; HALF],
}

impl OwnerMark {
    /// The mark of one attachment.
    pub fn of(key: &AttachmentKey) -> Self {
        Self::new(&key.network, key.container_id.as_str(), key.ifname.as_str())
    }

    /// The mark from its three parts. Container and interface may be text of
    /// any kind: a list of valid attachments is only compared.
    pub fn new(network: &NetworkName, container: &str, ifname: &str) -> Self {
        Self { network: Self::network_half(network), attachment: digest(&[ifname, ":", container]) }
    }

    /// The half that all attachments of a network share.
    pub fn network_half(network: &NetworkName) -> [u8; HALF] {
        digest(&[network.as_str()])
    }

    /// The mark as 16 bytes, for map keys.
    pub fn bytes(&self) -> [u8; 2 * HALF] {
        let mut all = [0; 2 * HALF];
        let (network, attachment) = all.split_at_mut(HALF);
        network.copy_from_slice(&self.network);
        attachment.copy_from_slice(&self.attachment);
        all
    }

    /// Reads back what [`OwnerMark::bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let network = bytes.get(..HALF)?.try_into().ok()?;
        let attachment = bytes.get(HALF..)?.try_into().ok()?;
        Some(Self { network, attachment })
    }

    /// Reads the `H1-H2` text at the start of a comment.
    pub fn from_comment(text: &str) -> Option<Self> {
        let (network, rest) = text.split_at_checked(2 * HALF)?;
        let attachment = rest.strip_prefix('-')?.get(..2 * HALF)?;
        Some(Self { network: from_hex(network)?, attachment: from_hex(attachment)? })
    }

    /// `candidate`-th 8 hexadecimal digits derived from this mark, for the
    /// names of host interfaces: a collision moves on to the next.
    pub fn short_name(&self, prefix: &str, candidate: u32) -> String {
        let text = self.to_string();
        let number = candidate.to_string();
        let parts: &[&str] = if candidate == 0 { &[&text] } else { &[&text, "#", &number] };
        format!("{prefix}{}", shorten(parts, 8))
    }
}

fn from_hex(text: &str) -> Option<[u8; HALF]> {
    let mut half = [0; HALF];
    for (index, byte) in half.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(half)
}

impl fmt::Display for OwnerMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.network {
            write!(f, "{byte:02x}")?;
        }
        f.write_str("-")?;
        for byte in self.attachment {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for OwnerMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(network: &str, container: &str, ifname: &str) -> OwnerMark {
        OwnerMark::new(&NetworkName::parse(network).unwrap(), container, ifname)
    }

    #[test]
    fn the_mark_is_the_one_go_writes_into_masquerade_comments() {
        assert_eq!(mark("n1", "c1", "eth0").to_string(), "43d91f8451058a70-f4d01f2ef4b92245");
    }

    #[test]
    fn chain_names_are_shortened_as_go_does() {
        assert_eq!(
            format!("CNI-{}", shorten(&["test", "1234"], 24)),
            "CNI-2bbe0c48b91a7d1b8a6753a8"
        );
        assert_eq!(format!("bwp{}", shorten(&["n1", "c1"], 12)), "bwp7be53730afe4");
    }

    #[test]
    fn a_mark_survives_bytes_and_comments() {
        let mark = mark("n1", "c1", "eth0");
        assert_eq!(OwnerMark::from_bytes(&mark.bytes()), Some(mark));
        assert_eq!(OwnerMark::from_comment(&format!("{mark}, net: n1")), Some(mark));
        assert_eq!(OwnerMark::from_comment("43d91f84"), None);
        assert_eq!(OwnerMark::from_comment("zzd91f8451058a70-f4d01f2ef4b92245"), None);
        assert_eq!(OwnerMark::from_bytes(&[0; 3]), None);
    }

    #[test]
    fn every_candidate_name_differs_and_fits_an_interface() {
        let mark = mark("n1", "c1", "eth0");
        let names: std::collections::BTreeSet<_> =
            (0..10).map(|candidate| mark.short_name("veth", candidate)).collect();
        assert_eq!(names.len(), 10);
        assert!(names.iter().all(|name| name.len() == 12));
    }
}
