//! Comparing the tables with what they must be, and mending them.

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{Batch, IpVersion, NftSocket, Rule, Verdict};
use podwire_plugin::Difference;
use podwire_resources::nft::are_those;

use super::condition::Condition;
use super::forwarding::Forwarding;
use super::layout::{self, CONDITIONAL, Filled, Scope};

/// The rules of one of our tables, as the kernel has them.
pub(super) struct Structure {
    version: IpVersion,
    rules: Vec<Rule>,
}

impl Structure {
    /// Lists them: one question, whose answer doesn't grow with the number of
    /// mappings.
    pub(super) fn observe(
        socket: &mut NftSocket,
        version: IpVersion,
    ) -> Result<Self, NetlinkError> {
        Ok(Self { version, rules: socket.table_rules(layout::table(version))? })
    }

    fn of_chain<'a>(&'a self, chain: &'a str) -> impl Iterator<Item = &'a Rule> {
        self.rules.iter().filter(move |rule| rule.chain == chain)
    }

    fn is_right(&self, wanted: &Filled) -> bool {
        are_those(self.of_chain(&wanted.chain.name), &wanted.rules)
    }

    /// Adds what is missing to a batch. Says whether anything was: then the
    /// batch must require the generation that was current before.
    pub(super) fn mend(
        &self,
        batch: &mut Batch,
        forwarding: &Forwarding,
        condition: Option<&Condition>,
        thoroughly: bool,
    ) -> bool {
        let version = self.version;
        let mut wanted = layout::chains(version);
        wanted.extend(forwarding.masquerade.clone());
        let broken: Vec<_> =
            wanted.iter().filter(|filled| thoroughly || !self.is_right(filled)).collect();
        let conditions_differ = condition
            .is_some_and(|condition| thoroughly || !self.has_conditions(forwarding, condition));
        if broken.is_empty() && !conditions_differ {
            return false;
        }
        // All of it is left as it is where it is right.
        batch.add_table(&layout::table_object(version));
        // Its rules are those of networks, if any: what shows it is what leads to it.
        // Adding it again would cost a grace period.
        let mut rules = self.rules.iter();
        if thoroughly || !rules.any(|rule| rule.target_chain() == Some(CONDITIONAL)) {
            batch.add_chain(&layout::conditional(version));
        }
        for set in layout::sets(version) {
            batch.add_set(&set);
        }
        for filled in broken {
            batch.add_chain(&filled.chain);
            if !self.is_right(filled) {
                batch.flush_chain(filled.chain.id());
                for rule in &filled.rules {
                    batch.add_rule(rule);
                }
            }
        }
        if let Some(condition) = condition {
            self.mend_conditions(batch, forwarding, condition);
        }
        true
    }

    /// The rules that lead a network's packets to its maps.
    fn entry_rules(forwarding: &Forwarding, condition: &Condition) -> Vec<Rule> {
        let chain = layout::table(forwarding.version).chain(CONDITIONAL);
        let begin = Rule::new(chain).with_comment(&forwarding.network_comment());
        let jump = || Verdict::jump(forwarding.scope.chain());
        condition.rules(&begin).into_iter().map(|rule| rule.verdict(jump())).collect()
    }

    fn network_chain(forwarding: &Forwarding) -> Filled {
        let id = layout::table(forwarding.version);
        Filled {
            chain: podwire_netlink::nft::Chain::regular(id.chain(&forwarding.scope.chain())),
            rules: forwarding.scope.lookups(forwarding.version).into(),
        }
    }

    fn has_conditions(&self, forwarding: &Forwarding, condition: &Condition) -> bool {
        let wanted = Self::entry_rules(forwarding, condition);
        are_those(self.entries_of(forwarding.scope), &wanted)
            && self.is_right(&Self::network_chain(forwarding))
    }

    /// The rules that lead to a network's chain.
    fn entries_of(&self, scope: Scope) -> impl Iterator<Item = &Rule> {
        let chain = scope.chain();
        self.of_chain(CONDITIONAL).filter(move |rule| rule.target_chain() == Some(&chain))
    }

