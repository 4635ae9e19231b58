//! Elements that go, and what goes with them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{Batch, Element, ElementValue, NftSocket, Verdict};
use podwire_plugin::OwnerMark;

use super::layout::{ENTRY, LASTING, Layout, source, subnet_chain};
use crate::nft::{owner_of, owners, push_idle_entry, push_unused_chain};

/// What a transaction takes out of one table.
///
/// Everything is looked up first, under one generation of the tables, and
/// deleted only if it is still the owner's: an address may have gone on to
/// another container.
pub(super) struct Departure {
    layout: Layout,
    elements: Vec<Element>,
    entries: Vec<Element>,
    rewritten: Vec<Element>,
    leaving: BTreeMap<String, u32>,
}

impl Departure {
    pub(super) fn new(layout: Layout) -> Self {
        Self {
            layout,
            elements: Vec::new(),
            entries: Vec::new(),
            rewritten: Vec::new(),
            leaving: BTreeMap::new(),
        }
    }

    /// Takes out all that is written down about an owner.
    pub(super) fn owner(
        &mut self,
        socket: &mut NftSocket,
        mark: &OwnerMark,
    ) -> Result<(), NetlinkError> {
        let Some(record) = owners::read(socket, self.layout.table(), mark)? else {
            return Ok(());
        };
        for address in addresses(&record.words) {
            let found = socket.element(self.layout.sources(), &source(address))?;
            if let Some(found) = found.filter(|found| owner_of(&found.userdata) == Some(*mark)) {
                self.element(address, &found);
            }
        }
        self.entries.extend(record.entries);
        Ok(())
    }

    /// Makes room for addresses that now belong to `mark`, whoever has them.
    pub(super) fn displace(
        &mut self,
        socket: &mut NftSocket,
        mark: &OwnerMark,
        wanted: &BTreeSet<IpNet>,
    ) -> Result<(), NetlinkError> {
        self.owner(socket, mark)?;
        let wanted: BTreeSet<_> = wanted.iter().map(IpNet::addr).collect();
        let mut losers = BTreeSet::new();
        for address in &wanted {
            let key = source(*address);
            if self.elements.iter().any(|element| element.key == key.key) {
                continue;
            }
            let Some(found) = socket.element(self.layout.sources(), &key)? else { continue };
            losers.extend(owner_of(&found.userdata).filter(|loser| loser != mark));
            self.element(*address, &found);
        }
        for loser in losers {
            log::warn!(
                "an address of {loser} was given to {mark}: the masquerade follows the new owner"
            );
            let record = owners::read(socket, self.layout.table(), &loser)?.unwrap_or_default();
            let is_lost = |word: &String| word.parse().is_ok_and(|lost| wanted.contains(&lost));
            let kept: Vec<_> = record.words.into_iter().filter(|word| !is_lost(word)).collect();
            if addresses(&kept).next().is_some() {
                self.rewritten.extend(owners::entries(&loser, &kept));
            }
            self.entries.extend(record.entries);
        }
        Ok(())
    }

    fn element(&mut self, address: IpAddr, found: &Element) {
        if let Some(ElementValue::Verdict(verdict)) = &found.value
            && let Some(chain) = Verdict::chain(verdict)
        {
            *self.leaving.entry(chain.to_owned()).or_default() += 1;
        }
        self.elements.push(source(address));
    }

    /// Adds the deletions to a batch: the elements, and the chains that no
    /// element leads to any more but for those of `staying` subnets. If there
    /// are none of either, the entry's rules go with the last chain.
    pub(super) fn push(
        self,
        socket: &mut NftSocket,
        batch: &mut Batch,
        staying: &BTreeSet<IpNet>,
    ) -> Result<(), NetlinkError> {
        let table = self.layout.table();
        batch.delete_elements(self.layout.sources(), &self.elements);
        batch.delete_elements(table.set(owners::NAME), &self.entries);
        batch.create_elements(table.set(owners::NAME), &self.rewritten);
        let staying: BTreeSet<_> = staying.iter().map(|subnet| subnet_chain(*subnet)).collect();
        let mut gone = 0;
        for (chain, leaving) in &self.leaving {
            if !staying.contains(chain) {
                let chain = table.chain(chain);
                gone += u32::from(push_unused_chain(socket, batch, chain, *leaving)?);
            }
        }
        if gone > 0 && staying.is_empty() {
            push_idle_entry(socket, batch, table, ENTRY, LASTING, gone)?;
        }
        Ok(())
    }
}

/// The words that are addresses; the others are for people.
fn addresses(words: &[String]) -> impl Iterator<Item = IpAddr> {
    words.iter().filter_map(|word| word.parse().ok())
}
