//! The link that shapes what comes from a container: how it is named, marked
//! and found again.
//!
//! As host ends, it carries its owner in its alias, and from birth in its name
//! and MAC address. The interface's name is part of the owner, so that two
//! interfaces of a container don't share it, as those of the Go plugin do.

use podwire_netlink::route::link_change::ChangeLink;
use podwire_netlink::route::link_kind::LinkKind;
use podwire_netlink::route::link_new::{End, NewKind, NewLink};
use podwire_netlink::route::{Link, MacAddress};
use podwire_plugin::{OwnerMark, Valid};
use podwire_spec::error::Error;
use podwire_spec::id::AttachmentKey;

use crate::host_end::{CANDIDATES, alias, host_mac, network_proof, owner_of_alias};
use crate::kernel::{Kernel, delete, refused};

/// How the names of ours and of the Go plugin's begin.
pub(super) const PREFIX: &str = "bwp";

/// Packets that may wait where a filter leaves them without a class.
const QUEUE: u32 = 1000;

fn name(owner: &OwnerMark, candidate: u32) -> String {
    owner.short_name(PREFIX, candidate)
}

pub(super) fn is_ifb(link: &Link) -> bool {
    matches!(link.kind, Some(LinkKind::Ifb))
}

/// Whether it is provably this owner's.
pub(super) fn is_ours(link: &Link, owner: &OwnerMark) -> bool {
    let is_derived = || link.mac == Some(host_mac(owner, &link.name));
    let is_owned = match &link.alias {
        Some(text) => owner_of_alias(text).as_ref() == Some(owner),
        None => is_derived(),
    };
    is_ifb(link) && is_owned
}

/// All of an owner's: one, unless somebody else took a name in between.
pub(super) fn owned(kernel: &mut Kernel, owner: &OwnerMark) -> Result<Vec<Link>, Error> {
    let mut all = Vec::new();
    for candidate in 0..CANDIDATES {
        let link = kernel.host()?.link_by_name(&name(owner, candidate)).map_err(refused)?;
        all.extend(link.filter(|link| is_ours(link, owner)));
    }
    Ok(all)
}

/// Name and MAC address of an attachment's ifb, which must be there.
///
/// # Errors
/// It isn't, or the kernel refused to tell.
pub fn observed(
    kernel: &mut Kernel,
    owner: &OwnerMark,
) -> Result<(String, Option<MacAddress>), Error> {
    let first = owned(kernel, owner)?.into_iter().next();
    let ifb = first.ok_or_else(|| Error::internal("the ifb that was just made is gone"))?;
    Ok((ifb.name, ifb.mac))
}

/// Makes it, up and marked; one of this owner that is left over goes first.
pub(super) fn create(
    kernel: &mut Kernel,
    owner: &OwnerMark,
    key: &AttachmentKey,
    mtu: u32,
) -> Result<Link, Error> {
    let mut taken = String::new();
    for candidate in 0..CANDIDATES {
        let name = name(owner, candidate);
        let end = End::new(&name).mac(host_mac(owner, &name)).mtu(mtu).transmit_queue_length(QUEUE);
        let new = NewLink::new(end, NewKind::Ifb).up();
        let ifb = match kernel.host()?.create_link(&new) {
            Ok(ifb) => ifb,
            Err(error) if error.is_exists() => {
                let there = kernel.host()?.link_by_name(&name).map_err(refused)?;
                match there.filter(|link| is_ours(link, owner)) {
                    // Of an ADD that was killed: no filter leads to it.
                    Some(old) => delete(kernel, &old)?,
                    None => {
                        taken.push(' ');
                        taken.push_str(&name);
                        continue;
                    }
                }
                kernel.host()?.create_link(&new).map_err(refused)?
            }
            Err(error) => return Err(refused(error)),
        };
        let text = alias(key, owner);
        let mark = ChangeLink::new(ifb.device()).alias(&text);
        if let Err(error) = kernel.host()?.apply(&mark) {
            delete(kernel, &ifb)?;
            return Err(refused(error));
        }
        return Ok(ifb);
    }
    Err(Error::internal(format!("all names for the ifb are taken by others:{taken}")))
}

/// Whether it is of an attachment of this network that is no more.
pub(super) fn is_stale(link: &Link, valid: &Valid) -> bool {
    match &link.alias {
        Some(text) => owner_of_alias(text).is_some_and(|owner| valid.is_stale(&owner)),
        None => is_stale_without_alias(link, valid),
    }
}

/// What a kill between making it and writing its alias leaves.
fn is_stale_without_alias(link: &Link, valid: &Valid) -> bool {
    let proof = network_proof(OwnerMark::network_half(valid.network()), &link.name);
    let is_of_network =
        link.name.starts_with(PREFIX) && link.mac.is_some_and(|mac| mac.0.starts_with(&proof));
    is_of_network
        && !valid.attachments().any(|(container, ifname)| {
            is_ours(link, &OwnerMark::new(valid.network(), container, ifname))
        })
}
