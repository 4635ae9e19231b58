//! CHECK of what every attachment of a table shares: its chains.

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{BaseChain, Chain, ChainId, NftSocket, Rule};
use podwire_plugin::Difference;

use super::entry::Found;

/// Whether a chain holds these rules and no others; `what` says what they do.
///
/// # Errors
/// When the kernel refuses to tell.
pub fn compare_rules(
    socket: &mut NftSocket,
    chain: ChainId<'_>,
    wanted: &[Rule],
    what: &str,
) -> Result<Option<Difference>, NetlinkError> {
    Ok(difference(chain, &socket.rules(chain)?, wanted, what))
}

fn difference(
    chain: ChainId<'_>,
    found: &[Rule],
    wanted: &[Rule],
    what: &str,
) -> Option<Difference> {
    if are_those(found, wanted) {
        return None;
    }
    let seen = match found.len() {
        0 => "none".to_owned(),
        number => format!("{number}, not those that ADD makes"),
    };
    Some(Difference::new(format!("rules of chain {chain}"), what, seen))
}

/// Whether rules that were found do what the wanted ones do, in their order, and
/// there are no others.
pub fn are_those<'a>(found: impl IntoIterator<Item = &'a Rule>, wanted: &[Rule]) -> bool {
    let mut found = found.into_iter();
    let mut is_next = |wanted: &Rule| found.next().is_some_and(|one| one.is_equivalent(wanted));
    wanted.iter().all(&mut is_next) && found.next().is_none()
}

/// Whether packets enter a chain at its hook, and it holds these rules and no
/// others.
///
/// # Errors
/// When the kernel refuses to tell.
pub fn compare_entry(
    socket: &mut NftSocket,
    wanted: &Chain,
    rules: &[Rule],
    what: &str,
) -> Result<Option<Difference>, NetlinkError> {
    let object = format!("chain {}", wanted.id());
    Ok(match Found::look(socket, wanted)? {
        Found::Nowhere => Some(Difference::missing(object)),
        Found::Elsewhere(found) => Some(Difference::new(object, place(wanted.base), place(found))),
        Found::InPlace(found) => difference(wanted.id(), &found, rules, what),
    })
}

/// Where packets enter a chain, for people.
fn place(base: Option<BaseChain>) -> String {
    base.map_or_else(
        || "no hook".to_owned(),
        |base| {
            format!("type {} at {:?}, priority {}", base.kind.as_str(), base.hook, base.priority)
        },
    )
}
