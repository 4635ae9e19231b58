//! Listing and looking up what there is.

use std::collections::HashSet;

use super::batch::{SUBSYSTEM, element, kind};
use super::socket::{family_header, present, set_header, table_header};
use super::{
    Chain, ChainId, Element, Family, ListedSet, NftSocket, Rule, SetId, Table, TableId, decode,
};
use crate::error::{Cause, Error, Malformed, Subject};
use crate::message::Body;

/// How often the elements of a set that is being rearranged are listed anew.
const LISTING_TRIES: usize = 32;

impl NftSocket {
    fn list<T>(
        &mut self,
        subject: Subject<'_>,
        kind: u16,
        fill: impl FnOnce(&mut Body<'_>),
        decode: impl Fn(&[u8]) -> Result<Option<T>, Malformed>,
    ) -> Result<Vec<T>, Error> {
        self.socket.dump(subject, SUBSYSTEM | kind, fill, |reply| decode(reply.payload))
    }

    /// All tables of a family, or of all.
    pub fn tables(&mut self, family: Option<Family>) -> Result<Vec<Table>, Error> {
        let subject = Subject::new("listing nftables tables", &"");
        self.list(subject, kind::GET_TABLE, |body| family_header(body, family), decode::table)
    }

    /// The table, if it exists.
    pub fn table(&mut self, id: TableId<'_>) -> Result<Option<Table>, Error> {
        let subject = Subject::new("looking for table", &id);
        let found = self.socket.fetch(
            subject,
            SUBSYSTEM | kind::GET_TABLE,
            |body| table_header(body, id),
            |reply| decode::table(reply.payload),
        );
        Ok(present(found)?.flatten())
    }

    /// All chains of a table; none if the table doesn't exist.
    pub fn chains(&mut self, id: TableId<'_>) -> Result<Vec<Chain>, Error> {
        let subject = Subject::new("listing chains of table", &id);
        let fill = |body: &mut Body<'_>| family_header(body, Some(id.family));
        // The kernel can't list the chains of one table only.
        let wanted = |chain: &Chain| chain.family == id.family && chain.table == id.name;
        self.list(subject, kind::GET_CHAIN, fill, |payload| {
            Ok(decode::chain(payload)?.filter(wanted))
        })
    }

    /// The chain, if it exists.
    pub fn chain(&mut self, id: ChainId<'_>) -> Result<Option<Chain>, Error> {
        let subject = Subject::new("looking for chain", &id);
        let fill = |body: &mut Body<'_>| {
            table_header(body, id.table);
            body.string(3, id.name);
        };
        let found = self.socket.fetch(subject, SUBSYSTEM | kind::GET_CHAIN, fill, |reply| {
            decode::chain(reply.payload)
        });
        Ok(present(found)?.flatten())
    }

    /// The rules of a chain in their order; none if it doesn't exist.
    pub fn rules(&mut self, id: ChainId<'_>) -> Result<Vec<Rule>, Error> {
        let subject = Subject::new("listing rules of chain", &id);
        let fill = |body: &mut Body<'_>| {
            table_header(body, id.table);
            body.string(2, id.name);
        };
        // Kernels before 4.14 list them all.
        let wanted = |rule: &Rule| rule.chain_id() == id;
        let rules = self.list(subject, kind::GET_RULE, fill, |payload| {
            Ok(decode::rule(payload)?.filter(wanted))
        });
        Ok(present(rules)?.unwrap_or_default())
    }

    /// The rules of all chains of a table, in their order; none if it doesn't exist.
    pub fn table_rules(&mut self, id: TableId<'_>) -> Result<Vec<Rule>, Error> {
        let subject = Subject::new("listing rules of table", &id);
        let wanted = |rule: &Rule| rule.chain_id().table == id;
        let rules = self.list(
            subject,
            kind::GET_RULE,
            |body| table_header(body, id),
            |payload| Ok(decode::rule(payload)?.filter(wanted)),
        );
        Ok(present(rules)?.unwrap_or_default())
    }

    /// The sets and maps of a table; none if it doesn't exist.
    pub fn sets(&mut self, id: TableId<'_>) -> Result<Vec<ListedSet>, Error> {
        let subject = Subject::new("listing sets of table", &id);
        let wanted = |set: &ListedSet| set.id().table == id;
        let sets = self.list(
            subject,
            kind::GET_SET,
            |body| table_header(body, id),
            |payload| Ok(decode::set(payload)?.filter(wanted)),
        );
        Ok(present(sets)?.unwrap_or_default())
    }

    /// The set or map, if it exists.
    pub fn set(&mut self, id: SetId<'_>) -> Result<Option<ListedSet>, Error> {
        let subject = Subject::new("looking for set", &id);
        let found = self.socket.fetch(
            subject,
            SUBSYSTEM | kind::GET_SET,
            |body| set_header(body, id),
            |reply| decode::set(reply.payload),
        );
        Ok(present(found)?.flatten())
    }

    /// All elements of a set or map; none if it doesn't exist.
    pub fn elements(&mut self, id: SetId<'_>) -> Result<Vec<Element>, Error> {
        let subject = Subject::new("listing elements of set", &id);
        for _ in 0..LISTING_TRIES {
            let messages = self.list(
                subject,
                kind::GET_ELEMENT,
                |body| set_header(body, id),
                |payload| decode::elements(payload).map(Some),
            );
            let messages = present(messages)?.unwrap_or_default();
            let several = messages.len() > 1;
            let elements: Vec<_> = messages.into_iter().flatten().collect();
            // After many additions the kernel rearranges a set's hash table in the background.
            // A listing of several messages counts its place in the table, so it then has some
            // elements twice and as many others not at all, and isn't marked as interrupted.
            if !several || are_distinct(&elements) {
                return Ok(elements);
            }
        }
        Err(subject.error(Cause::Interrupted))
    }

    /// The element with this key, if set and element exist. In an interval set it is the one
    /// whose range the key is in.
    pub fn element(&mut self, id: SetId<'_>, key: &Element) -> Result<Option<Element>, Error> {
        let subject = Subject::new("looking for an element of set", &id);
        let fill = |body: &mut Body<'_>| {
            set_header(body, id);
            body.nest(3, |body| body.nest(1, |body| element(body, key, false)));
        };
        let found = self.socket.fetch(subject, SUBSYSTEM | kind::GET_ELEMENT, fill, |reply| {
            Ok(decode::elements(reply.payload)?.pop())
        });
        Ok(present(found)?.flatten())
    }
}

fn are_distinct(elements: &[Element]) -> bool {
    let mut seen = HashSet::with_capacity(elements.len());
    elements.iter().all(|element| seen.insert((&element.key, element.interval_end)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nft::Data;

    #[test]
    fn the_two_bounds_of_ranges_that_touch_are_distinct() {
        let key = Data::new().mark(1);
        let start = Element::new(key.clone());
        let end = Element { interval_end: true, ..Element::new(key) };
        assert!(are_distinct(&[start.clone(), end.clone()]));
        assert!(!are_distinct(&[start.clone(), end, start]));
    }
}
