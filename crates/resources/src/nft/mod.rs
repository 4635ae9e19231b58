//! What all our nftables objects have in common: whose they are, how they are
//! found again, and how those of iptables are removed.
//!
//! Every element and rule that belongs to one attachment carries the owner in
//! its comment ([`owner_comment`]). What must be found without listing
//! everything is also written down in the table's owners set ([`owners`]), in
//! the same transaction. Both are comments that the `nft` command shows and
//! reads back, so that a ruleset that was saved and restored still knows its
//! owners.

mod compare;
mod entry;
pub mod legacy;
pub mod owners;
mod retry;
mod transaction;
mod unused;

use podwire_netlink::nft::UserData;
use podwire_plugin::OwnerMark;
use podwire_spec::id::AttachmentKey;

pub use compare::{are_those, compare_entry, compare_rules};
pub use entry::Entry;
pub(crate) use retry::give_way;
pub use retry::{Tries, retrying};
pub use transaction::transaction;
pub use unused::{push_idle_entry, push_unused_chain};

/// The name of the tables of port mappings, in both families: `portmap` makes them.
pub const HOST_PORTS: &str = "podwire_hostports";

/// Bytes of a comment at most: the `nft` command lists longer ones, but
/// refuses to read them back.
pub const COMMENT_LIMIT: usize = 127;

/// The comment of an attachment's element or rule: its mark, and behind it
/// `network/container/interface` for people, cut where the room ends.
pub fn owner_comment(key: &AttachmentKey) -> String {
    cut(&format!("{} {}", OwnerMark::of(key), display_name(key)), COMMENT_LIMIT).to_owned()
}

/// `network/container/interface`, for people.
pub fn display_name(key: &AttachmentKey) -> String {
    format!("{}/{}/{}", key.network, key.container_id, key.ifname)
}

/// The owner that a comment of ours names.
pub fn owner_of(userdata: &UserData) -> Option<OwnerMark> {
    OwnerMark::from_comment(&userdata.comment()?)
}

/// The text cut to so many bytes, at a character.
pub fn cut(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use podwire_spec::id::{ContainerId, IfName, NetworkName};

    #[test]
    fn a_comment_names_the_owner_and_fits_nft() {
        let key = AttachmentKey {
            network: NetworkName::parse("n1").unwrap(),
            container_id: ContainerId::parse("c1").unwrap(),
            ifname: IfName::parse("eth0").unwrap(),
        };
        let comment = owner_comment(&key);
        assert_eq!(comment, "43d91f8451058a70-f4d01f2ef4b92245 n1/c1/eth0");
        let mark = owner_of(&UserData::from_comment(&comment));
        assert_eq!(mark, Some(OwnerMark::of(&key)));

        let long =
            AttachmentKey { container_id: ContainerId::parse(&"c".repeat(300)).unwrap(), ..key };
        let comment = owner_comment(&long);
        assert_eq!(comment.len(), COMMENT_LIMIT);
        assert_eq!(owner_of(&UserData::from_comment(&comment)), Some(OwnerMark::of(&long)));
    }

    #[test]
    fn a_foreign_comment_names_no_owner() {
        assert_eq!(owner_of(&UserData::from_comment("c1")), None);
        assert_eq!(owner_of(&UserData::new()), None);
    }

    #[test]
    fn text_is_cut_at_a_character() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("ab", 5), "ab");
    }
}
