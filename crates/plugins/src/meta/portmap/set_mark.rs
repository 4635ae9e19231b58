//! `externalSetMarkChain`: masquerading left to the host's own nat table.
//!
//! kube-proxy masquerades packets that its chain `KUBE-MARK-MASQ` in `ip nat`
//! has marked. Chains of other tables can't be jumped to, so for each mapping
//! a rule in that table, in a chain of ours, sends its packets there before
//! our own table translates them. They are written as `iptables` writes them,
//! and `iptables -t nat -S` shows them.

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{
    Batch, Chain, ChainKind, Comparison, Expression, Hook, IpVersion, NftSocket, Policy, Rule,
    TableId, Verdict, priority,
};
use podwire_plugin::{Difference, OwnerMark};
use podwire_resources::nft::{legacy, owner_of};
use podwire_resources::refused;
use podwire_spec::Error;

use super::condition::Condition;
use super::forwarding::Forwarding;
use super::layout;

/// Whether the batch that removes an owner's rules makes new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// It does.
    Yes,
    /// They go for good.
    No,
}

/// Our chain in the host's table.
const CHAIN: &str = "PODWIRE-SETMARK";
/// The chains of the host's table that jump to it.
const CALLERS: [(&str, Hook); 2] = [("PREROUTING", Hook::Prerouting), ("OUTPUT", Hook::Output)];
const COMMENT: &str = "ports of Podwire that need masquerading";

fn table(version: IpVersion) -> TableId<'static> {
    TableId::new(layout::family(version), "nat")
}

/// What the configuration asks for.
pub(super) struct SetMark {
    /// The host's chain, as `KUBE-MARK-MASQ`.
    pub(super) chain: String,
    /// All sources instead of the container's subnet and this host.
    pub(super) everything: bool,
}

impl SetMark {
    /// Adds the rules of an attachment to a batch, which must require the
    /// generation that was current before.
    ///
    /// # Errors
    /// The host has no such chain.
    pub(super) fn push(
        &self,
        socket: &mut NftSocket,
        batch: &mut Batch,
        forwardings: &[(Forwarding, Option<Condition>)],
    ) -> Result<bool, Error> {
        for (forwarding, _) in forwardings {
            let id = table(forwarding.version);
            if socket.chain(id.chain(&self.chain)).map_err(refused)?.is_none() {
                return Err(self.missing(id));
            }
            // Adding a chain that is there would cost a grace period.
            if socket.chain(id.chain(CHAIN)).map_err(refused)?.is_none() {
                batch.add_chain(&Chain::regular(id.chain(CHAIN)));
            }
            for (caller, hook) in CALLERS {
                let jump = jump(id, caller);
                let rules = socket.rules(jump.chain_id()).map_err(refused)?;
                if rules.is_empty() && socket.chain(jump.chain_id()).map_err(refused)?.is_none() {
                    // iptables makes its chains when it first needs them.
                    let priority = priority::DESTINATION_NAT;
                    let chain = Chain::base(jump.chain_id(), ChainKind::Nat, hook, priority);
                    batch.add_chain(&chain.with_policy(Policy::Accept));
                }
                if !rules.iter().any(|rule| rule.target_chain() == Some(CHAIN)) {
                    batch.add_rule(&jump);
                }
            }
            for rule in self.rules(forwarding) {
                batch.add_rule(&rule);
            }
        }
        Ok(!forwardings.is_empty())
    }

