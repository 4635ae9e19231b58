//! The packet filters that a host may have its chains in.
//!
//! nftables is the rule. Legacy xtables count only where they hold more than
//! empty chains that accept: then they see the packets too, and what they
//! drop stays dropped whatever nftables says. Where they count and the host
//! has no `filter` table in nftables, it gets none.

use std::collections::BTreeSet;

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{
    Batch, Chain, ChainKind, Hook, IpVersion, NftSocket, Policy, Table, priority,
};
use podwire_spec::error::Error;

use super::rule::{Place, Seen, TABLE, table};
use super::view::{Edit, FORWARD, View};
use crate::common_lock;
use crate::kernel::{Kernel, refused};
use crate::nft::legacy::xtables;
use crate::nft::retrying;

/// Held while legacy rules are looked at and changed: their tool can't do
/// both as one step.
const XTABLES_LOCK: &str = "/run/podwire/plugin/xtables/lock";

/// What to do about one view; it may ask for more chains by answering with
/// their names instead.
pub(super) enum Answer {
    /// Do this, which may be nothing.
    Edits(Vec<Edit>),
    /// Look into these chains too, and ask again.
    Look(Vec<String>),
}

/// Which filters a change is made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    /// Those that the host uses.
    Used,
    /// All that may hold something of ours.
    Everywhere,
}

/// Looks at chains and changes them as `decide` says, in each filter that the
/// host has. `decide` is called again when others change the tables in
/// between, and must have no effects of its own but through the batch.
/// Says whether anything was changed.
pub(super) fn change(
    kernel: &mut Kernel,
    version: IpVersion,
    chains: &[&str],
    extent: Where,
    mut decide: impl FnMut(&mut Kernel, &View) -> Result<Answer, Error>,
) -> Result<bool, Error> {
    let legacy = match extent {
        Where::Used => xtables::is_in_use(version, TABLE)?,
        Where::Everywhere => xtables::has_table(version, TABLE),
    };
    let mut changed = false;
    if uses_nft(kernel, version, extent, legacy)? {
        changed |= change_nft(kernel, version, chains, &mut decide)?;
    }
    if legacy {
        changed |= change_legacy(kernel, version, chains, &mut decide)?;
    }
    Ok(changed)
}

/// The same for legacy xtables alone, if the host has them at all.
pub(super) fn change_legacy_only(
    kernel: &mut Kernel,
    version: IpVersion,
    chains: &[&str],
    mut decide: impl FnMut(&mut Kernel, &View) -> Result<Answer, Error>,
) -> Result<(), Error> {
    if xtables::has_table(version, TABLE) {
        change_legacy(kernel, version, chains, &mut decide)?;
    }
    Ok(())
}

/// Looks without changing: a view of each filter that the host has.
pub(super) fn views(
    kernel: &mut Kernel,
    version: IpVersion,
    chains: &[&str],
) -> Result<Vec<View>, Error> {
    let legacy = xtables::is_in_use(version, TABLE)?;
    let mut views = Vec::new();
    if uses_nft(kernel, version, Where::Used, legacy)? {
        views.push(view_nft(kernel.nft()?, version, chains).map_err(refused)?);
    }
    if legacy {
        views.push(view_legacy(version, chains)?);
    }
    Ok(views)
}

/// The same of each filter that may hold something of ours.
pub(super) fn everything(
    kernel: &mut Kernel,
    version: IpVersion,
    chains: &[&str],
) -> Result<Vec<View>, Error> {
    let mut views = Vec::new();
    if uses_nft(kernel, version, Where::Everywhere, false)? {
        views.push(view_nft(kernel.nft()?, version, chains).map_err(refused)?);
    }
    if xtables::has_table(version, TABLE) {
        views.push(view_legacy(version, chains)?);
    }
    Ok(views)
}

fn uses_nft(
    kernel: &mut Kernel,
    version: IpVersion,
    extent: Where,
    legacy: bool,
) -> Result<bool, Error> {
    if extent == Where::Used && !legacy {
        return Ok(true);
    }
    let socket = kernel.nft()?;
    match socket.table(table(version)) {
        Ok(found) => Ok(found.is_some()),
        // A kernel without nftables holds nothing of ours.
        Err(error) if error.is_unsupported() => Ok(false),
        Err(error) if socket.generation().is_err_and(|error| error.is_unsupported()) => {
            log::debug!("no nftables: {error}");
            Ok(false)
        }
        Err(error) => Err(refused(error)),
    }
}

/// The rules of chains of the host's table; a chain without rules is looked
/// up, to know whether it is there.
pub(super) fn view_nft(
    socket: &mut NftSocket,
    version: IpVersion,
    chains: &[&str],
) -> Result<View, NetlinkError> {
    let mut view = View { version, rules: Vec::new(), chains: BTreeSet::new() };
    for name in chains {
        let id = table(version).chain(name);
        let rules = socket.rules(id)?;
        if !rules.is_empty() || socket.chain(id)?.is_some() {
            view.chains.insert((*name).to_owned());
        }
        view.rules.extend(rules.iter().filter_map(Seen::from_nft));
    }
    Ok(view)
}

