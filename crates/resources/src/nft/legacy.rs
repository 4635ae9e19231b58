//! Chains that iptables, as the Go plugins ran it, left in nftables.
//!
//! `iptables-nft` keeps its chains in the tables `ip nat`, `ip filter` and so
//! on, where netlink finds them like any others: no program is run. The same
//! in legacy xtables is [`xtables`].

pub mod xtables;

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{Batch, Family, NftSocket, Rule, TableId};
use podwire_spec::Error;

use super::retrying;

/// A chain of iptables and the chains whose rules may jump to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacyChain {
    /// IPv4 or IPv6.
    pub family: Family,
    /// The table, as `nat`.
    pub table: &'static str,
    /// The chain's name.
    pub chain: String,
    /// Chains that may hold rules that jump to it, as `POSTROUTING`.
    pub callers: &'static [&'static str],
}

impl LegacyChain {
    fn table_id(&self) -> TableId<'static> {
        TableId::new(self.family, self.table)
    }
}

/// Removes those of the chains that exist, each with all rules that jump to
/// it, in one transaction. Says how many there were.
///
/// # Errors
/// When the kernel refuses, as it does when a rule of a chain that isn't
/// among the callers still jumps there.
pub fn remove_chains(socket: &mut NftSocket, chains: &[LegacyChain]) -> Result<usize, Error> {
    retrying(|| {
        let generation = socket.generation()?;
        let mut batch = Batch::new();
        let mut removed = 0;
        for chain in chains {
            removed += usize::from(push_removal(socket, &mut batch, chain)?);
        }
        if removed > 0 {
            batch.require_generation(generation);
            socket.commit(&batch)?;
        }
        Ok(removed)
    })
}

/// Adds the removal of a chain to a batch, if it exists; says so. The batch
/// must require the generation that was current before.
pub fn push_removal(
    socket: &mut NftSocket,
    batch: &mut Batch,
    chain: &LegacyChain,
) -> Result<bool, NetlinkError> {
    let table = chain.table_id();
    let id = table.chain(&chain.chain);
    if socket.chain(id)?.is_none() {
        return Ok(false);
    }
    for caller in chain.callers {
        for rule in socket.rules(table.chain(caller))? {
            if rule.target_chain() == Some(chain.chain.as_str()) {
                delete(batch, &rule);
            }
        }
    }
    batch.flush_chain(id);
    batch.delete_chain(id);
    Ok(true)
}

/// Adds the deletion of a listed rule to a batch.
pub fn delete(batch: &mut Batch, rule: &Rule) {
    if let Some(handle) = rule.handle {
        batch.delete_rule(rule.chain_id(), handle);
    }
}