    /// The newest conditions of a network hold for all its mappings.
    fn mend_conditions(&self, batch: &mut Batch, forwarding: &Forwarding, condition: &Condition) {
        for set in forwarding.scope.maps(forwarding.version) {
            batch.add_set(&set);
        }
        let network = Self::network_chain(forwarding);
        batch.add_chain(&network.chain);
        if !self.is_right(&network) {
            batch.flush_chain(network.chain.id());
            for rule in &network.rules {
                batch.add_rule(rule);
            }
        }
        for rule in self.entries_of(forwarding.scope) {
            podwire_resources::nft::legacy::delete(batch, rule);
        }
        for rule in Self::entry_rules(forwarding, condition) {
            batch.add_rule(&rule);
        }
    }

    /// What isn't as it must be, by name.
    pub(super) fn differences(
        &self,
        forwarding: &Forwarding,
        condition: Option<&Condition>,
    ) -> Vec<Difference> {
        let mut wanted = layout::chains(self.version);
        wanted.extend(forwarding.masquerade.clone());
        if condition.is_some() {
            wanted.push(Self::network_chain(forwarding));
        }
        let mut differences: Vec<_> = wanted
            .iter()
            .filter(|filled| !self.is_right(filled))
            .map(|filled| {
                let name = format!("chain {} (nftables)", filled.chain.id());
                let found = self.of_chain(&filled.chain.name).count();
                if found == 0 {
                    return Difference::missing(name);
                }
                let wanted = format!("its {} rules in order", filled.rules.len());
                Difference::new(name, wanted, format!("{found} rules, not all of them these"))
            })
            .collect();
        if let Some(condition) = condition
            && differences.is_empty()
            && !self.has_conditions(forwarding, condition)
        {
            differences.push(Difference::new(
                format!("chain {} (nftables)", layout::conditional(self.version).id()),
                "the conditions of this network",
                "others or none",
            ));
        }
        differences
    }

    /// Removes the maps and conditions of a network that nobody of it uses
    /// any more.
    pub(super) fn drop_network(&self, batch: &mut Batch, scope: Scope) {
        let id = layout::table(self.version);
        for rule in self.entries_of(scope) {
            podwire_resources::nft::legacy::delete(batch, rule);
        }
        let chain = scope.chain();
        if self.of_chain(&chain).next().is_some() {
            batch.flush_chain(id.chain(&chain));
            batch.delete_chain(id.chain(&chain));
            batch.destroy_set(id.set(&scope.ports()));
            batch.destroy_set(id.set(&scope.address_ports()));
        }
    }

    /// Whether nothing but the `leaving` elements, rules of its own and jumps
    /// lead to a chain. The kernel counts them all in one number.
    pub(super) fn is_unused(
        &self,
        socket: &mut NftSocket,
        chain: &str,
        leaving: u32,
    ) -> Result<bool, NetlinkError> {
        let found = socket.chain(layout::table(self.version).chain(chain))?;
        let Some(uses) = found.and_then(|found| found.uses) else { return Ok(false) };
        let leads = |rule: &&Rule| rule.chain == chain || rule.target_chain() == Some(chain);
        let rules = u32::try_from(self.rules.iter().filter(leads).count()).unwrap_or(u32::MAX);
        Ok(uses <= rules.saturating_add(leaving))
    }

    /// The chains of networks with conditions.
    pub(super) fn networks(&self) -> impl Iterator<Item = &str> {
        let rules = self.rules.iter();
        let names = rules.flat_map(|rule| [Some(rule.chain.as_str()), rule.target_chain()]);
        names.flatten().filter(|name| layout::is_network_chain(name))
    }

    /// Whether there are conditions of this network.
    pub(super) fn has_scope(&self, scope: Scope) -> bool {
        self.entries_of(scope).next().is_some() || self.of_chain(&scope.chain()).next().is_some()
    }
}
