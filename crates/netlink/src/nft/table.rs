//! Names of tables, chains and sets, and tables and chains themselves.

use std::fmt;

use super::{ChainKind, Family, Hook, Policy, UserData};

/// Which table: its family and name.
///
/// ```
/// use podwire_netlink::nft::{Family, TableId};
/// const TABLE: TableId<'static> = TableId::new(Family::Ipv4, "podwire");
/// assert_eq!(TABLE.chain("postrouting").to_string(), "ip podwire postrouting");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableId<'a> {
    /// The family.
    pub family: Family,
    /// The table's name.
    pub name: &'a str,
}

impl<'a> TableId<'a> {
    /// The table with this family and name.
    pub const fn new(family: Family, name: &'a str) -> Self {
        Self { family, name }
    }

    /// A chain in it.
    pub const fn chain(self, name: &'a str) -> ChainId<'a> {
        ChainId { table: self, name }
    }

    /// A set or map in it.
    pub const fn set(self, name: &'a str) -> SetId<'a> {
        SetId { table: self, name }
    }
}

impl fmt::Display for TableId<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.family, self.name)
    }
}

/// Which chain: its table and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChainId<'a> {
    /// The table.
    pub table: TableId<'a>,
    /// The chain's name.
    pub name: &'a str,
}

impl fmt::Display for ChainId<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.table, self.name)
    }
}

/// Which set or map: its table and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SetId<'a> {
    /// The table.
    pub table: TableId<'a>,
    /// The set's name.
    pub name: &'a str,
}

impl fmt::Display for SetId<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.table, self.name)
    }
}

/// A table, to be made or as listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The family.
    pub family: Family,
    /// The name.
    pub name: String,
    /// `NFT_TABLE_F_*`: 1 dormant, 2 owned by a socket.
    pub flags: u32,
    /// The comment and other userdata.
    pub userdata: UserData,
    /// The kernel's number for it, when listed.
    pub handle: Option<u64>,
    /// How many chains, sets and other objects are in it, when listed.
    pub uses: Option<u32>,
}

impl Table {
    /// A table without comment.
    pub fn new(id: TableId<'_>) -> Self {
        Self {
            family: id.family,
            name: id.name.to_owned(),
            flags: 0,
            userdata: UserData::new(),
            handle: None,
            uses: None,
        }
    }

    /// The same with a comment.
    #[must_use]
    pub fn with_comment(mut self, comment: &str) -> Self {
        self.userdata = UserData::from_comment(comment);
        self
    }

    /// Its family and name.
    pub fn id(&self) -> TableId<'_> {
        TableId::new(self.family, &self.name)
    }
}

/// What makes a chain one that packets enter by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseChain {
    /// What it may do.
    pub kind: ChainKind,
    /// Where it sits.
    pub hook: Hook,
    /// Chains of lower numbers come first; see [`priority`](super::priority).
    pub priority: i32,
    /// What becomes of packets at its end; `None` leaves that to the kernel (accept), and an
    /// existing chain's as it is.
    pub policy: Option<Policy>,
}

/// A chain, to be made or as listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The table's family.
    pub family: Family,
    /// The table's name.
    pub table: String,
    /// The name.
    pub name: String,
    /// Where packets enter it, for a base chain. `None` for a regular chain, and for a listed
    /// one of a hook or kind that has no name here.
    pub base: Option<BaseChain>,
    /// The comment and other userdata (kept by Linux 5.10 and later).
    pub userdata: UserData,
    /// The kernel's number for it, when listed.
    pub handle: Option<u64>,
    /// How many rules are in it and how many rules and map elements lead to it, summed up, when
    /// listed.
    pub uses: Option<u32>,
}

impl Chain {
    /// A chain that rules jump to.
    pub fn regular(id: ChainId<'_>) -> Self {
        Self {
            family: id.table.family,
            table: id.table.name.to_owned(),
            name: id.name.to_owned(),
            base: None,
            userdata: UserData::new(),
            handle: None,
            uses: None,
        }
    }

    /// A chain at a hook.
    pub fn base(id: ChainId<'_>, kind: ChainKind, hook: Hook, priority: i32) -> Self {
        let base = BaseChain { kind, hook, priority, policy: None };
        Self { base: Some(base), ..Self::regular(id) }
    }

    /// The same base chain with a policy; a regular chain stays as it is.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        if let Some(base) = &mut self.base {
            base.policy = Some(policy);
        }
        self
    }

    /// The same with a comment.
    #[must_use]
    pub fn with_comment(mut self, comment: &str) -> Self {
        self.userdata = UserData::from_comment(comment);
        self
    }

    /// Its table and name.
    pub fn id(&self) -> ChainId<'_> {
        TableId::new(self.family, &self.table).chain(&self.name)
    }
}
