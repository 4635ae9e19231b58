//! A transaction: operations that the kernel does together or not at all.

use super::expression_encode::{LIST_ELEMENT, data, expression, verdict};
use super::table::TableId;
use super::{
    Chain, ChainId, Data, Element, ElementValue, Policy, Rule, Set, SetId, Table, datatype,
};
use crate::message::{Body, Flags, Requests};

/// `NFNL_SUBSYS_NFTABLES` in the upper byte of a message's kind.
pub(super) const SUBSYSTEM: u16 = 10 << 8;

/// `enum nf_tables_msg_types`
pub(super) mod kind {
    pub(in crate::nft) const NEW_TABLE: u16 = 0;
    pub(in crate::nft) const GET_TABLE: u16 = 1;
    pub(in crate::nft) const DELETE_TABLE: u16 = 2;
    pub(in crate::nft) const NEW_CHAIN: u16 = 3;
    pub(in crate::nft) const GET_CHAIN: u16 = 4;
    pub(in crate::nft) const DELETE_CHAIN: u16 = 5;
    pub(in crate::nft) const NEW_RULE: u16 = 6;
    pub(in crate::nft) const GET_RULE: u16 = 7;
    pub(in crate::nft) const DELETE_RULE: u16 = 8;
    pub(in crate::nft) const NEW_SET: u16 = 9;
    pub(in crate::nft) const GET_SET: u16 = 10;
    pub(in crate::nft) const DELETE_SET: u16 = 11;
    pub(in crate::nft) const NEW_ELEMENT: u16 = 12;
    pub(in crate::nft) const GET_ELEMENT: u16 = 13;
    pub(in crate::nft) const DELETE_ELEMENT: u16 = 14;
    pub(in crate::nft) const GET_GENERATION: u16 = 16;
}

/// Elements in one message, at most.
const ELEMENTS_PER_MESSAGE: usize = 400;
/// A message's list of elements is closed beyond this many bytes: an attribute holds 64 KiB, and
/// one more element, with all that it can carry, is well below 4 KiB.
const ELEMENT_BYTES_PER_MESSAGE: usize = 60 * 1024;

/// Operations to be done in one transaction by [`NftSocket::commit`](super::NftSocket::commit).
///
/// The names of the methods say what happens when the object is there already, or isn't:
/// `add` leaves an existing one as it is (or fails, if it differs in what can't be changed);
/// `create` fails if it exists; `delete` fails if it doesn't; `destroy` doesn't mind.
/// They may name tables of any families.
#[derive(Debug, Default)]
pub struct Batch {
    pub(super) encoded: Requests,
    pub(super) operations: Vec<Operation>,
    pub(super) generation: u32,
    sets: u32,
}

/// One operation, encoded in [`Batch::encoded`].
#[derive(Debug)]
pub(super) struct Operation {
    /// What it does, as a gerund.
    pub(super) doing: &'static str,
    /// What it does it to.
    pub(super) object: String,
    /// `NFT_MSG_*`
    pub(super) kind: u16,
    pub(super) flags: Flags,
    /// Don't mind if the object isn't there.
    pub(super) destroy: bool,
    /// Where its message lies, header included.
    pub(super) range: std::ops::Range<usize>,
}

