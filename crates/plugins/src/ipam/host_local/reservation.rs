//! What a reservation file holds: the owner of the address it is named after.
//!
//! The format is the Go plugin's, which compares the whole content:
//! `<container id> CR LF <interface>`, without a line end; older ones hold the
//! container id only.

use std::fmt;

/// The longest content looked at, in bytes: more than any container id that
/// fits an environment variable.
pub(super) const CONTENT_LIMIT: usize = 256 << 10;

/// Whose an address is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    /// One interface of a container.
    Attachment { container: String, ifname: String },
    /// A container; written by plugins from before interfaces were kept.
    Container(String),
    /// Nobody that can be read: empty, or not text. Left by a crash.
    Unreadable,
}

impl Owner {
    /// The owner of an attachment.
    pub(super) fn attachment(container: &str, ifname: &str) -> Self {
        Self::Attachment { container: container.to_owned(), ifname: ifname.to_owned() }
    }

    /// Reads a file's content. Only what no plugin can have written whole
    /// counts as unreadable: a cut container id can't be told from an old
    /// reservation, and is taken for one.
    pub(super) fn parse(content: &[u8]) -> Self {
        let Ok(text) = std::str::from_utf8(content) else { return Self::Unreadable };
        let text = text.trim();
        let (container, ifname) = match text.split_once("\r\n") {
            Some((container, ifname)) => (container, Some(ifname)),
            None => (text, None),
        };
        if container.is_empty() || text.replace("\r\n", "").contains(char::is_control) {
            return Self::Unreadable;
        }
        match ifname {
            Some(ifname) => Self::attachment(container, ifname),
            None => Self::Container(container.to_owned()),
        }
    }

    /// What is written for this owner.
    pub(super) fn content(&self) -> String {
        match self {
            Self::Attachment { container, ifname } => format!("{container}\r\n{ifname}"),
            Self::Container(container) => container.clone(),
            Self::Unreadable => String::new(),
        }
    }

    /// A number for the index (FNV-1a, 64 bits, of the content): a hint, so
    /// that two owners with one number cost a look into a file and nothing
    /// else.
    pub(super) fn hash(&self) -> u64 {
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0100_0000_01b3;
        self.content()
            .bytes()
            .fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
    }

    /// The container, if it is known.
    pub(super) fn container(&self) -> Option<&str> {
        match self {
            Self::Attachment { container, .. } | Self::Container(container) => Some(container),
            Self::Unreadable => None,
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attachment { container, ifname } => write!(formatter, "{container}/{ifname}"),
            Self::Container(container) => write!(formatter, "{container} (any interface)"),
            Self::Unreadable => formatter
                .write_str("nobody (the file is not in the form container id, CR LF, interface)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_the_one_of_the_go_plugin() {
        let owner = Owner::attachment("c1", "eth0");
        assert_eq!(owner.content(), "c1\r\neth0");
        assert_eq!(Owner::parse(b"c1\r\neth0"), owner);
        assert_eq!(Owner::parse(b" c1\r\neth0\n"), owner);
        assert_eq!(Owner::parse(b"c1\n"), Owner::Container("c1".into()));
        assert_eq!(Owner::parse(b"c1\r\n"), Owner::Container("c1".into()));
        assert_eq!(owner.to_string(), "c1/eth0");
    }

    /// B002: what counts as left by a crash, and what might be a living container's.
    #[test]
    fn b002_only_what_no_plugin_wrote_whole_is_unreadable() {
        for content in [&b""[..], b" \r\n\t", b"\xff\xfe", b"a\0b", b"\0\0\0\0", b"c1\neth0"] {
            assert_eq!(Owner::parse(content), Owner::Unreadable, "{content:?}");
        }
        assert_eq!(Owner::parse(b"c"), Owner::Container("c".into()));
        assert_eq!(
            Owner::parse(b"a:b c").container(),
            Some("a:b c"),
            "ids were not always checked"
        );
    }

    #[test]
    fn numbers_differ_by_container_and_interface() {
        let hash = |container, ifname| Owner::attachment(container, ifname).hash();
        assert_eq!(Owner::Container("a".into()).hash(), 0xaf63_dc4c_8601_ec8c, "FNV-1a of `a`");
        assert_ne!(hash("c1", "eth0"), hash("c1", "eth1"));
        assert_ne!(hash("c1", "eth0"), Owner::Container("c1".into()).hash());
    }
}
