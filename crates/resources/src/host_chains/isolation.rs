//! Keeping bridges apart (`ingressPolicy`).
//!
//! A packet that leaves an isolated bridge for another isolated bridge is
//! dropped; `isolated` also drops what would stay on the bridge, where bridged
//! packets pass the filter at all (`br_netfilter`). The rules belong to the
//! bridge: they stand while an attachment that asked for them does.

use podwire_netlink::nft::{Batch, IpVersion};
use podwire_plugin::{Belongs, Difference, Made, OwnerMark, Resource};
use podwire_spec::error::Error;
use podwire_spec::id::AttachmentKey;

use super::accepts::{CHAIN, VERSIONS};
use super::filter::{self, Answer, Where};
use super::members::{self, Kind, Member, Share};
use super::rule::{HostRule, Match, Seen, Target};
use super::view::{Edit, FORWARD, View};
use crate::host_end::owner_of_alias;
use crate::kernel::{Kernel, refused};
use crate::nft::{retrying, transaction};

/// Decides for what leaves an isolated bridge.
pub(super) const STAGE_1: &str = "CNI-ISOLATION-STAGE-1";
/// Drops it if it is bound for an isolated bridge.
const STAGE_2: &str = "CNI-ISOLATION-STAGE-2";
/// All that isolation is about.
const CHAINS: [&str; 3] = [FORWARD, STAGE_1, STAGE_2];
const SHARED_COMMENT: &str = "CNI firewall plugin rules (ingressPolicy: same-bridge|isolated)";
const COMMENT_START: &str = "CNI firewall plugin rules (ingressPolicy: ";

/// `IFNAMSIZ` (linux/if.h) less its NUL.
const INTERFACE_NAME_LIMIT: usize = 15;

/// From whom a bridge's containers may be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum IngressPolicy {
    /// From everywhere.
    #[default]
    Open,
    /// Not from other isolated bridges.
    SameBridge,
    /// Not from each other either.
    Isolated,
}

impl IngressPolicy {
    /// The configuration's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::SameBridge => "same-bridge",
            Self::Isolated => "isolated",
        }
    }

    /// Reads that word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Open, Self::SameBridge, Self::Isolated]
            .into_iter()
            .find(|policy| policy.as_str() == text)
    }
}

/// What one attachment asks for its bridge.
#[derive(Debug, Clone)]
pub struct Isolation {
    owner: OwnerMark,
    key: AttachmentKey,
    /// The bridge; unknown on a DEL without prevResult.
    bridge: Option<String>,
    policy: IngressPolicy,
}

impl Isolation {
    /// What an attachment asks for; on DEL the policy means nothing.
    pub fn new(key: &AttachmentKey, bridge: Option<String>, policy: IngressPolicy) -> Self {
        Self { owner: OwnerMark::of(key), key: key.clone(), bridge, policy }
    }

    /// Writes down who asks for what, before the rules: whoever takes rules
    /// away looks there in the same transaction.
    fn enrol(&self, kernel: &mut Kernel, bridge: &str) -> Result<(), Error> {
        let wanted = Member {
            owner: self.owner,
            share: Share::Bridge(bridge.to_owned()),
            word: self.policy.as_str().to_owned(),
        };
        let socket = kernel.nft()?;
        retrying(|| {
            transaction(socket, |socket, batch| {
                let mut is_there = false;
                for member in members::all(socket, Kind::Bridges)? {
                    if member == wanted {
                        is_there = true;
                    } else if member.owner == self.owner {
                        members::push_removal(batch, &member);
                    }
                }
                if !is_there {
                    members::push(batch, &wanted, &self.key);
                }
                Ok(())
            })
        })
    }

    /// What the bridge is to have: what this attachment's network asks for
    /// now, and no less than other networks on it do.
    fn policy_of_bridge(&self, kernel: &mut Kernel, bridge: &str) -> Result<IngressPolicy, Error> {
        let all = members::all(kernel.nft()?, Kind::Bridges).map_err(refused)?;
        let others = all
            .iter()
            .filter(|member| member.owner.network != self.owner.network)
            .filter(|member| matches!(&member.share, Share::Bridge(name) if name == bridge))
            .filter_map(|member| IngressPolicy::parse(&member.word));
        Ok(others.chain([self.policy]).max().unwrap_or_default())
    }
}

