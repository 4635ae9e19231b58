//! Spoof check: a container sends from its own MAC address only (bridge's
//! `macspoofchk`).
//!
//! # What stands in the kernel
//!
//! One table, the same for all networks:
//!
//! ```text
//! table bridge podwire_spoof_check {
//!     map guarded { type ifname : verdict             # one element a port
//!         elements = { "veth0a1b2c3d" comment "<mark> n1/c1/eth0" : goto check_source } }
//!     set allowed { type ifname . ether_addr          # one element a port
//!         elements = { "veth0a1b2c3d" . 0a:58:0a:01:00:02 comment "<mark> n1/c1/eth0" } }
//!     set owners { type ipv6_addr . mark }            # mark -> port and address, in the comment
//!     chain prerouting {
//!         type filter hook prerouting priority dstnat
//!         iifname vmap @guarded
//!     }
//!     chain check_source { iifname . ether saddr @allowed return; drop }
//! }
//! ```
//!
//! A frame costs two lookups, however many ports and foreign rules there are;
//! ADD and DEL are one transaction each that looks at nothing but the
//! attachment's own elements. When the last port goes, the rules and the
//! chain they lead to go with it; the table, its entry chain and sets stay,
//! empty.
//!
//! The check belongs to the attachment by its mark. An element is deleted
//! only if it carries the mark of the owner that asks: the name of the port
//! may have gone on to another.
//!
//! The chains that the Go plugins made in `bridge nat` for the same
//! attachment go with DEL, and satisfy CHECK. They name container and
//! interface but no network, so garbage collection takes one only with proof
//! that it serves nobody: it isn't a live attachment's of the network that is
//! collected, and no host interface that its rules name exists any more.

mod collection;
mod departure;
mod layout;
mod takeover;
mod verify;

use podwire_netlink::nft::{Batch, NftSocket};
use podwire_netlink::route::MacAddress;
use podwire_plugin::{Belongs, Difference, Made, OwnerMark, Resource};
use podwire_spec::error::Error;
use podwire_spec::id::AttachmentKey;

pub use collection::SpoofChecks;
pub use layout::TABLE;

use crate::host_end::host_end_of;
use crate::kernel::{Kernel, refused};
use crate::nft::{display_name, owner_comment, owners, retrying, transaction};
use departure::{Departure, push_owner};

/// The port that is guarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// The host end's name.
    pub interface: String,
    /// The container end's address.
    pub mac: MacAddress,
}

/// The spoof check of one attachment.
#[derive(Debug, Clone)]
pub struct SpoofCheck {
    owner: OwnerMark,
    key: AttachmentKey,
}

impl SpoofCheck {
    /// The check of an attachment whose interface is one end of a veth pair.
    /// Which port and address it is about is asked of the kernel on ADD and
    /// CHECK, so the pair must be made before; DEL goes by the owner.
    pub fn new(owner: OwnerMark, key: &AttachmentKey) -> Self {
        Self { owner, key: key.clone() }
    }

    /// The host end's name and the container end's address, as they are now;
    /// `None` if there is no pair with a host end.
    fn port(&self, kernel: &mut Kernel) -> Result<Option<Port>, Error> {
        let ifname = self.key.ifname.as_str();
        if let Some(pair) = kernel.made_pair(ifname) {
            return Ok(Some(Port { interface: pair.host.name.clone(), mac: pair.mac }));
        }
        let inside = kernel.container()?.link_by_name(ifname).map_err(refused)?;
        let Some(inside) = inside else { return Ok(None) };
        let host = host_end_of(kernel, &inside)?;
        let port = host.zip(inside.mac).map(|(host, mac)| Port { interface: host.name, mac });
        Ok(port)
    }

    /// Adds the attachment's elements to a batch.
    fn push(&self, batch: &mut Batch, port: &Port) {
        let comment = owner_comment(&self.key);
        let guarded =
            layout::guarded(&port.interface).with_verdict(layout::guard()).with_comment(&comment);
        let allowed = layout::allowed(&port.interface, port.mac).with_comment(&comment);
        batch.create_elements(layout::GUARDED, [&guarded]);
        batch.create_elements(layout::ALLOWED, [&allowed]);
        let mut words = vec![display_name(&self.key)];
        words.extend(port.words());
        batch.create_elements(layout::OWNERS, &owners::entries(&self.owner, &words));
    }

    /// Guards a port.
    fn guard(&self, socket: &mut NftSocket, port: &Port) -> Result<(), Error> {
        retrying(|| {
            transaction(socket, |socket, batch| {
                let mut departure = Departure::default();
                departure.owner(socket, &self.owner)?;
                departure.displace(socket, port)?;
                departure.delete(batch);
                layout::declare(batch, verify::chains(socket)?);
                self.push(batch, port);
                Ok(())
            })
        })
    }

    /// Removes the check by its owner, and what the Go plugins made for the
    /// same attachment.
    fn release(&self, socket: &mut NftSocket) -> Result<(), Error> {
        let (container, ifname) = (self.key.container_id.as_str(), self.key.ifname.as_str());
        let chain = takeover::chain_name(container, ifname);
        retrying(|| {
            transaction(socket, |socket, batch| {
                push_owner(socket, batch, &self.owner)?;
                takeover::push_chain(socket, batch, &chain)
            })
        })
    }
}

impl Resource<Kernel> for SpoofCheck {
    fn describe(&self) -> String {
        format!("spoof check of {}", display_name(&self.key))
    }

    fn belongs(&self) -> Belongs {
        Belongs::Attachment
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let port = self.port(kernel)?.ok_or_else(|| {
            Error::internal(format!(
                "interface {} of the container is no end of a pair whose other end is on the host",
                self.key.ifname
            ))
            .with_details("macspoofchk checks frames at the host's end")
        })?;
        self.guard(kernel.nft()?, &port)?;
        Ok(Made::Created)
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        match self.port(kernel)? {
            Some(port) => verify::differences(self, kernel.nft()?, &port).map_err(refused),
            None => Ok(vec![Difference::missing(format!(
                "host end of {} for the spoof check",
                self.key.ifname
            ))]),
        }
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        self.release(kernel.nft()?)
    }
}
