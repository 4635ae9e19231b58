//! Who has asked for what several attachments share, so that it goes with the
//! last of them: sets in a table of our own.
//!
//! ```text
//! table ip podwire_firewall {
//!     set isolated { type ipv6_addr . ifname          # mark . bridge
//!         elements = { … comment "same-bridge n1/c1/eth0" } }
//!     set trusted { type ipv6_addr . ipv6_addr        # mark . address
//!         elements = { … comment "public n1/c1/eth0" } }
//! }
//! ```
//!
//! Marks and IPv4 addresses are written as IPv6 ones, since the `nft` command
//! can read those back.

use std::net::{IpAddr, Ipv6Addr};

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{
    Batch, Data, DataType, Element, Family, NftSocket, Set, SetId, Table, TableId,
};
use podwire_plugin::OwnerMark;
use podwire_spec::error::Error;
use podwire_spec::id::AttachmentKey;

use crate::nft::{COMMENT_LIMIT, cut, display_name, retrying, transaction};

/// The name of the table.
pub const NAME: &str = "podwire_firewall";
const TABLE: TableId<'static> = TableId::new(Family::Ipv4, NAME);
const ISOLATED: SetId<'static> = TABLE.set("isolated");
const TRUSTED: SetId<'static> = TABLE.set("trusted");

/// What an attachment may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Share {
    /// The isolation of a bridge.
    Bridge(String),
    /// A source of a zone of firewalld.
    Source(IpAddr),
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) owner: OwnerMark,
    pub(crate) share: Share,
    /// A policy, or a zone.
    pub(crate) word: String,
}

/// Which kind of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bridges,
    Sources,
}

impl Kind {
    fn set(self) -> Set {
        let (id, second, comment) = match self {
            Self::Bridges => (ISOLATED, DataType::InterfaceName, "who isolates which bridge"),
            Self::Sources => (TRUSTED, DataType::Ipv6Address, "whose sources firewalld trusts"),
        };
        Set::new(id, &[DataType::Ipv6Address, second]).with_comment(comment)
    }
}

impl Member {
    fn kind(&self) -> Kind {
        match self.share {
            Share::Bridge(_) => Kind::Bridges,
            Share::Source(_) => Kind::Sources,
        }
    }

    fn element(&self) -> Element {
        let key = Data::new().field(&self.owner.bytes());
        Element::new(match &self.share {
            Share::Bridge(name) => key.interface_name(name),
            Share::Source(IpAddr::V4(address)) => key.ipv6(address.to_ipv6_mapped()),
            Share::Source(IpAddr::V6(address)) => key.ipv6(*address),
        })
    }

    fn read(kind: Kind, element: &Element) -> Option<Self> {
        let (mark, rest) = element.key.as_bytes().split_at_checked(16)?;
        let share = match kind {
            Kind::Bridges => {
                let name = rest.split(|byte| *byte == 0).next()?;
                Share::Bridge(String::from_utf8(name.to_vec()).ok()?)
            }
            Kind::Sources => {
                let address = Ipv6Addr::from(<[u8; 16]>::try_from(rest).ok()?);
                Share::Source(IpAddr::V6(address).to_canonical())
            }
        };
        let word = element.comment()?.split(' ').next()?.to_owned();
        Some(Self { owner: OwnerMark::from_bytes(mark)?, share, word })
    }
}

/// All requests of a kind.
pub(crate) fn all(socket: &mut NftSocket, kind: Kind) -> Result<Vec<Member>, NetlinkError> {
    let elements = socket.elements(kind.set().id())?;
    Ok(elements.iter().filter_map(|element| Member::read(kind, element)).collect())
}

/// Adds a request to a batch; an equal one is left.
pub(crate) fn push(batch: &mut Batch, member: &Member, key: &AttachmentKey) {
    batch.add_table(&Table::new(TABLE).with_comment("shared parts of the firewall plugin"));
    batch.add_set(&member.kind().set());
    let comment = format!("{} {}", member.word, display_name(key));
    let element = member.element().with_comment(cut(&comment, COMMENT_LIMIT));
    batch.create_elements(member.kind().set().id(), [&element]);
}

/// Adds the withdrawal of a request to a batch.
pub(crate) fn push_removal(batch: &mut Batch, member: &Member) {
    batch.delete_elements(member.kind().set().id(), [&member.element()]);
}

/// Withdraws what owners have asked for. A kernel without nftables has
/// nothing of it.
pub(crate) fn withdraw(
    socket: &mut NftSocket,
    kind: Kind,
    leaving: &dyn Fn(&OwnerMark) -> bool,
) -> Result<(), Error> {
    let outcome = retrying(|| {
        transaction(socket, |socket, batch| {
            for member in all(socket, kind)? {
                if leaving(&member.owner) {
                    push_removal(batch, &member);
                }
            }
            Ok(())
        })
    });
    match outcome {
        Err(_) if socket.generation().is_err_and(|error| error.is_unsupported()) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podwire_spec::id::NetworkName;

    #[test]
    fn a_member_is_read_back_from_its_element() {
        let owner = OwnerMark::new(&NetworkName::parse("n1").unwrap(), "c1", "eth0");
        for (share, word) in [
            (Share::Bridge("cni0".into()), "isolated"),
            (Share::Source("10.1.0.2".parse().unwrap()), "trusted"),
            (Share::Source("fd00::2".parse().unwrap()), "public"),
        ] {
            let member = Member { owner, share, word: word.into() };
            let element = member.element().with_comment(&format!("{word} n1/c1/eth0"));
            assert_eq!(Member::read(member.kind(), &element), Some(member));
        }
    }

    #[test]
    fn foreign_elements_are_nobodys() {
        for key in [Vec::new(), vec![0; 16], vec![0xff; 40]] {
            let element = Element::new(Data::from_bytes(key));
            for kind in [Kind::Bridges, Kind::Sources] {
                assert_eq!(Member::read(kind, &element), None);
            }
        }
    }
}
