//! What leaves a table within one transaction, and what goes with it.

use std::collections::{BTreeMap, BTreeSet};

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{Batch, Element, ElementValue, IpVersion, NftSocket, Verdict};
use podwire_plugin::OwnerMark;
use podwire_resources::nft::{owner_of, owners};

use super::forwarding::{Forwarding, Held};
use super::heirs;
use super::layout::{self, HOSTPORTS, Scope};
use super::set_mark::{self, Again};
use super::structure::Structure;

/// What a transaction takes out of one of the tables.
///
/// The batch must require the generation that was current before anything was
/// looked up.
pub(super) struct Departure {
    version: IpVersion,
    /// Elements that go, by the chain that they lead to.
    leaving: BTreeMap<String, u32>,
    scope: Scope,
}

impl Departure {
    pub(super) const fn new(version: IpVersion) -> Self {
        Self { version, leaving: BTreeMap::new(), scope: Scope::Common }
    }

    /// Adds the removal of the owner's elements and rules to a batch. Nothing is
    /// added when there is nothing, and an element is only taken if its comment
    /// names the owner: the port may have gone to somebody else since (B035,
    /// B020). Ports that another attachment of the container wants go on to it.
    /// `successor` is what the same batch makes for the owner anew.
    pub(super) fn owner(
        &mut self,
        socket: &mut NftSocket,
        batch: &mut Batch,
        owner: &OwnerMark,
        successor: Option<&Forwarding>,
    ) -> Result<Option<Held>, NetlinkError> {
        let id = layout::table(self.version);
        let Some(record) = owners::read(socket, id, owner)? else { return Ok(None) };
        let held = Held::read(&record, owner);
        let leaving = self.elements(socket, batch, owner, &held)?;
        if !held.heirs.is_empty() {
            let kept = successor.map(Forwarding::entries).unwrap_or_default();
            let is_kept = |(map, key): &(String, Element)| {
                kept.iter().any(|entry| entry.map == *map && entry.element.key == key.key)
            };
            let leaving: Vec<_> = leaving.into_iter().filter(|one| !is_kept(one)).collect();
            heirs::hand_over(socket, batch, self.version, &held, &leaving)?;
        }
        batch.delete_elements(id.set(owners::NAME), &record.entries);
        let entries = u32::try_from(record.entries.len()).unwrap_or(u32::MAX);
        self.leaving.insert(held.scope.chain(), entries);
        self.scope = held.scope;
        if held.marked {
            let again = match successor {
                Some(successor) if successor.marked => Again::Yes,
                _ => Again::No,
            };
            set_mark::push_removal(socket, batch, self.version, owner, again)?;
        }
        Ok(Some(held))
    }

    /// Returns the maps and keys that go.
    fn elements(
        &mut self,
        socket: &mut NftSocket,
        batch: &mut Batch,
        owner: &OwnerMark,
        held: &Held,
    ) -> Result<Vec<(String, Element)>, NetlinkError> {
        let id = layout::table(self.version);
        let mut keys = held.keys();
        keys.sort_by(|one, other| (&one.0, &one.1.key).cmp(&(&other.0, &other.1.key)));
        keys.dedup();
        let mut own = Vec::with_capacity(keys.len());
        for (map, key) in keys {
            let found = socket.element(id.set(&map), &key)?;
            if let Some(found) = found.filter(|found| owner_of(&found.userdata) == Some(*owner)) {
                self.count(&found);
                own.push((map, key));
            }
        }
        for group in own.chunk_by(|one, other| one.0 == other.0) {
            if let Some((map, _)) = group.first() {
                batch.delete_elements(id.set(map), group.iter().map(|(_, key)| key));
            }
        }
        Ok(own)
    }

    /// Adds the removal of an element to a batch, whoever's it is.
    pub(super) fn element(&mut self, batch: &mut Batch, map: &str, found: &Element) {
        self.count(found);
        batch.delete_elements(layout::table(self.version).set(map), [found]);
    }

    fn count(&mut self, found: &Element) {
        if let Some(ElementValue::Verdict(verdict)) = &found.value
            && let Some(chain) = Verdict::chain(verdict)
        {
            *self.leaving.entry(chain.to_owned()).or_default() += 1;
        }
    }

    /// Adds the removal of what nobody needs any more to a batch: chains of
    /// subnets, those of a network with its conditions and maps, and the table
    /// with the last attachment on the host.
    pub(super) fn push(
        self,
        socket: &mut NftSocket,
        batch: &mut Batch,
        structure: &Structure,
        successor: Option<&Forwarding>,
    ) -> Result<(), NetlinkError> {
        if self.leaving.is_empty() {
            return Ok(());
        }
        let id = layout::table(self.version);
        let mut unused = BTreeSet::new();
        for (chain, leaving) in &self.leaving {
            let is_needed = successor.is_some_and(|successor| successor.relies_on(chain));
            if !is_needed && structure.is_unused(socket, chain, *leaving)? {
                unused.insert(chain.as_str());
            }
        }
        if successor.is_none()
            && structure.networks().all(|network| unused.contains(network))
            && (unused.contains(HOSTPORTS) || structure.is_unused(socket, HOSTPORTS, 0)?)
        {
            batch.delete_table(id);
            return Ok(());
        }
        for chain in unused {
            if chain == HOSTPORTS {
                // Networks with conditions are still there.
            } else if chain == self.scope.chain() {
                structure.drop_network(batch, self.scope);
            } else {
                batch.flush_chain(id.chain(chain));
                batch.delete_chain(id.chain(chain));
            }
        }
        Ok(())
    }
}