/// The rules of a bridge in the two chains.
fn rules(bridge: &str, policy: IngressPolicy) -> Vec<HostRule> {
    let comment = format!("{COMMENT_START}{})", policy.as_str());
    let (input, output) = (|| Match::Input(bridge.into()), || Match::Output(bridge.into()));
    let leaving = vec![input(), Match::NotOutput(bridge.into())];
    let mut rules = vec![
        HostRule::new(STAGE_1, leaving, Target::Jump(STAGE_2.into())).with_comment(&comment),
        HostRule::new(STAGE_2, vec![output()], Target::Drop).with_comment(SHARED_COMMENT),
    ];
    if policy == IngressPolicy::Isolated {
        let staying = vec![input(), output()];
        rules.push(HostRule::new(STAGE_1, staying, Target::Drop).with_comment(&comment));
    }
    rules
}

fn entry() -> HostRule {
    HostRule::new(FORWARD, Vec::new(), Target::Jump(STAGE_1.into())).with_comment(SHARED_COMMENT)
}

fn end(chain: &str) -> HostRule {
    HostRule::new(chain, Vec::new(), Target::Return).with_comment(SHARED_COMMENT)
}

/// The bridge that a rule of either chain is about, if it is one of ours or
/// the Go plugin's.
fn bridge_of(seen: &Seen) -> Option<&str> {
    if !seen.comment.as_deref()?.starts_with(COMMENT_START) {
        return None;
    }
    match (seen.chain.as_str(), seen.matches.as_deref()?) {
        (STAGE_1, [option, name, ..]) if option == "-i" => Some(name),
        (STAGE_2, [option, name]) if option == "-o" => Some(name),
        _ => None,
    }
}

/// What makes a bridge's rules those of a policy other than open.
fn separating(view: &View, bridge: &str, policy: IngressPolicy) -> Vec<Edit> {
    let mut edits = Vec::new();
    let (own, accepting) = (view.jump(FORWARD, STAGE_1), view.jump(FORWARD, CHAIN));
    let is_late = matches!((own, accepting), (Some(own), Some(accepting)) if own > accepting);
    if is_late {
        edits.extend(own.map(Edit::Delete));
    }
    if own.is_none() {
        edits.push(Edit::AddChain(FORWARD.to_owned()));
    }
    for chain in [STAGE_1, STAGE_2] {
        if !view.chains.contains(chain) {
            edits.push(Edit::AddChain(chain.to_owned()));
        }
        if view.find(&end(chain)).is_none() {
            edits.push(Edit::Append(end(chain)));
        }
    }
    if own.is_none() || is_late {
        edits.push(Edit::Insert(entry()));
    }
    let wanted = rules(bridge, policy);
    let of_bridge = view.rules.iter().enumerate().filter(|(_, one)| bridge_of(one) == Some(bridge));
    for (number, seen) in of_bridge {
        if !wanted.iter().any(|rule| seen.is(rule)) {
            edits.push(Edit::Delete(number));
        }
    }
    let missing = wanted.into_iter().filter(|rule| view.find(rule).is_none());
    edits.extend(missing.map(Edit::Insert));
    edits
}

/// What takes the rules of bridges away, and the chains with the last.
fn reuniting(view: &View, is_leaving: &dyn Fn(&str) -> bool) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut stays = false;
    for (number, seen) in view.rules.iter().enumerate() {
        if seen.chain == FORWARD {
            continue;
        }
        if bridge_of(seen).is_some_and(is_leaving) {
            edits.push(Edit::Delete(number));
        } else {
            stays |= seen.target != Some(Target::Return) || seen.matches != Some(Vec::new());
        }
    }
    let has_chains = view.chains.contains(STAGE_1) || view.chains.contains(STAGE_2);
    if !stays && has_chains {
        let jumps = view.of(FORWARD).filter(|(_, seen)| seen.jumps_to() == Some(STAGE_1));
        edits.extend(jumps.map(|(number, _)| Edit::Delete(number)));
        // The first jumps to the second.
        let chains = [STAGE_1, STAGE_2].into_iter().filter(|chain| view.chains.contains(*chain));
        edits.extend(chains.map(|chain| Edit::DeleteChain(chain.to_owned())));
    }
    edits
}

