//! Sets and maps, and their elements.

use std::net::IpAddr;

use ipnet::IpNet;

use super::datatype::summarise;
use super::{Data, DataType, Family, SetId, TableId, UserData, Verdict};

bitflags::bitflags! {
    /// `enum nft_set_flags`
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct SetFlags: u32 {
        /// Made for one rule, without a name of its own.
        const ANONYMOUS = 0x1;
        /// Its elements never change.
        const CONSTANT = 0x2;
        /// Elements are ranges.
        const INTERVAL = 0x4;
        /// Elements have values.
        const MAP = 0x8;
        /// Elements expire.
        const TIMEOUT = 0x10;
        /// Rules add elements.
        const EVALUATED = 0x20;
        /// Values are stateful objects.
        const OBJECT = 0x40;
        /// Each field of the key is a range of its own (Linux 5.6).
        const CONCATENATION = 0x80;
        const _ = !0;
    }
}

/// A set or map to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// The table's family.
    pub family: Family,
    /// The table's name.
    pub table: String,
    /// The name.
    pub name: String,
    /// The key's fields.
    pub key: Vec<DataType>,
    /// The value's fields; empty for a set.
    pub value: Vec<DataType>,
    /// Whether elements are ranges.
    pub interval: bool,
    /// The most elements it may have; `None` for no limit.
    pub size: Option<u32>,
    /// The comment.
    pub comment: Option<String>,
}

impl Set {
    /// A set of keys with these fields.
    pub fn new(id: SetId<'_>, key: &[DataType]) -> Self {
        Self {
            family: id.table.family,
            table: id.table.name.to_owned(),
            name: id.name.to_owned(),
            key: key.to_vec(),
            value: Vec::new(),
            interval: false,
            size: None,
            comment: None,
        }
    }

    /// A map from keys with these fields to values with those.
    pub fn map(id: SetId<'_>, key: &[DataType], value: &[DataType]) -> Self {
        Self { value: value.to_vec(), ..Self::new(id, key) }
    }

    /// A map from keys with these fields to verdicts.
    pub fn verdict_map(id: SetId<'_>, key: &[DataType]) -> Self {
        Self::map(id, key, &[DataType::Verdict])
    }

    /// The same with ranges for elements.
    #[must_use]
    pub fn with_intervals(mut self) -> Self {
        self.interval = true;
        self
    }

    /// The same with a comment.
    #[must_use]
    pub fn with_comment(mut self, comment: &str) -> Self {
        self.comment = Some(comment.to_owned());
        self
    }

    /// Its table and name.
    pub fn id(&self) -> SetId<'_> {
        TableId::new(self.family, &self.table).set(&self.name)
    }

    /// The flags that its shape asks for.
    pub fn flags(&self) -> SetFlags {
        let mut flags = SetFlags::empty();
        flags.set(SetFlags::INTERVAL, self.interval);
        flags.set(SetFlags::CONCATENATION, self.interval && self.key.len() > 1);
        flags.set(SetFlags::MAP, !self.value.is_empty());
        flags
    }

    pub(super) fn userdata(&self) -> UserData {
        let value = (!self.value.is_empty()).then(|| summarise(&self.value).byte_order);
        UserData::for_set(summarise(&self.key).byte_order, value, self.comment.as_deref())
    }
}

/// A set or map as the kernel lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSet {
    /// The table's family.
    pub family: Family,
    /// The table's name.
    pub table: String,
    /// The name.
    pub name: String,
    /// The flags.
    pub flags: SetFlags,
    /// nft's number for the key's type.
    pub key_type: u32,
    /// The key's length in bytes.
    pub key_length: u32,
    /// nft's number for the value's type; `NFT_DATA_VERDICT` for verdicts.
    pub value_type: Option<u32>,
    /// The value's length in bytes.
    pub value_length: Option<u32>,
    /// The most elements it may have.
    pub size: Option<u32>,
    /// Userdata with the comment.
    pub userdata: UserData,
    /// The kernel's number for it.
    pub handle: Option<u64>,
}

