//! The host end of a pair: how it is named, marked and found again.
//!
//! It carries its owner twice: in its alias, and from birth in its name and
//! MAC address, which both are derived from the owner mark. So there is no
//! instant at which a crash leaves an end that can't be found again.

use podwire_netlink::route::{Link, MacAddress};
use podwire_plugin::{Belongs, Collection, Difference, Made, OwnerMark, Plan, Resource, Valid};
use podwire_spec::error::Error;
use podwire_spec::id::{AttachmentKey, NetworkName};

use crate::kernel::{Kernel, delete, refused};

/// Names tried for a host end before a collision is an error. DEL looks at
/// all of them, since an earlier one may have become free.
pub(crate) const CANDIDATES: u32 = 8;

/// `IFALIASZ` less the NUL (linux/if.h).
const ALIAS_LIMIT: usize = 255;

/// The host end's name of a mark.
pub(crate) fn host_name(owner: &OwnerMark, candidate: u32) -> String {
    owner.short_name("veth", candidate)
}

/// The host end's MAC address: the second proof of whose it is, there from
/// the first instant.
pub(crate) fn host_mac(owner: &OwnerMark, candidate: u32) -> MacAddress {
    let mut octets = [0; 6];
    let from = owner.attachment.iter().zip(owner.network);
    for (octet, (one, other)) in octets.iter_mut().zip(from) {
        *octet = one ^ other;
    }
    let [first, .., last] = &mut octets;
    *first = (*first & 0xfe) | 2;
    *last = last.wrapping_add(candidate.to_le_bytes()[0]);
    MacAddress(octets)
}

/// `podwire:<network>:<container id>:<interface>`, or the mark where that is
/// too long.
pub fn alias(key: &AttachmentKey, owner: &OwnerMark) -> String {
    let text = format!("podwire:{}:{}:{}", key.network, key.container_id, key.ifname);
    if text.len() <= ALIAS_LIMIT { text } else { format!("podwire:{owner}") }
}

/// Whose link an alias says it is.
pub fn owner_of_alias(alias: &str) -> Option<OwnerMark> {
    let text = alias.strip_prefix("podwire:")?;
    if let Some(mark) = OwnerMark::from_comment(text).filter(|_| !text.contains(':')) {
        return Some(mark);
    }
    let mut parts = text.split(':');
    let network = NetworkName::parse(parts.next()?).ok()?;
    let (container, ifname) = (parts.next()?, parts.next()?);
    parts.next().is_none().then(|| OwnerMark::new(&network, container, ifname))
}

/// Whether a link is provably the host end of this owner: its alias says so,
/// or it has none yet and both name and MAC address are the derived ones.
pub(crate) fn is_ours(link: &Link, owner: &OwnerMark, key: Option<&AttachmentKey>) -> bool {
    if !link.is_veth() {
        return false;
    }
    match &link.alias {
        Some(text) => {
            key.is_some_and(|key| *text == alias(key, owner))
                || owner_of_alias(text).as_ref() == Some(owner)
        }
        None => (0..CANDIDATES).any(|candidate| {
            link.name == host_name(owner, candidate) && link.mac == Some(host_mac(owner, candidate))
        }),
    }
}

/// The host end of an owner, under any of its candidate names.
///
/// # Errors
/// The kernel refused to tell.
pub fn find_by_owner(
    kernel: &mut Kernel,
    owner: &OwnerMark,
    key: Option<&AttachmentKey>,
) -> Result<Option<Link>, Error> {
    for candidate in 0..CANDIDATES {
        let link = kernel.host()?.link_by_name(&host_name(owner, candidate)).map_err(refused)?;
        if let Some(link) = link.filter(|link| is_ours(link, owner, key)) {
            return Ok(Some(link));
        }
    }
    Ok(None)
}

/// The host end of a container's interface, if that is a veth whose peer
/// lives in the host's namespace.
///
/// # Errors
/// The kernel refused to tell.
pub fn host_end_of(kernel: &mut Kernel, inside: &Link) -> Result<Option<Link>, Error> {
    let Some(index) = inside.parent.filter(|_| inside.is_veth()) else { return Ok(None) };
    let host = kernel.host()?.link_by_index(index).map_err(refused)?;
    // Indexes repeat between namespaces: the peer must point back.
    Ok(host.filter(|host| host.is_veth() && host.parent == Some(inside.index)))
}

/// Host ends on this host, found by their alias.
pub struct HostEnds;

/// A host end that no live attachment owns.
struct Stale(Link);

impl Collection<Kernel> for HostEnds {
    fn describe(&self) -> String {
        "host interfaces".to_owned()
    }

    fn stale(&self, kernel: &mut Kernel, valid: &Valid) -> Result<Plan<Kernel>, Error> {
        let links = kernel.host()?.links_of_kind("veth").map_err(refused)?;
        let stale = links.into_iter().filter(|link| {
            let owner = link.alias.as_deref().and_then(owner_of_alias);
            owner.is_some_and(|owner| valid.is_stale(&owner))
        });
        Ok(stale.map(|link| Box::new(Stale(link)) as Box<dyn Resource<Kernel>>).collect())
    }
}

impl Resource<Kernel> for Stale {
    fn describe(&self) -> String {
        format!("host interface {}", self.0.name)
    }

    fn belongs(&self) -> Belongs {
        Belongs::AttachmentAddress
    }

    fn make(&mut self, _: &mut Kernel) -> Result<Made, Error> {
        Ok(Made::Found)
    }

    fn check(&self, _: &mut Kernel) -> Result<Vec<Difference>, Error> {
        Ok(Vec::new())
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        delete(kernel, &self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podwire_spec::id::{ContainerId, IfName};

    fn key(network: &str, container: &str) -> AttachmentKey {
        AttachmentKey {
            network: NetworkName::parse(network).unwrap(),
            container_id: ContainerId::parse(container).unwrap(),
            ifname: IfName::parse("eth0").unwrap(),
        }
    }

    #[test]
    fn an_alias_tells_the_owner() {
        for id in ["c1".to_owned(), "x".repeat(300)] {
            let key = key("pods", &id);
            let owner = OwnerMark::of(&key);
            let text = alias(&key, &owner);
            assert!(text.len() <= ALIAS_LIMIT);
            assert_eq!(owner_of_alias(&text), Some(owner), "{text}");
        }
        for foreign in ["", "uplink", "podwire:", "podwire:a:b", "podwire:a:b:c:d", "podwire:-:b:c"]
        {
            assert_eq!(owner_of_alias(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn derived_addresses_are_local_unicast_and_differ() {
        let owner = OwnerMark::of(&key("pods", "c1"));
        let macs: Vec<_> = (0..CANDIDATES).map(|n| host_mac(&owner, n)).collect();
        assert!(macs.iter().all(|mac| mac.is_local() && !mac.is_multicast()));
        assert_ne!(macs[0], macs[1]);
        assert_ne!(macs[0], host_mac(&OwnerMark::of(&key("pods", "c2")), 0));
    }
}