/// Removes the rules of bridges that nobody asks for any more.
///
/// `leaving` are those who don't count any more. A bridge that has another
/// port than theirs keeps its rules: an attachment that the Go plugin made
/// is written down nowhere. `only` is the one bridge to be looked at.
pub(super) fn release(
    kernel: &mut Kernel,
    leaving: &dyn Fn(&OwnerMark) -> bool,
    own_ports: &[String],
    only: Option<&str>,
) -> Result<(), Error> {
    let mut failed = None;
    let outcome = retrying(|| {
        let Ok(socket) = kernel.nft().map_err(|error| failed = Some(error)) else { return Ok(()) };
        let generation = match socket.generation() {
            // A kernel without nftables holds nothing of ours.
            Err(error) if error.is_unsupported() => return Ok(()),
            other => other?,
        };
        let members = members::all(socket, Kind::Bridges)?;
        // Rules of both IP versions and who asked for them go together: what a
        // killed call leaves is all of it or nothing.
        let mut batch = Batch::new();
        for version in VERSIONS {
            let Ok(socket) = kernel.nft() else { return Ok(()) };
            let view = filter::view_nft(socket, version, &CHAINS)?;
            match unneeded(kernel, &view, &members, leaving, own_ports, only) {
                Ok(edits) => filter::push(&mut batch, &view, &edits),
                Err(error) => failed = Some(error),
            }
        }
        for member in members.iter().filter(|member| leaving(&member.owner)) {
            members::push_removal(&mut batch, member);
        }
        batch.require_generation(generation);
        match kernel.nft() {
            Ok(socket) if failed.is_none() => socket.commit(&batch),
            _ => Ok(()),
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    outcome?;
    for version in VERSIONS {
        filter::change_legacy_only(kernel, version, &CHAINS, |kernel, view| {
            let members = members::all(kernel.nft()?, Kind::Bridges).map_err(refused)?;
            unneeded(kernel, view, &members, leaving, own_ports, only).map(Answer::Edits)
        })?;
    }
    Ok(())
}

/// What takes away the rules of bridges that nobody asks for but those who
/// leave.
fn unneeded(
    kernel: &mut Kernel,
    view: &View,
    members: &[Member],
    leaving: &dyn Fn(&OwnerMark) -> bool,
    own_ports: &[String],
    only: Option<&str>,
) -> Result<Vec<Edit>, Error> {
    let mut bridges: Vec<_> = view.rules.iter().filter_map(bridge_of).collect();
    bridges.retain(|bridge| only.is_none_or(|only| only == *bridge));
    bridges.sort_unstable();
    bridges.dedup();
    let mut unused = Vec::new();
    for bridge in bridges {
        let is_wanted = members.iter().any(|member| {
            !leaving(&member.owner)
                && matches!(&member.share, Share::Bridge(name) if name == bridge)
        });
        if !is_wanted && !has_other_ports(kernel, bridge, leaving, own_ports)? {
            unused.push(bridge);
        }
    }
    Ok(reuniting(view, &|bridge| unused.contains(&bridge)))
}

fn has_other_ports(
    kernel: &mut Kernel,
    bridge: &str,
    leaving: &dyn Fn(&OwnerMark) -> bool,
    own_ports: &[String],
) -> Result<bool, Error> {
    // A rule can name what no interface can be called: nothing is behind it,
    // and it must not keep other bridges' rules.
    if bridge.is_empty() || bridge.len() > INTERFACE_NAME_LIMIT {
        return Ok(false);
    }
    let socket = kernel.host()?;
    let Some(bridge) = socket.link_by_name(bridge).map_err(refused)? else { return Ok(false) };
    let links = socket.links().map_err(refused)?;
    Ok(links.iter().any(|link| {
        let owner = link.alias.as_deref().and_then(owner_of_alias);
        link.master == Some(bridge.index)
            && !own_ports.contains(&link.name)
            && !owner.is_some_and(|owner| leaving(&owner))
    }))
}

impl Resource<Kernel> for Isolation {
    fn describe(&self) -> String {
        match &self.bridge {
            Some(bridge) => format!("ingress policy of bridge {bridge}"),
            None => "ingress policy".to_owned(),
        }
    }

    fn belongs(&self) -> Belongs {
        Belongs::Attachment
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let Some(bridge) = self.bridge.clone() else { return Ok(Made::Found) };
        if self.policy != IngressPolicy::Open {
            self.enrol(kernel, &bridge)?;
        }
        let made = self.make_rules(kernel, &bridge);
        if made.is_err()
            && let Err(error) = self.remove(kernel)
        {
            log::warn!("could not take back {}: {error}", self.describe());
        }
        made
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let Some(bridge) = self.bridge.as_deref().filter(|_| self.policy != IngressPolicy::Open)
        else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for version in versions() {
            let tool = if version == IpVersion::V4 { "iptables" } else { "ip6tables" };
            for view in filter::views(kernel, version, &[FORWARD, STAGE_1, STAGE_2])? {
                if view.jump(FORWARD, STAGE_1).is_none() {
                    let object = format!("{tool} rule from {FORWARD} to {STAGE_1}");
                    found.push(Difference::missing(object));
                }
                for rule in rules(bridge, self.policy) {
                    // Another network may ask for more on this bridge.
                    let alike = |seen: &Seen| {
                        seen.chain == rule.chain
                            && seen.target.as_ref() == Some(&rule.target)
                            && bridge_of(seen).is_some()
                            && seen.is(&HostRule { comment: seen.comment.clone(), ..rule.clone() })
                    };
                    if !view.rules.iter().any(alike) {
                        let words = rule.words().join(" ");
                        let object = format!("{tool} rule -A {} {words}", rule.chain);
                        found.push(Difference::missing(object));
                    }
                }
            }
        }
        Ok(found)
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        let bridge = match &self.bridge {
            Some(bridge) => Some(bridge.clone()),
            None => members::all(kernel.nft()?, Kind::Bridges)
                .map_err(refused)?
                .into_iter()
                .find_map(|member| match member.share {
                    Share::Bridge(name) if member.owner == self.owner => Some(name),
                    _ => None,
                }),
        };
        // Where nothing tells the bridge, one that a killed DEL left may be any
        // that nobody asks for.
        let ports = self.own_ports(kernel)?;
        release(kernel, &|owner| *owner == self.owner, &ports, bridge.as_deref())
    }
}

impl Isolation {
    fn make_rules(&self, kernel: &mut Kernel, bridge: &str) -> Result<Made, Error> {
        let mut made = Made::Found;
        for version in versions() {
            let chains = [FORWARD, STAGE_1, STAGE_2, CHAIN];
            let chains = if self.policy == IngressPolicy::Open { &chains[..3] } else { &chains };
            let changed = filter::change(kernel, version, chains, Where::Used, |kernel, view| {
                if self.policy == IngressPolicy::Open
                    && !view.rules.iter().any(|seen| bridge_of(seen) == Some(bridge))
                {
                    return Ok(Answer::Edits(Vec::new()));
                }
                let policy = self.policy_of_bridge(kernel, bridge)?;
                Ok(Answer::Edits(match policy {
                    IngressPolicy::Open => reuniting(view, &|name| name == bridge),
                    policy => separating(view, bridge, policy),
                }))
            })?;
            if changed {
                made = Made::Created;
            }
        }
        Ok(made)
    }

    /// The attachment's own port of the bridge, which doesn't count.
    fn own_ports(&self, kernel: &mut Kernel) -> Result<Vec<String>, Error> {
        let mut ports = Vec::new();
        if kernel.has_sandbox()
            && let Ok(inside) = kernel.container_link(self.key.ifname.as_str())
            && let Some(host) = crate::host_end::host_end_of(kernel, &inside)?
        {
            ports.push(host.name);
        }
        Ok(ports)
    }
}

/// IPv4, and IPv6 where the kernel has it.
fn versions() -> impl Iterator<Item = IpVersion> {
    let has_v6 = std::path::Path::new("/proc/thread-self/net/if_inet6").exists();
    VERSIONS.into_iter().filter(move |version| *version == IpVersion::V4 || has_v6)
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