    /// One rule for each mapping and source.
    fn rules(&self, forwarding: &Forwarding) -> Vec<Rule> {
        let id = table(forwarding.version);
        let sources: Vec<_> = if self.everything {
            vec![None]
        } else {
            let local = layout::local_sources(forwarding.version, forwarding.subnet);
            local.into_iter().map(Some).collect()
        };
        let mut rules = Vec::new();
        for mapping in &forwarding.mappings {
            for source in &sources {
                let mut rule = Rule::new(id.chain(CHAIN));
                if let Some(source) = source {
                    rule = rule.source(Comparison::Equal, *source);
                }
                if let Some(address) = mapping.host_address() {
                    rule = rule.destination(Comparison::Equal, address.into());
                }
                rules.push(
                    rule.protocol(mapping.protocol.number())
                        .destination_port(mapping.host_port)
                        .counter()
                        .verdict(Verdict::jump(&self.chain))
                        .with_comment(forwarding.comment()),
                );
            }
        }
        rules
    }

    /// What is missing, by name.
    pub(super) fn check(
        &self,
        socket: &mut NftSocket,
        forwardings: &[(Forwarding, Option<Condition>)],
    ) -> Result<Vec<Difference>, Error> {
        let mut differences = Vec::new();
        for (forwarding, _) in forwardings {
            let id = table(forwarding.version);
            for (caller, _) in CALLERS {
                let rules = socket.rules(id.chain(caller)).map_err(refused)?;
                if !rules.iter().any(|rule| rule.target_chain() == Some(CHAIN)) {
                    let object = format!("jump from {} to {CHAIN}", id.chain(caller));
                    differences.push(Difference::missing(object));
                }
            }
            let found = socket.rules(id.chain(CHAIN)).map_err(refused)?;
            let rules = self.rules(forwarding);
            let missing = |wanted: &&Rule| !found.iter().any(|rule| rule.is_equivalent(wanted));
            let missing = rules.iter().filter(missing).count();
            if missing > 0 {
                let object = format!("rules of chain {} for this attachment", id.chain(CHAIN));
                let present = format!("{missing} fewer");
                differences.push(Difference::new(object, rules.len().to_string(), present));
            }
        }
        Ok(differences)
    }

    fn missing(&self, id: TableId<'_>) -> Error {
        Error::config(format!(
            "externalSetMarkChain: there is no chain {} in nftables table {id}",
            self.chain
        ))
        .with_details(
            "start what makes that chain (kube-proxy in iptables mode, with iptables-nft) first, \
             or leave externalSetMarkChain out: masquerading needs no chain of others",
        )
    }
}

/// `-m addrtype --dst-type LOCAL -j CHAIN`
fn jump(id: TableId<'static>, caller: &'static str) -> Rule {
    // struct xt_addrtype_info_v1 (linux/netfilter/xt_addrtype.h): source,
    // destination (bit 2 is local), flags.
    let mut info = vec![0; 8];
    if let Some(destination) = info.get_mut(2..4) {
        destination.copy_from_slice(&4_u16.to_ne_bytes());
    }
    Rule::new(id.chain(caller))
        .expression(Expression::XtMatch { name: "addrtype".to_owned(), revision: 1, info })
        .counter()
        .verdict(Verdict::jump(CHAIN))
        .with_comment(COMMENT)
}

/// Adds the removal of an owner's rules to a batch, and with the last of them
/// that of the chain, unless it is about to be used again.
pub(super) fn push_removal(
    socket: &mut NftSocket,
    batch: &mut Batch,
    version: IpVersion,
    owner: &OwnerMark,
    again: Again,
) -> Result<(), NetlinkError> {
    let id = table(version);
    let rules = socket.rules(id.chain(CHAIN))?;
    let (own, others): (Vec<_>, Vec<_>) =
        rules.iter().partition(|rule| owner_of(&rule.userdata) == Some(*owner));
    if others.is_empty() && !own.is_empty() && again == Again::No {
        for (caller, _) in CALLERS {
            for rule in socket.rules(id.chain(caller))? {
                if rule.target_chain() == Some(CHAIN) {
                    legacy::delete(batch, &rule);
                }
            }
        }
        batch.flush_chain(id.chain(CHAIN));
        batch.delete_chain(id.chain(CHAIN));
        return Ok(());
    }
    for rule in own {
        legacy::delete(batch, rule);
    }
    Ok(())
}
