//! What ADD finds of a chain at a hook, and how it makes it right.

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{BaseChain, Batch, Chain, NftSocket, Rule};

use super::are_those;

/// What is in the kernel under a chain's name: for ADD, which makes it right, as for
/// CHECK, which says what is wrong.
pub(super) enum Found {
    /// No such chain.
    Nowhere,
    /// One that packets enter elsewhere than at the wanted hook, or nowhere.
    Elsewhere(Option<BaseChain>),
    /// One at the wanted hook, with these rules.
    InPlace(Vec<Rule>),
}

impl Found {
    /// Looks at it.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub(super) fn look(socket: &mut NftSocket, wanted: &Chain) -> Result<Self, NetlinkError> {
        let place = |base: BaseChain| (base.kind, base.hook, base.priority);
        let Some(found) = socket.chain(wanted.id())? else { return Ok(Self::Nowhere) };
        if found.base.map(place) != wanted.base.map(place) {
            return Ok(Self::Elsewhere(found.base));
        }
        socket.rules(wanted.id()).map(Self::InPlace)
    }
}

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
        Ok(match Found::look(socket, wanted)? {
            Found::InPlace(found) if are_those(&found, rules) => Self::Right,
            Found::InPlace(found) if found.is_empty() => Self::Idle,
            Found::Nowhere | Found::Elsewhere(_) | Found::InPlace(_) => Self::Wrong,
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
