//! Garbage collection: masquerade whose attachment is gone.

use std::collections::BTreeMap;

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::NftSocket;
use podwire_plugin::{Belongs, Collection, Difference, Made, OwnerMark, Plan, Resource, Valid};
use podwire_spec::error::Error;

use super::layout::Layout;
use super::{push_owner, takeover};
use crate::kernel::{Kernel, refused};
use crate::nft::{owners, retrying, transaction};

/// All masquerade on the host that carries an owner: ours, and that of both
/// backends of the Go plugins.
///
/// The Go plugins' iptables chains name the container only, so one goes when
/// no interface of its container is alive on the network.
#[derive(Debug, Clone, Copy, Default)]
pub struct Masquerades;

impl Collection<Kernel> for Masquerades {
    fn describe(&self) -> String {
        "masquerade".to_owned()
    }

    fn stale(&self, kernel: &mut Kernel, valid: &Valid) -> Result<Plan<Kernel>, Error> {
        let mut plan = stale(kernel.nft()?, valid).map_err(refused)?;
        for (chain, container) in takeover::xtables_chains(valid.network().as_str())? {
            if !valid.holds_container(&container) {
                plan.push(Box::new(Stale::XtablesChain(chain, container)));
            }
        }
        Ok(plan)
    }
}

fn stale(socket: &mut NftSocket, valid: &Valid) -> Result<Plan<Kernel>, NetlinkError> {
    let mut plan: Plan<Kernel> = Vec::new();
    let mut names = BTreeMap::new();
    for layout in Layout::ALL {
        for mark in owners::all(socket, layout.table())? {
            if valid.is_stale(&mark) {
                let record = owners::read(socket, layout.table(), &mark)?;
                let name = record.and_then(|record| record.words.into_iter().next());
                names.insert(mark, name.unwrap_or_else(|| mark.to_string()));
            }
        }
    }
    for mark in takeover::marks(socket)? {
        if valid.is_stale(&mark) {
            names.entry(mark).or_insert_with(|| mark.to_string());
        }
    }
    for (mark, name) in names {
        plan.push(Box::new(Stale::Owner(mark, name)));
    }
    for (chain, container) in takeover::chains(socket, valid.network().as_str())? {
        if !valid.holds_container(&container) {
            plan.push(Box::new(Stale::Chain(chain, container)));
        }
    }
    Ok(plan)
}

/// What is left of an attachment that is gone.
enum Stale {
    /// Everything with this mark, and a name for people.
    Owner(OwnerMark, String),
    /// A chain of the Go plugins' iptables backend, and its container.
    Chain(String, String),
    /// The same in legacy xtables.
    XtablesChain(String, String),
}

impl Resource<Kernel> for Stale {
    fn describe(&self) -> String {
        match self {
            Self::Owner(_, name) => format!("masquerade of {name}"),
            Self::Chain(chain, container) | Self::XtablesChain(chain, container) => {
                format!("iptables chain {chain} of container {container}")
            }
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
        if let Self::XtablesChain(chain, _) = self {
            return takeover::remove_xtables_chain(chain);
        }
        let socket = kernel.nft()?;
        retrying(|| {
            transaction(socket, |socket, batch| match self {
                Self::Owner(mark, _) => push_owner(socket, batch, mark),
                Self::Chain(chain, _) | Self::XtablesChain(chain, _) => {
                    takeover::push_chain(socket, batch, chain, &[])
                }
            })
        })
    }
}
