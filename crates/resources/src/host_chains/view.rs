//! What stands in a few of the host's chains, and what is to be done about
//! it: the same for nftables and legacy xtables, and free of both.

use std::collections::BTreeSet;

use podwire_netlink::nft::IpVersion;

use super::rule::{HostRule, Seen};

/// The chain that packets which the host routes pass.
pub(super) const FORWARD: &str = "FORWARD";

/// Some chains of one IP version's filter table.
#[derive(Debug, Clone)]
pub(super) struct View {
    /// The IP version.
    pub(super) version: IpVersion,
    /// The rules of the chains that were asked for, in their order.
    pub(super) rules: Vec<Seen>,
    /// Those of the chains that exist.
    pub(super) chains: BTreeSet<String>,
}

/// One step of a change. Steps are done in order and all together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Edit {
    /// Makes a chain, unless it is there; `FORWARD` with policy accept.
    AddChain(String),
    /// Puts a rule first.
    Insert(HostRule),
    /// Puts a rule behind one of [`View::rules`], by its number there.
    InsertBehind(HostRule, usize),
    /// Puts a rule last.
    Append(HostRule),
    /// Deletes one of [`View::rules`], by its number there.
    Delete(usize),
    /// Deletes a chain with all its rules.
    DeleteChain(String),
}

impl View {
    /// The rules of a chain with their numbers.
    pub(super) fn of<'v>(&'v self, chain: &'v str) -> impl Iterator<Item = (usize, &'v Seen)> {
        self.rules.iter().enumerate().filter(move |(_, seen)| seen.chain == chain)
    }

    /// The number of the first such rule.
    pub(super) fn find(&self, rule: &HostRule) -> Option<usize> {
        self.rules.iter().position(|seen| seen.is(rule))
    }

    /// The first rule of a chain that jumps to another.
    pub(super) fn jump(&self, chain: &str, to: &str) -> Option<usize> {
        self.rules.iter().position(|seen| seen.chain == chain && seen.jumps_to() == Some(to))
    }

    /// Adds what another look found.
    pub(super) fn extend(&mut self, other: Self) {
        self.rules.extend(other.rules);
        self.chains.extend(other.chains);
    }
}
