//! What goes with the last element that leads to it.
//!
//! A chain that map elements lead to is of no use without them. The kernel
//! counts its rules and what leads to it in one number, so whether the last
//! one is leaving shows without listing the map.

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{Batch, ChainId, NftSocket, TableId};

/// Adds the removal of a chain to a batch, if nothing but the `leaving`
/// elements, which the batch deletes before, leads to it. Says whether it
/// goes. The batch must require the generation that was current before.
///
/// # Errors
/// When the kernel refuses to tell.
pub fn push_unused_chain(
    socket: &mut NftSocket,
    batch: &mut Batch,
    chain: ChainId<'_>,
    leaving: u32,
) -> Result<bool, NetlinkError> {
    let Some(uses) = socket.chain(chain)?.and_then(|found| found.uses) else {
        return Ok(false);
    };
    let rules = u32::try_from(socket.rules(chain)?.len()).unwrap_or(u32::MAX);
    if uses > rules.saturating_add(leaving) {
        return Ok(false);
    }
    batch.flush_chain(chain);
    batch.delete_chain(chain);
    Ok(true)
}

/// Adds the removal of the rules of a table's entry chain to a batch, if the
/// table then holds no more objects than the `lasting` ones: what stays of it
/// costs a packet nothing. `leaving` chains go in the same batch.
///
/// # Errors
/// When the kernel refuses to tell.
pub fn push_idle_entry(
    socket: &mut NftSocket,
    batch: &mut Batch,
    table: TableId<'_>,
    entry: &str,
    lasting: u32,
    leaving: u32,
) -> Result<(), NetlinkError> {
    let uses = socket.table(table)?.and_then(|found| found.uses);
    if uses.is_some_and(|uses| uses <= lasting.saturating_add(leaving)) {
        batch.flush_chain(table.chain(entry));
    }
    Ok(())
}