/// The end of an operation's message.
type Fill<'a> = &'a mut dyn FnMut(&mut Body<'_>);

impl Batch {
    /// No operations yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// True when there are no operations.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// How many messages the operations take.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Lets the commit fail, with [`Error::is_restart`](crate::Error::is_restart), if anything in nftables has
    /// changed since [`NftSocket::generation`](super::NftSocket::generation) gave this number.
    pub fn require_generation(&mut self, generation: u32) {
        self.generation = generation;
    }

    fn push(
        &mut self,
        doing: &'static str,
        object: &dyn std::fmt::Display,
        kind: u16,
        flags: Flags,
        table: TableId<'_>,
        fill: Fill<'_>,
    ) {
        let start = self.encoded.bytes().len();
        self.encoded.push(SUBSYSTEM | kind, flags, |body| {
            // struct nfgenmsg: family, version, resource.
            body.raw(&[table.family.number(), 0, 0, 0]);
            // The table's name is attribute 1 of every kind of message.
            body.string(1, table.name);
            fill(body);
        });
        let range = start..self.encoded.bytes().len();
        let object = object.to_string();
        self.operations.push(Operation { doing, object, kind, flags, destroy: false, range });
    }

    fn mark_destroy(&mut self) {
        if let Some(operation) = self.operations.last_mut() {
            operation.destroy = true;
        }
    }

    /// Makes a table, or leaves it as it is.
    pub fn add_table(&mut self, table: &Table) {
        self.new_table("adding table", Flags::CREATE, table);
    }

    /// Makes a table that mustn't exist.
    pub fn create_table(&mut self, table: &Table) {
        self.new_table("creating table", Flags::CREATE | Flags::EXCLUSIVE, table);
    }

    fn new_table(&mut self, doing: &'static str, flags: Flags, table: &Table) {
        self.push(doing, &table.id(), kind::NEW_TABLE, flags, table.id(), &mut |body| {
            body.u32_be(2, table.flags);
            table.userdata.encode(body, 6);
        });
    }

    /// Deletes a table with all that is in it.
    pub fn delete_table(&mut self, id: TableId<'_>) {
        self.push("deleting table", &id, kind::DELETE_TABLE, Flags::empty(), id, &mut |_| {});
    }

    /// Deletes a table with all that is in it, if it exists.
    pub fn destroy_table(&mut self, id: TableId<'_>) {
        self.delete_table(id);
        self.mark_destroy();
    }

    /// Makes a chain, or leaves it as it is but for its policy.
    pub fn add_chain(&mut self, chain: &Chain) {
        self.new_chain("adding chain", Flags::CREATE, chain);
    }

    /// Makes a chain that mustn't exist.
    pub fn create_chain(&mut self, chain: &Chain) {
        self.new_chain("creating chain", Flags::CREATE | Flags::EXCLUSIVE, chain);
    }

    fn new_chain(&mut self, doing: &'static str, flags: Flags, chain: &Chain) {
        let id = chain.id();
        self.push(doing, &id, kind::NEW_CHAIN, flags, id.table, &mut |body| {
            body.string(3, &chain.name);
            if let Some(base) = chain.base {
                body.nest(4, |body| {
                    body.u32_be(1, base.hook as u32);
                    body.attribute(2, &base.priority.to_be_bytes());
                });
                if let Some(policy) = base.policy {
                    body.u32_be(5, u32::from(policy == Policy::Accept));
                }
                body.string(7, base.kind.as_str());
            }
            chain.userdata.encode(body, 12);
        });
    }

    /// Deletes a chain. It must be empty and no rule may jump to it.
    pub fn delete_chain(&mut self, id: ChainId<'_>) {
        let (kind, flags) = (kind::DELETE_CHAIN, Flags::empty());
        self.push("deleting chain", &id, kind, flags, id.table, &mut |body| {
            body.string(3, id.name);
        });
    }

    /// Deletes a chain, if it exists. It must be empty and no rule may jump to it.
    pub fn destroy_chain(&mut self, id: ChainId<'_>) {
        self.delete_chain(id);
        self.mark_destroy();
    }

    /// Deletes all rules of a chain.
    pub fn flush_chain(&mut self, id: ChainId<'_>) {
        let (kind, flags) = (kind::DELETE_RULE, Flags::empty());
        self.push("flushing chain", &id, kind, flags, id.table, &mut |body| {
            body.string(2, id.name);
        });
    }

    /// Appends a rule to its chain.
    pub fn add_rule(&mut self, rule: &Rule) {
        self.new_rule("adding rule to", Flags::CREATE | Flags::APPEND, rule, None);
    }

    /// Puts a rule at its chain's beginning.
    pub fn insert_rule(&mut self, rule: &Rule) {
        self.new_rule("inserting rule into", Flags::CREATE, rule, None);
    }

    /// Puts a rule right behind the one with this handle.
    pub fn add_rule_after(&mut self, rule: &Rule, handle: u64) {
        let flags = Flags::CREATE | Flags::APPEND;
        self.new_rule("adding rule to", flags, rule, Some((6, handle)));
    }

    /// Puts a rule right before the one with this handle.
    pub fn insert_rule_before(&mut self, rule: &Rule, handle: u64) {
        self.new_rule("inserting rule into", Flags::CREATE, rule, Some((6, handle)));
    }

    /// Replaces the rule with this handle.
    pub fn replace_rule(&mut self, rule: &Rule, handle: u64) {
        self.new_rule("replacing rule of", Flags::REPLACE, rule, Some((3, handle)));
    }

    fn new_rule(
        &mut self,
        doing: &'static str,
        flags: Flags,
        rule: &Rule,
        place: Option<(u16, u64)>,
    ) {
        let id = rule.chain_id();
        self.push(doing, &id, kind::NEW_RULE, flags, id.table, &mut |body| {
            body.string(2, &rule.chain);
            if let Some((kind, handle)) = place {
                body.u64_be(kind, handle);
            }
            body.nest(4, |body| {
                for item in &rule.expressions {
                    expression(body, item);
                }
            });
            if let Some(protocol) = rule.xt_protocol {
                body.nest(5, |body| {
                    body.u32_be(1, u32::from(protocol));
                    body.u32_be(2, 0);
                });
            }
            rule.userdata.encode(body, 7);
        });
    }

    /// Deletes the rule with this handle.
    pub fn delete_rule(&mut self, id: ChainId<'_>, handle: u64) {
        let object = format!("{id} handle {handle}");
        let (kind, flags) = (kind::DELETE_RULE, Flags::empty());
        self.push("deleting rule", &object, kind, flags, id.table, &mut |body| {
            body.string(2, id.name);
            body.u64_be(3, handle);
        });
    }

    /// Deletes the rule with this handle, if it exists.
    pub fn destroy_rule(&mut self, id: ChainId<'_>, handle: u64) {
        self.delete_rule(id, handle);
        self.mark_destroy();
    }

    /// Makes a set or map, or leaves it as it is.
    pub fn add_set(&mut self, set: &Set) {
        self.new_set("adding set", Flags::CREATE, set);
    }

    /// Makes a set or map that mustn't exist.
    pub fn create_set(&mut self, set: &Set) {
        self.new_set("creating set", Flags::CREATE | Flags::EXCLUSIVE, set);
    }

    fn new_set(&mut self, doing: &'static str, flags: Flags, set: &Set) {
        // Set ids only tell the new sets of one batch apart.
        self.sets = self.sets.wrapping_add(1);
        let (id, number) = (set.id(), self.sets);
        let key = datatype::summarise(&set.key);
        self.push(doing, &id, kind::NEW_SET, flags, id.table, &mut |body| {
            body.string(2, &set.name);
            body.u32_be(3, set.flags().bits());
            body.u32_be(4, key.number);
            body.u32_be(5, key.length);
            if !set.value.is_empty() {
                let value = datatype::summarise(&set.value);
                body.u32_be(6, value.number);
                // Zero for verdicts, as nft writes it.
                body.u32_be(7, value.length);
            }
            body.u32_be(10, number);
            if set.size.is_some() || set.flags().contains(super::SetFlags::CONCATENATION) {
                body.nest(9, |body| describe(body, set));
            }
            set.userdata().encode(body, 13);
        });
    }

    /// Deletes a set or map. No rule may use it.
    pub fn delete_set(&mut self, id: SetId<'_>) {
        let (kind, flags) = (kind::DELETE_SET, Flags::empty());
        self.push("deleting set", &id, kind, flags, id.table, &mut |body| {
            body.string(2, id.name);
        });
    }

    /// Deletes a set or map, if it exists. No rule may use it.
    pub fn destroy_set(&mut self, id: SetId<'_>) {
        self.delete_set(id);
        self.mark_destroy();
    }

    /// Deletes all elements of a set or map.
    pub fn flush_set(&mut self, id: SetId<'_>) {
        let (kind, flags) = (kind::DELETE_ELEMENT, Flags::empty());
        self.push("flushing set", &id, kind, flags, id.table, &mut |body| {
            body.string(2, id.name);
        });
    }

    /// Adds elements. One that is there already stays as it is; one that is there with another
    /// value is an error. Userdata isn't compared.
    pub fn add_elements<'e>(
        &mut self,
        id: SetId<'_>,
        elements: impl IntoIterator<Item = &'e Element>,
    ) {
        self.elements("adding elements to set", kind::NEW_ELEMENT, Flags::CREATE, id, elements);
    }

    /// Adds elements that mustn't exist.
    pub fn create_elements<'e>(
        &mut self,
        id: SetId<'_>,
        elements: impl IntoIterator<Item = &'e Element>,
    ) {
        let flags = Flags::CREATE | Flags::EXCLUSIVE;
        self.elements("creating elements of set", kind::NEW_ELEMENT, flags, id, elements);
    }

    /// Deletes elements by their keys.
    pub fn delete_elements<'e>(
        &mut self,
        id: SetId<'_>,
        elements: impl IntoIterator<Item = &'e Element>,
    ) {
        let (kind, flags) = (kind::DELETE_ELEMENT, Flags::empty());
        self.elements("deleting elements of set", kind, flags, id, elements);
    }

    /// Deletes those of the elements that exist, by their keys. Neither the set nor the table
    /// needs to exist.
    pub fn destroy_elements<'e>(
        &mut self,
        id: SetId<'_>,
        elements: impl IntoIterator<Item = &'e Element>,
    ) {
        let first = self.operations.len();
        self.delete_elements(id, elements);
        for operation in self.operations.iter_mut().skip(first) {
            operation.destroy = true;
        }
    }

    fn elements<'e>(
        &mut self,
        doing: &'static str,
        kind: u16,
        flags: Flags,
        id: SetId<'_>,
        elements: impl IntoIterator<Item = &'e Element>,
    ) {
        let mut elements = elements.into_iter().peekable();
        while elements.peek().is_some() {
            self.push(doing, &id, kind, flags, id.table, &mut |body| {
                body.string(2, id.name);
                body.nest(3, |body| {
                    let start = body.position();
                    for _ in 0..ELEMENTS_PER_MESSAGE {
                        let Some(item) = elements.next() else { break };
                        body.nest(LIST_ELEMENT, |body| {
                            // Deleting goes by the key alone.
                            element(body, item, kind == kind::NEW_ELEMENT);
                        });
                        if body.position() - start > ELEMENT_BYTES_PER_MESSAGE {
                            break;
                        }
                    }
                });
            });
        }
    }
}

