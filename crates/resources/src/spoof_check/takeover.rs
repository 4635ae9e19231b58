//! What the Go plugins made for the same purpose, under their names
//! (containernetworking/plugins `pkg/link/spoofcheck.go`).

use std::collections::{BTreeMap, BTreeSet};

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{
    Batch, ChainId, Comparison, Expression, Family, MetaKey, NftSocket, Rule, TableId,
};

use super::Port;
use crate::nft::legacy::{LegacyChain, push_removal};

const NAT: TableId<'static> = TableId::new(Family::Bridge, "nat");
const CALLER: ChainId<'static> = NAT.chain("PREROUTING");
const PREFIX: &str = "cni-br-iface-";
/// The end of the name of the chain that holds the address.
const MAC: &str = "-mac";

/// The chain of one attachment; the network is no part of its name.
pub(super) fn chain_name(container: &str, ifname: &str) -> String {
    format!("{PREFIX}{container}-{ifname}")
}

/// Adds the removal of an attachment's two chains, and of what jumps there,
/// to a batch. Where they don't exist, the table's rules aren't even listed.
pub(super) fn push_chain(
    socket: &mut NftSocket,
    batch: &mut Batch,
    name: &str,
) -> Result<(), NetlinkError> {
    let callers: [&'static [&'static str]; 2] = [&["PREROUTING"], &[]];
    for (chain, callers) in [name.to_owned(), format!("{name}{MAC}")].into_iter().zip(callers) {
        let chain = LegacyChain { family: Family::Bridge, table: "nat", chain, callers };
        push_removal(socket, batch, &chain)?;
    }
    Ok(())
}

/// Whether the Go plugins' rules guard a port.
pub(super) fn guards(
    socket: &mut NftSocket,
    name: &str,
    port: &Port,
) -> Result<bool, NetlinkError> {
    let mac_chain = format!("{name}{MAC}");
    if socket.chain(NAT.chain(&mac_chain))?.is_none() {
        return Ok(false);
    }
    let is_called = socket.rules(CALLER)?.iter().any(|rule| {
        rule.target_chain() == Some(name)
            && input_interface(rule).as_deref() == Some(&port.interface)
    });
    let allows = |rule: &Rule| {
        rule.expressions.iter().any(|expression| {
            matches!(expression, Expression::Compare { value, .. }
                if value.as_bytes() == port.mac.0)
        })
    };
    let goes_on =
        socket.rules(NAT.chain(name))?.iter().any(|rule| rule.target_chain() == Some(&mac_chain));
    Ok(is_called && goes_on && socket.rules(NAT.chain(&mac_chain))?.iter().any(allows))
}

/// All chains of attachments, with the host interfaces whose frames jump
/// there.
pub(super) fn chains(
    socket: &mut NftSocket,
) -> Result<BTreeMap<String, BTreeSet<String>>, NetlinkError> {
    let names: BTreeSet<_> = socket.chains(NAT)?.into_iter().map(|chain| chain.name).collect();
    let mut chains: BTreeMap<_, _> =
        attachments(&names).map(|name| (name.to_owned(), BTreeSet::new())).collect();
    if !chains.is_empty() {
        for rule in socket.rules(CALLER)? {
            if let Some(chain) = rule.target_chain()
                && let Some(interfaces) = chains.get_mut(chain)
            {
                interfaces.extend(input_interface(&rule));
            }
        }
    }
    Ok(chains)
}

/// The names without those of the inner chains.
fn attachments(names: &BTreeSet<String>) -> impl Iterator<Item = &str> {
    let is_inner = |name: &str| name.strip_suffix(MAC).is_some_and(|outer| names.contains(outer));
    let own = names.iter().map(String::as_str).filter(|name| name.starts_with(PREFIX));
    own.filter(move |name| !is_inner(name))
}

/// The name that a rule compares the input interface with.
fn input_interface(rule: &Rule) -> Option<String> {
    let mut is_loaded = false;
    for expression in &rule.expressions {
        match expression {
            Expression::Meta { key, .. } => is_loaded = *key == MetaKey::InputName,
            Expression::Compare { comparison: Comparison::Equal, value, .. } if is_loaded => {
                let bytes = value.as_bytes();
                let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
                return String::from_utf8(bytes.get(..end)?.to_vec()).ok();
            }
            _ => is_loaded = false,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use podwire_netlink::nft::Verdict;

    #[test]
    fn inner_chains_are_no_attachments_of_their_own() {
        let names = [
            "PREROUTING",
            "cni-br-iface-c1-eth0",
            "cni-br-iface-c1-eth0-mac",
            // An interface may be called so; its inner chain tells.
            "cni-br-iface-c2-mac",
            "cni-br-iface-c2-mac-mac",
        ];
        let names = names.into_iter().map(str::to_owned).collect();
        let found: Vec<_> = attachments(&names).collect();
        assert_eq!(found, ["cni-br-iface-c1-eth0", "cni-br-iface-c2-mac"]);
    }

    #[test]
    fn the_interface_of_a_jump_is_read() {
        let chain = chain_name("c1", "eth0");
        let rule = Rule::new(CALLER).input_interface(Comparison::Equal, "veth0");
        assert_eq!(input_interface(&rule.verdict(Verdict::jump(chain))).unwrap(), "veth0");
        let other = Rule::new(CALLER).output_interface(Comparison::Equal, "veth0");
        assert_eq!(input_interface(&other), None);
    }
}
