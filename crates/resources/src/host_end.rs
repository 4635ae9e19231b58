//! The host end of a pair: how it is named, marked and found again.
//!
//! It carries its owner twice: in its alias, and from birth in its name and
//! MAC address, which both are derived from the owner mark. So there is no
//! instant at which a crash leaves an end that can't be found again.

use podwire_netlink::route::{Link, MacAddress};
use podwire_plugin::{
    Belongs, Collection, Difference, Made, OwnerMark, Plan, Resource, Valid, shorten,
};
use podwire_spec::error::Error;
use podwire_spec::id::{AttachmentKey, NetworkName};

use crate::kernel::{Kernel, delete, refused};

/// Names tried for a host end before a collision is an error. DEL looks at
/// all of them, since an earlier one may have become free.
pub(crate) const CANDIDATES: u32 = 8;

/// How all names of host ends begin.
const PREFIX: &str = "veth";

/// `IFALIASZ` less the NUL (linux/if.h).
const ALIAS_LIMIT: usize = 255;

/// The host end's name of a mark.
pub(crate) fn host_name(owner: &OwnerMark, candidate: u32) -> String {
    owner.short_name(PREFIX, candidate)
}

/// The host end's MAC address: the second proof of whose it is, there from
/// the first instant. Four octets follow from network and name, so that garbage
/// collection, which knows no container id, sees whose network it is; two
/// from the attachment.
pub(crate) fn host_mac(owner: &OwnerMark, name: &str) -> MacAddress {
    let [first, second, third, fourth] = network_proof(owner.network, name);
    let [fifth, sixth, ..] = owner.attachment;
    MacAddress([first, second, third, fourth, fifth, sixth])
}

/// The part of the address that follows from a network's half of the mark and
/// the link's name; local and unicast.
pub(crate) fn network_proof(network: [u8; 8], name: &str) -> [u8; 4] {
    let network = u64::from_be_bytes(network);
    let digits = shorten(&[&format!("{network:016x}"), name], 8);
    let mut octets = u32::from_str_radix(&digits, 16).unwrap_or_default().to_be_bytes();
    let [first, ..] = &mut octets;
    *first = (*first & 0xfe) | 2;
    octets
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
        None => is_derived(&link.name, link.mac, owner),
    }
}

/// Whether name and MAC address are those of this owner's host end.
fn is_derived(name: &str, mac: Option<MacAddress>, owner: &OwnerMark) -> bool {
    mac == Some(host_mac(owner, name))
        && (0..CANDIDATES).any(|candidate| name == host_name(owner, candidate))
}

/// Whether a name is of the form that host ends have, ours and the Go plugins'.
fn is_host_name(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|digits| {
        digits.len() == 8 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

/// Whether name and MAC address prove that a link is a host end of this network.
fn is_of_network(name: &str, mac: Option<MacAddress>, valid: &Valid) -> bool {
    let proof = network_proof(OwnerMark::network_half(valid.network()), name);
    is_host_name(name) && mac.is_some_and(|mac| mac.0.starts_with(&proof))
}

/// Whether name and MAC address prove that a link is the host end of some
/// attachment of this network, but of none that is alive: what a kill between
/// making the pair and writing its alias leaves.
fn is_stale_without_alias(name: &str, mac: Option<MacAddress>, valid: &Valid) -> bool {
    let network = valid.network();
    is_of_network(name, mac, valid)
        && !valid.attachments().any(|(container, ifname)| {
            is_derived(name, mac, &OwnerMark::new(network, container, ifname))
        })
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

/// The host end of an owner that somebody has renamed: by its alias, among
/// all pairs of the host. Dear on a host with many, so for the last resort.
///
/// # Errors
/// The kernel refused to tell.
pub(crate) fn find_renamed(
    kernel: &mut Kernel,
    owner: &OwnerMark,
    key: &AttachmentKey,
) -> Result<Option<Link>, Error> {
    let links = kernel.host()?.links_of_kind("veth").map_err(refused)?;
    Ok(links.into_iter().find(|link| is_ours(link, owner, Some(key))))
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

/// Host ends on this host, found by their alias, or by name and MAC address.
pub struct HostEnds {
    /// The network's bridge, if it has one: its ports that look like host ends, but
    /// have neither proof, are reported. They are the Go plugins', and whose, nothing
    /// tells.
    pub bridge: Option<String>,
}

/// A host end that no live attachment owns.
struct Stale(Link);

impl Collection<Kernel> for HostEnds {
    fn describe(&self) -> String {
        "host interfaces".to_owned()
    }

    fn stale(&self, kernel: &mut Kernel, valid: &Valid) -> Result<Plan<Kernel>, Error> {
        let links = kernel.host()?.links_of_kind("veth").map_err(refused)?;
        self.report(kernel, &links, valid)?;
        let stale = links.into_iter().filter(|link| match &link.alias {
            Some(alias) => owner_of_alias(alias).is_some_and(|owner| valid.is_stale(&owner)),
            None => is_stale_without_alias(&link.name, link.mac, valid),
        });
        Ok(stale.map(|link| Box::new(Stale(link)) as Box<dyn Resource<Kernel>>).collect())
    }
}

impl HostEnds {
    fn report(&self, kernel: &mut Kernel, links: &[Link], valid: &Valid) -> Result<(), Error> {
        let Some(name) = &self.bridge else { return Ok(()) };
        let Some(bridge) = kernel.host()?.link_by_name(name).map_err(refused)? else {
            return Ok(());
        };
        let is_unowned = |link: &&Link| {
            link.master == Some(bridge.index)
                && link.alias.is_none()
                && is_host_name(&link.name)
                && !is_of_network(&link.name, link.mac, valid)
        };
        let count = links.iter().filter(is_unowned).count();
        if count > 0 {
            log::info!(
                "{count} interfaces on {name} name no owner and stay: another plugin made them, \
                 and they go with their containers' namespaces"
            );
        }
        Ok(())
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
        let names: Vec<_> = (0..CANDIDATES).map(|number| host_name(&owner, number)).collect();
        let macs: Vec<_> = names.iter().map(|name| host_mac(&owner, name)).collect();
        assert!(macs.iter().all(|mac| mac.is_local() && !mac.is_multicast()));
        assert_ne!(macs[0], macs[1]);
        let other = OwnerMark::of(&key("pods", "c2"));
        assert_ne!(macs[0], host_mac(&other, &host_name(&other, 0)));
    }

    #[test]
    fn without_an_alias_name_and_address_tell_the_network() {
        let owner = OwnerMark::of(&key("pods", "c1"));
        let name = host_name(&owner, 1);
        let mac = Some(host_mac(&owner, &name));
        let valid = |network: &str, containers: &[&str]| {
            let network = NetworkName::parse(network).unwrap();
            Valid::new(&network, containers.iter().map(|container| (*container, "eth0")))
        };
        assert!(is_stale_without_alias(&name, mac, &valid("pods", &[])));
        assert!(is_stale_without_alias(&name, mac, &valid("pods", &["c2"])));
        // Alive, of another network, under another name, with another address.
        assert!(!is_stale_without_alias(&name, mac, &valid("pods", &["c2", "c1"])));
        assert!(!is_stale_without_alias(&name, mac, &valid("other", &[])));
        assert!(!is_stale_without_alias("veth12345678", mac, &valid("pods", &[])));
        let random = Some(MacAddress([0x0a, 1, 2, 3, 4, 5]));
        assert!(!is_stale_without_alias(&name, random, &valid("pods", &[])));
        assert!(!is_stale_without_alias(&name, None, &valid("pods", &[])));
    }
}
