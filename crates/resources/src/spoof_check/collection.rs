//! Garbage collection: spoof checks whose attachment is gone.

use std::collections::BTreeSet;

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::NftSocket;
use podwire_plugin::{Belongs, Collection, Difference, Made, OwnerMark, Plan, Resource, Valid};
use podwire_spec::error::Error;

use super::departure::push_owner;
use super::{layout, takeover};
use crate::kernel::{Kernel, refused};
use crate::nft::{owners, retrying, transaction};

/// All spoof checks on the host that carry an owner, and those of the Go
/// plugins that provably serve nobody.
///
/// The latter name no network, so an attachment of another network may own
/// one. What proves it idle: it is no live attachment's of this network, its
/// jump rule names host interfaces, and none of these exists. Without a jump
/// rule it stays: an ADD of a Go plugin may be at work.
#[derive(Debug, Clone, Copy, Default)]
pub struct SpoofChecks;

impl Collection<Kernel> for SpoofChecks {
    fn describe(&self) -> String {
        "spoof checks".to_owned()
    }

    fn stale(&self, kernel: &mut Kernel, valid: &Valid) -> Result<Plan<Kernel>, Error> {
        let mut plan: Plan<Kernel> = Vec::new();
        for (mark, name) in stale_owners(kernel.nft()?, valid).map_err(refused)? {
            plan.push(Box::new(Stale::Owner(mark, name)));
        }
        let live: BTreeSet<_> = valid
            .attachments()
            .map(|(container, ifname)| takeover::chain_name(container, ifname))
            .collect();
        for (chain, interfaces) in takeover::chains(kernel.nft()?).map_err(refused)? {
            if !live.contains(&chain) && are_gone(kernel, &chain, &interfaces)? {
                plan.push(Box::new(Stale::Chain(chain)));
            }
        }
        Ok(plan)
    }
}

fn stale_owners(
    socket: &mut NftSocket,
    valid: &Valid,
) -> Result<Vec<(OwnerMark, String)>, NetlinkError> {
    let mut stale = Vec::new();
    for mark in owners::all(socket, layout::TABLE_ID)? {
        if valid.is_stale(&mark) {
            let record = owners::read(socket, layout::TABLE_ID, &mark)?;
            let name = record.and_then(|record| record.words.into_iter().next());
            stale.push((mark, name.unwrap_or_else(|| mark.to_string())));
        }
    }
    Ok(stale)
}

/// Whether there are interfaces to look at, and none of them exists.
fn are_gone(
    kernel: &mut Kernel,
    chain: &str,
    interfaces: &BTreeSet<String>,
) -> Result<bool, Error> {
    for interface in interfaces {
        if kernel.host()?.link_by_name(interface).map_err(refused)?.is_some() {
            return Ok(false);
        }
    }
    if interfaces.is_empty() {
        log::info!("chain {chain} in bridge nat stays: nothing tells whose it is");
    }
    Ok(!interfaces.is_empty())
}

/// What is left of an attachment that is gone.
enum Stale {
    /// Everything with this mark, and a name for people.
    Owner(OwnerMark, String),
    /// A chain of the Go plugins.
    Chain(String),
}

impl Resource<Kernel> for Stale {
    fn describe(&self) -> String {
        match self {
            Self::Owner(_, name) => format!("spoof check of {name}"),
            Self::Chain(chain) => format!("chain {chain} in bridge nat"),
        }
    }

    fn belongs(&self) -> Belongs {
        Belongs::Attachment
    }

    fn make(&mut self, _kernel: &mut Kernel) -> Result<Made, Error> {
        Ok(Made::Found)
    }

    fn check(&self, _kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        Ok(Vec::new())
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        let socket = kernel.nft()?;
        retrying(|| {
            transaction(socket, |socket, batch| match self {
                Self::Owner(mark, _) => push_owner(socket, batch, mark),
                Self::Chain(chain) => takeover::push_chain(socket, batch, chain),
            })
        })
    }
}
