//! Masquerade: what a container sends out of its subnet carries the host's
//! address.
//!
//! # What stands in the kernel
//!
//! One table for IPv4, one for IPv6, the same for all networks:
//!
//! ```text
//! table ip podwire_masquerade {
//!     map sources { type ipv4_addr : verdict          # one element for each address
//!         elements = { 10.1.0.2 comment "<mark> n1/c1/eth0" : goto leaving_10.1.0.0_24 } }
//!     set owners { type ipv6_addr . mark }            # mark -> the addresses, in the comment
//!     chain postrouting {
//!         type nat hook postrouting priority srcnat
//!         ip daddr 224.0.0.0/4 return
//!         ip saddr vmap @sources
//!     }
//!     chain leaving_10.1.0.0_24 { ip daddr 10.1.0.0/24 return; masquerade }   # one a subnet
//! }
//! ```
//!
//! A packet costs one lookup, however many containers there are. ADD and DEL
//! are one transaction each; ADD mends rules that aren't as they must be, and
//! DEL takes away what the last container of a subnet, and of the host, no
//! longer needs. Then the table, its entry chain, map and set
//! stay, all empty: taking them away too would register and unregister a
//! hook with every container on a host that runs one at a time.
//!
//! # Whose it is
//!
//! An address may have gone on to another container when the late DEL of the
//! first one comes. So an element is deleted only if its comment carries the
//! mark of the owner that asks, looked up under the generation of the tables
//! that the transaction requires. An ADD of an address that another owner
//! still holds takes it over: IPAM decides whose an address is.
//!
//! # The two backends of the Go plugins
//!
//! `ipMasqBackend` says `iptables` or `nftables`; both names are accepted and
//! both are served by the tables above, without running either program. What
//! the Go plugins made for the same attachment in either backend goes with
//! DEL and GC, and satisfies CHECK. Their chain of the iptables backend is
//! keyed by network and container without the interface: DEL with known
//! addresses takes only the jumps of these, and the chain with the last jump.

mod collection;
mod departure;
mod layout;
mod takeover;
mod trial;
mod verify;

use std::collections::BTreeSet;

use ipnet::IpNet;
use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{Batch, NftSocket};
use podwire_plugin::{Belongs, Difference, Made, OwnerMark, Resource};
use podwire_spec::error::Error;
use podwire_spec::id::AttachmentKey;

pub use collection::Masquerades;
pub use layout::TABLE;
pub use trial::available;

use crate::kernel::Kernel;
use crate::nft::{display_name, owners, retrying, transaction};
use departure::Departure;
use layout::Layout;

/// The value of `ipMasqBackend`. All are served alike; the names are checked
/// because a wrong one is a mistake that should be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// The key is absent.
    Unspecified,
    /// `iptables`
    Iptables,
    /// `nftables`
    Nftables,
}

impl Backend {
    /// Reads the key's value.
    ///
    /// # Errors
    /// Code 7: a name that isn't one of the two.
    pub fn parse(name: Option<&str>) -> Result<Self, Error> {
        match name {
            None => Ok(Self::Unspecified),
            Some("iptables") => Ok(Self::Iptables),
            Some("nftables") => Ok(Self::Nftables),
            Some(other) => Err(Error::config(format!("unknown ipmasq backend {other:?}"))
                .with_details(
                    "set ipMasqBackend to \"iptables\" or \"nftables\", or leave it out",
                )),
        }
    }
}

/// The masquerade of one attachment's addresses.
#[derive(Debug, Clone)]
pub struct Masquerade {
    owner: OwnerMark,
    key: AttachmentKey,
    addresses: Vec<IpNet>,
}

impl Masquerade {
    /// Masquerade of these addresses, each with the length of its subnet's
    /// prefix. DEL needs none: it goes by the owner. Those it gives narrow
    /// what is removed of the Go plugins' shared chain (see the module).
    pub fn new(owner: OwnerMark, key: &AttachmentKey, addresses: Vec<IpNet>) -> Self {
        Self { owner, key: key.clone(), addresses }
    }

    /// The addresses of one IP version, by layout.
    fn addresses(&self, layout: Layout) -> impl Iterator<Item = IpNet> {
        self.addresses.iter().copied().filter(move |address| layout.holds(address.addr()))
    }