impl ListedSet {
    /// Its table and name.
    pub fn id(&self) -> SetId<'_> {
        TableId::new(self.family, &self.table).set(&self.name)
    }

    /// The comment.
    pub fn comment(&self) -> Option<String> {
        self.userdata.set_comment()
    }

    /// Whether it has the wanted set's shape: keys, values and flags. Adding the wanted set
    /// over one of another shape fails.
    pub fn has_shape_of(&self, wanted: &Set) -> bool {
        let shape = SetFlags::INTERVAL | SetFlags::MAP | SetFlags::CONCATENATION;
        let key = summarise(&wanted.key);
        let value = summarise(&wanted.value);
        let value_matches = if wanted.value.is_empty() {
            self.value_type.is_none()
        } else {
            self.value_type == Some(value.number)
                && (value.length == 0 || self.value_length == Some(value.length))
        };
        (self.flags & shape) == wanted.flags()
            && (self.key_type, self.key_length) == (key.number, key.length)
            && value_matches
    }
}

/// The value of a map's element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElementValue {
    /// Data.
    Data(Data),
    /// A verdict.
    Verdict(Verdict),
}

/// One element of a set or map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// The key; in an interval set the least key of the range.
    pub key: Data,
    /// The greatest key of the range, where keys have several fields.
    pub key_end: Option<Data>,
    /// The value, in a map.
    pub value: Option<ElementValue>,
    /// `NFT_SET_ELEM_INTERVAL_END`: the key is the first one behind a range (where keys have one
    /// field; see [`Element::range`]).
    pub interval_end: bool,
    /// The comment and other userdata.
    pub userdata: UserData,
}

impl Element {
    /// An element of a set.
    pub fn new(key: impl Into<Data>) -> Self {
        Self { key: key.into(), ..Self::default() }
    }

    /// An element of a map to data.
    #[must_use]
    pub fn with_data(mut self, value: impl Into<Data>) -> Self {
        self.value = Some(ElementValue::Data(value.into()));
        self
    }

    /// An element of a map to verdicts.
    #[must_use]
    pub fn with_verdict(mut self, verdict: Verdict) -> Self {
        self.value = Some(ElementValue::Verdict(verdict));
        self
    }

    /// The same with a greatest key, for interval sets whose keys have several fields.
    #[must_use]
    pub fn with_key_end(mut self, end: impl Into<Data>) -> Self {
        self.key_end = Some(end.into());
        self
    }

    /// The same with a comment.
    #[must_use]
    pub fn with_comment(mut self, comment: &str) -> Self {
        self.userdata = UserData::from_comment(comment);
        self
    }

    /// The same with userdata of any kind.
    #[must_use]
    pub fn with_userdata(mut self, userdata: UserData) -> Self {
        self.userdata = userdata;
        self
    }

    /// Opens and closes a range, for interval sets whose keys have one field: this element with
    /// the least key, and one with the first key behind `last`, unless `last` is the greatest
    /// of all. Both are added and both are deleted.
    pub fn range(self, last: &Data) -> Vec<Self> {
        match successor(last) {
            Some(end) => {
                let end = Self { key: end, interval_end: true, ..Self::default() };
                vec![self, end]
            }
            None => vec![self],
        }
    }

    /// The range of an address prefix, for interval sets of one address.
    pub fn prefix(net: IpNet) -> Vec<Self> {
        Self::new(net.network()).range(&Data::from(last_address(net)))
    }

    /// The comment.
    pub fn comment(&self) -> Option<String> {
        self.userdata.comment()
    }
}

/// The greatest address of a prefix; for IPv4 the broadcast address.
fn last_address(net: IpNet) -> IpAddr {
    net.broadcast()
}

/// The number that follows, seen as one number in network byte order; `None` behind the greatest.
fn successor(value: &Data) -> Option<Data> {
    let mut bytes = value.as_bytes().to_vec();
    for byte in bytes.iter_mut().rev() {
        let (next, carried) = byte.overflowing_add(1);
        *byte = next;
        if !carried {
            return Some(Data::from_bytes(bytes));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_closed_by_the_address_behind_it() {
        let range = Element::prefix("10.0.0.0/8".parse().unwrap());
        assert_eq!(range.len(), 2);
        assert_eq!(range[0].key.as_bytes(), [10, 0, 0, 0]);
        assert_eq!(range[1].key.as_bytes(), [11, 0, 0, 0]);
        assert!(range[1].interval_end && !range[0].interval_end);
    }

    #[test]
    fn the_last_prefix_stays_open() {
        let range = Element::prefix("240.0.0.0/4".parse().unwrap());
        assert_eq!(range.len(), 1);
        let range = Element::prefix("ff00::/8".parse().unwrap());
        assert_eq!(range.len(), 1);
    }
}