fn change_nft(
    kernel: &mut Kernel,
    version: IpVersion,
    chains: &[&str],
    decide: &mut impl FnMut(&mut Kernel, &View) -> Result<Answer, Error>,
) -> Result<bool, Error> {
    let mut failed = None;
    let outcome = retrying(|| {
        let socket = kernel.nft().map_err(|error| failed = Some(error));
        let Ok(socket) = socket else { return Ok(false) };
        let generation = socket.generation()?;
        let mut view = view_nft(socket, version, chains)?;
        let edits = loop {
            match decide(kernel, &view) {
                Ok(Answer::Edits(edits)) => break edits,
                Ok(Answer::Look(more)) => {
                    let more: Vec<_> = more.iter().map(String::as_str).collect();
                    if let Ok(socket) = kernel.nft() {
                        view.extend(view_nft(socket, version, &more)?);
                    }
                    // Asked for once, whether it is there or not.
                    view.chains.extend(more.iter().map(|name| (*name).to_owned()));
                }
                Err(error) => {
                    failed = Some(error);
                    return Ok(false);
                }
            }
        };
        if edits.is_empty() {
            return Ok(false);
        }
        let mut batch = Batch::new();
        push(&mut batch, &view, &edits);
        batch.require_generation(generation);
        match kernel.nft() {
            Ok(socket) => socket.commit(&batch)?,
            Err(error) => failed = Some(error),
        }
        Ok(true)
    });
    match failed {
        Some(error) => Err(error),
        None => outcome.map_err(explain),
    }
}

/// Adds a change to a batch.
pub(super) fn push(batch: &mut Batch, view: &View, edits: &[Edit]) {
    let id = table(view.version);
    for edit in edits {
        match edit {
            Edit::AddChain(name) if name == FORWARD => {
                // iptables makes table and chain when it first needs them.
                if !view.chains.contains(FORWARD) {
                    batch.add_table(&Table::new(id));
                    let (hook, at) = (Hook::Forward, priority::FILTER);
                    let chain = Chain::base(id.chain(FORWARD), ChainKind::Filter, hook, at);
                    batch.add_chain(&chain.with_policy(Policy::Accept));
                }
            }
            Edit::AddChain(name) => {
                if !view.chains.contains(name) {
                    batch.add_chain(&Chain::regular(id.chain(name)));
                }
            }
            Edit::Insert(rule) => batch.insert_rule(&rule.to_nft(view.version)),
            Edit::Append(rule) => batch.add_rule(&rule.to_nft(view.version)),
            Edit::InsertBehind(rule, number) => {
                if let Some(Place::Handle(handle)) = view.rules.get(*number).map(|one| &one.place) {
                    batch.add_rule_after(&rule.to_nft(view.version), *handle);
                }
            }
            Edit::Delete(number) => {
                if let Some(seen) = view.rules.get(*number)
                    && let Place::Handle(handle) = seen.place
                {
                    batch.delete_rule(id.chain(&seen.chain), handle);
                }
            }
            Edit::DeleteChain(name) => {
                batch.flush_chain(id.chain(name));
                batch.delete_chain(id.chain(name));
            }
        }
    }
}

pub(super) fn explain(error: Error) -> Error {
    if !error.details.is_empty() {
        return error;
    }
    error.with_details(
        "the host's chains need nf_tables with the xtables matches comment and conntrack, as \
         iptables-nft does (modules nf_tables, nft_compat, nft_counter, xt_comment, xt_conntrack)",
    )
}

fn view_legacy(version: IpVersion, chains: &[&str]) -> Result<View, Error> {
    let listed = xtables::rules(version, TABLE)?.unwrap_or_default();
    let mut view = View { version, rules: Vec::new(), chains: BTreeSet::new() };
    for line in &listed {
        match line.as_slice() {
            [command, name, ..] if command == "-N" || command == "-P" => {
                view.chains.insert(name.clone());
            }
            _ => {}
        }
    }
    view.chains.retain(|name| chains.contains(&name.as_str()));
    let wanted = |seen: &Seen| chains.contains(&seen.chain.as_str());
    view.rules.extend(listed.iter().filter_map(|line| Seen::from_words(line)).filter(wanted));
    Ok(view)
}

fn change_legacy(
    kernel: &mut Kernel,
    version: IpVersion,
    chains: &[&str],
    decide: &mut impl FnMut(&mut Kernel, &View) -> Result<Answer, Error>,
) -> Result<bool, Error> {
    let _alone = common_lock::alone(XTABLES_LOCK, "changing legacy xtables")?;
    let mut view = view_legacy(version, chains)?;
    let edits = loop {
        match decide(kernel, &view)? {
            Answer::Edits(edits) => break edits,
            Answer::Look(more) => {
                let more: Vec<_> = more.iter().map(String::as_str).collect();
                view.extend(view_legacy(version, &more)?);
                view.chains.extend(more.iter().map(|name| (*name).to_owned()));
            }
        }
    };
    let commands = commands(&view, &edits);
    if commands.is_empty() {
        return Ok(false);
    }
    xtables::apply(version, TABLE, &commands)?;
    Ok(true)
}

/// The change as commands of iptables, each as words.
pub(super) fn commands(view: &View, edits: &[Edit]) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    let mut push = |command: &str, chain: &str, words: &[String]| {
        let mut line = vec![command.to_owned(), chain.to_owned()];
        line.extend_from_slice(words);
        commands.push(line);
    };
    for edit in edits {
        match edit {
            Edit::AddChain(name) => {
                if name != FORWARD && !view.chains.contains(name) {
                    push("-N", name, &[]);
                }
            }
            Edit::Insert(rule) => push("-I", &rule.chain, &rule.words()),
            Edit::Append(rule) => push("-A", &rule.chain, &rule.words()),
            Edit::InsertBehind(rule, number) => {
                let before = view.of(&rule.chain).take_while(|(one, _)| one <= number).count();
                let mut words = vec![(before + 1).to_string()];
                words.extend(rule.words());
                push("-I", &rule.chain, &words);
            }
            Edit::Delete(number) => {
                if let Some(seen) = view.rules.get(*number)
                    && let Place::Words(words) = &seen.place
                {
                    push("-D", &seen.chain, words);
                }
            }
            Edit::DeleteChain(name) => {
                push("-F", name, &[]);
                push("-X", name, &[]);
            }
        }
    }
    commands
}