    /// Adds what ADD makes of one IP version to a batch, and the removal of
    /// what is in its way.
    fn push(
        &self,
        socket: &mut NftSocket,
        batch: &mut Batch,
        layout: Layout,
    ) -> Result<(), NetlinkError> {
        let addresses: BTreeSet<_> = self.addresses(layout).collect();
        let subnets: BTreeSet<_> = addresses.iter().map(IpNet::trunc).collect();
        let mut departure = Departure::new(layout);
        departure.displace(socket, &self.owner, &addresses)?;
        departure.push(socket, batch, &subnets)?;
        if addresses.is_empty() {
            return Ok(());
        }
        layout.declare(batch, &verify::wrong_rules(socket, layout, &subnets)?);
        let elements: Vec<_> =
            addresses.iter().map(|address| layout::element(&self.key, *address)).collect();
        batch.create_elements(layout.sources(), &elements);
        let mut words = vec![display_name(&self.key)];
        words.extend(addresses.iter().map(|address| address.addr().to_string()));
        let entries = owners::entries(&self.owner, &words);
        batch.create_elements(layout.table().set(owners::NAME), &entries);
        Ok(())
    }

    fn write(&self, socket: &mut NftSocket) -> Result<(), Error> {
        retrying(|| {
            transaction(socket, |socket, batch| {
                for layout in Layout::ALL {
                    self.push(socket, batch, layout)?;
                }
                Ok(())
            })
        })
    }

    fn erase(&self, socket: &mut NftSocket) -> Result<(), Error> {
        let chain = takeover::chain_name(self.key.network.as_str(), self.key.container_id.as_str());
        retrying(|| {
            transaction(socket, |socket, batch| {
                push_owner(socket, batch, &self.owner)?;
                takeover::push_chain(socket, batch, &chain, &self.addresses)
            })
        })?;
        takeover::remove_xtables_chain(&chain)
    }
}

impl Resource<Kernel> for Masquerade {
    fn describe(&self) -> String {
        if self.addresses.is_empty() {
            return format!("masquerade of {}", display_name(&self.key));
        }
        let addresses: Vec<_> =
            self.addresses.iter().map(|address| address.addr().to_string()).collect();
        format!("masquerade of {}", addresses.join(", "))
    }

    fn belongs(&self) -> Belongs {
        Belongs::Attachment
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        if self.addresses.is_empty() {
            return Ok(Made::Found);
        }
        self.write(kernel.nft()?)?;
        Ok(Made::Created)
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        verify::differences(self, kernel.nft()?)
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        self.erase(kernel.nft()?)
    }
}

/// Adds the removal of an owner's objects to a batch: ours, and what the Go
/// plugins' nftables backend marked the same way.
fn push_owner(
    socket: &mut NftSocket,
    batch: &mut Batch,
    mark: &OwnerMark,
) -> Result<(), NetlinkError> {
    for layout in Layout::ALL {
        let mut departure = Departure::new(layout);
        departure.owner(socket, mark)?;
        departure.push(socket, batch, &BTreeSet::new())?;
    }
    takeover::push_rules(socket, batch, mark)
}

#[cfg(test)]
mod tests {
    use super::*;
    use podwire_spec::id::{ContainerId, IfName, NetworkName};

    pub(super) fn key() -> AttachmentKey {
        AttachmentKey {
            network: NetworkName::parse("n1").unwrap(),
            container_id: ContainerId::parse("c1").unwrap(),
            ifname: IfName::parse("eth0").unwrap(),
        }
    }

    #[test]
    fn both_backends_and_no_backend_are_served() {
        assert_eq!(Backend::parse(None), Ok(Backend::Unspecified));
        assert_eq!(Backend::parse(Some("iptables")), Ok(Backend::Iptables));
        assert_eq!(Backend::parse(Some("nftables")), Ok(Backend::Nftables));
    }

    #[test]
    fn another_backend_is_refused_by_name() {
        let error = Backend::parse(Some("ipfw")).unwrap_err();
        assert_eq!(error.code.number(), 7);
        assert_eq!(error.msg, "unknown ipmasq backend \"ipfw\"");
        assert!(Backend::parse(Some("")).is_err());
    }
}