/// Writes a set's description (`NFTA_SET_DESC`).
fn describe(body: &mut Body<'_>, set: &Set) {
    if let Some(size) = set.size {
        body.u32_be(1, size);
    }
    if set.flags().contains(super::SetFlags::CONCATENATION) {
        body.nest(2, |body| {
            for field in &set.key {
                body.nest(LIST_ELEMENT, |body| body.u32_be(1, field.length()));
            }
        });
    }
}

/// Writes an element (`NFTA_SET_ELEM_*`), whole or only what tells it from others.
pub(super) fn element(body: &mut Body<'_>, element: &Element, whole: bool) {
    let bounded = |body: &mut Body<'_>, kind: u16, value: &Data| {
        if value.as_bytes().len() > datatype::DATA_MAX {
            body.fail("a key or value longer than 64 bytes");
        } else {
            data(body, kind, value);
        }
    };
    bounded(body, 1, &element.key);
    if element.interval_end {
        body.u32_be(3, 1);
    }
    if whole {
        match &element.value {
            Some(ElementValue::Data(value)) => bounded(body, 2, value),
            Some(ElementValue::Verdict(decision)) => verdict(body, 2, decision),
            None => {}
        }
        element.userdata.encode(body, 6);
    }
    if let Some(end) = &element.key_end {
        bounded(body, 10, end);
    }
}
