//! What ADD finds of a chain at a hook, and how it makes it right.

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{BaseChain, Batch, Chain, NftSocket, Rule};

use super::are_those;

/// How a chain at a hook is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// As it must be.
    Right,
    /// At its hook without any rules, as the last attachment on the host leaves it.
    Idle,
    /// Missing, somewhere else, or with other rules.
    Wrong,
}

impl Entry {
    /// Looks at it.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn find(
        socket: &mut NftSocket,
        wanted: &Chain,
        rules: &[Rule],
    ) -> Result<Self, NetlinkError> {
        let place = |base: BaseChain| (base.kind, base.hook, base.priority);
        let found = socket.chain(wanted.id())?;
        if found.and_then(|found| found.base).map(place) != wanted.base.map(place) {
            return Ok(Self::Wrong);
        }
        let found = socket.rules(wanted.id())?;
        Ok(match are_those(&found, rules) {
            true => Self::Right,
            false if found.is_empty() => Self::Idle,
            false => Self::Wrong,
        })
    }

    /// Adds what makes it right to a batch, which must require the generation that
    /// was current before. An idle chain isn't added again: that would cost the
    /// first ADD on a host a grace period ([`super::transaction`]).
    pub fn push(self, batch: &mut Batch, wanted: &Chain, rules: &[Rule]) {
        if self == Self::Right {
            return;
        }
        if self == Self::Wrong {
            batch.add_chain(wanted);
            batch.flush_chain(wanted.id());
        }
        for rule in rules {
            batch.add_rule(rule);
        }
    }
}

#[cfg(test)]
mod tests {
    use podwire_netlink::nft::{ChainKind, Family, Hook, TableId, Verdict, priority};

    use super::*;

    #[test]
    fn an_idle_chain_only_gets_its_rules() {
        let id = TableId::new(Family::Ipv4, "t").chain("c");
        let chain = Chain::base(id, ChainKind::Filter, Hook::Forward, priority::FILTER);
        let rules = [Rule::new(id).verdict(Verdict::Return), Rule::new(id).verdict(Verdict::Drop)];
        let pushed = |entry: Entry| {
            let mut batch = Batch::new();
            entry.push(&mut batch, &chain, &rules);
            batch.len()
        };
        assert_eq!([Entry::Right, Entry::Idle, Entry::Wrong].map(pushed), [0, 2, 4]);
    }
}
