//! Elements that go, and what goes with them.

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{Batch, Element, NftSocket};
use podwire_plugin::OwnerMark;

use super::{Port, layout};
use crate::nft::{owner_of, owners, push_idle_entry, push_unused_chain};

/// Adds the removal of an owner's elements to a batch, and with the last port
/// that of the rules.
pub(super) fn push_owner(
    socket: &mut NftSocket,
    batch: &mut Batch,
    mark: &OwnerMark,
) -> Result<(), NetlinkError> {
    let mut departure = Departure::default();
    departure.owner(socket, mark)?;
    let leaving = u32::try_from(departure.guarded.len()).unwrap_or(u32::MAX);
    departure.delete(batch);
    if leaving > 0 && push_unused_chain(socket, batch, layout::CHECK, leaving)? {
        let (table, entry) = (layout::TABLE_ID, layout::ENTRY);
        push_idle_entry(socket, batch, table, entry, layout::LASTING, 1)?;
    }
    Ok(())
}

/// What a transaction takes out of the sets, looked up before.
#[derive(Default)]
pub(super) struct Departure {
    guarded: Vec<Element>,
    allowed: Vec<Element>,
    entries: Vec<Element>,
}

impl Departure {
    /// Takes out all that is written down about an owner, as far as it is
    /// still the owner's.
    pub(super) fn owner(
        &mut self,
        socket: &mut NftSocket,
        mark: &OwnerMark,
    ) -> Result<(), NetlinkError> {
        let Some(record) = owners::read(socket, layout::TABLE_ID, mark)? else {
            return Ok(());
        };
        if let Some(port) = Port::from_words(&record.words) {
            let is_own = |found: &Element| owner_of(&found.userdata) == Some(*mark);
            let guarded = layout::guarded(&port.interface);
            if socket.element(layout::GUARDED, &guarded)?.as_ref().is_some_and(is_own) {
                self.guarded.push(guarded);
            }
            let allowed = layout::allowed(&port.interface, port.mac);
            if socket.element(layout::ALLOWED, &allowed)?.as_ref().is_some_and(is_own) {
                self.allowed.push(allowed);
            }
        }
        self.entries.extend(record.entries);
        Ok(())
    }

    /// Makes room for a port whose name another owner had, who is therefore
    /// gone with all that is written down about him.
    pub(super) fn displace(
        &mut self,
        socket: &mut NftSocket,
        port: &Port,
    ) -> Result<(), NetlinkError> {
        let guarded = layout::guarded(&port.interface);
        if !contains(&self.guarded, &guarded)
            && let Some(found) = socket.element(layout::GUARDED, &guarded)?
        {
            if let Some(loser) = owner_of(&found.userdata) {
                self.owner(socket, &loser)?;
            }
            if !contains(&self.guarded, &guarded) {
                self.guarded.push(guarded);
            }
        }
        let allowed = layout::allowed(&port.interface, port.mac);
        if !contains(&self.allowed, &allowed)
            && socket.element(layout::ALLOWED, &allowed)?.is_some()
        {
            self.allowed.push(allowed);
        }
        Ok(())
    }

    pub(super) fn delete(self, batch: &mut Batch) {
        batch.delete_elements(layout::GUARDED, &self.guarded);
        batch.delete_elements(layout::ALLOWED, &self.allowed);
        batch.delete_elements(layout::OWNERS, &self.entries);
    }
}

fn contains(elements: &[Element], wanted: &Element) -> bool {
    elements.iter().any(|element| element.key == wanted.key)
}
