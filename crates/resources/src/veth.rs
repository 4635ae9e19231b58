//! The pair of interfaces between the container and the host.
//!
//! The host end carries its owner twice: in its alias, and from birth in its
//! name and MAC address, which both are derived from the owner mark. So there
//! is no instant at which a crash leaves an end that can't be found again.

use podwire_netlink::route::link_change::{ChangeLink, DeleteLink};
use podwire_netlink::route::link_new::{End, NewLink};
use podwire_netlink::route::{Link, MacAddress};
use podwire_plugin::{
    Attachment, Belongs, Collection, Difference, Made, OwnerMark, Plan, Resource, Valid,
};
use podwire_spec::error::Error;
use podwire_spec::id::AttachmentKey;
use podwire_spec::result::CniResult;
use podwire_sys::sysctl;
use std::os::fd::AsFd;

use crate::bridge::random_mac;
use crate::kernel::{Kernel, refused};

/// Names tried for a host end before a collision is an error. DEL looks at
/// all of them, since an earlier one may have become free.
const CANDIDATES: u32 = 8;

/// `IFALIASZ` less the NUL (linux/if.h).
const ALIAS_LIMIT: usize = 255;

/// What a result of an earlier ADD says of the pair.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// The host end's name.
    pub host_name: Option<String>,
    /// The container end's MAC address.
    pub container_mac: Option<String>,
}

impl Recorded {
    /// Finds the pair in a result: the container end by name and a sandbox,
    /// the host end as the first interface without one that isn't `bridge`.
    pub fn from_result(result: &CniResult, ifname: &str, bridge: Option<&str>) -> Self {
        let container = result.interface_in_sandbox(ifname).map(|(_, interface)| interface);
        let host = result.host_interfaces().find(|host| Some(host.name.as_str()) != bridge);
        Self {
            host_name: host.map(|host| host.name.clone()),
            container_mac: container
                .and_then(|found| found.mac.clone())
                .filter(|mac| !mac.is_empty()),
        }
    }
}

/// A veth pair: one end in the container under its final name, the other on
/// the host.
pub struct Veth {
    owner: OwnerMark,
    key: AttachmentKey,
    /// MTU of both ends in bytes; the kernel's default if none.
    pub mtu: Option<u32>,
    /// The container end's MAC address; random if none.
    pub mac: Option<MacAddress>,
    /// What prevResult says.
    pub recorded: Recorded,
}

impl Veth {
    /// The pair of an attachment.
    pub fn new(attachment: &Attachment) -> Self {
        Self {
            owner: attachment.owner,
            key: attachment.key.clone(),
            mtu: None,
            mac: None,
            recorded: Recorded::default(),
        }
    }

    fn ifname(&self) -> &str {
        self.key.ifname.as_str()
    }

    /// Makes the pair under the first free name.
    fn create(&self, kernel: &mut Kernel) -> Result<Link, Error> {
        let netns = kernel
            .sandbox()?
            .try_clone()
            .map_err(|error| Error::io(format!("keeping the network namespace open: {error}")))?;
        let container_mac = match self.mac {
            Some(mac) => mac,
            None => random_mac()?,
        };
        for candidate in 0..CANDIDATES {
            let name = host_name(&self.owner, candidate);
            let mut host_end = End::new(&name).mac(host_mac(&self.owner, candidate));
            let mut container_end =
                End::new(self.ifname()).mac(container_mac).namespace(netns.as_fd());
            if let Some(mtu) = self.mtu {
                host_end = host_end.mtu(mtu);
                container_end = container_end.mtu(mtu);
            }
            let new = NewLink::veth(host_end, container_end);
            match kernel.host()?.create_link(&new) {
                Ok(link) => return Ok(link),
                Err(error) if error.is_exists() => self.explain_collision(kernel, &name)?,
                Err(error) => return Err(refused(error)),
            }
        }
        Err(Error::internal(format!(
            "{CANDIDATES} host interface names of attachment {} are taken by others",
            self.owner
        )))
    }

    /// `EEXIST` may mean either end. Returns when only the host's name is
    /// taken, by somebody else, so that the next candidate may do.
    fn explain_collision(&self, kernel: &mut Kernel, name: &str) -> Result<(), Error> {
        let inside = kernel.container()?.link_by_name(self.ifname()).map_err(refused)?;
        if inside.is_some() {
            return Err(Error::internal(format!(
                "interface {} already exists in the container",
                self.ifname()
            ))
            .with_details(
                "nothing was changed; DEL the attachment first, or choose another CNI_IFNAME",
            ));
        }
        match kernel.host()?.link_by_name(name).map_err(refused)? {
            Some(link) if is_ours(&link, &self.owner, Some(&self.key)) => Err(Error::internal(
                format!("host interface {name} of an earlier ADD of this attachment still exists"),
            )
            .with_details("DEL the attachment before it is added again")),
            _ => Ok(()),
        }
    }

    /// The alias, which NEWLINK ignores, and no router advertisements from
    /// the container; the switch is absent where IPv6 is off.
    fn finish(&self, kernel: &mut Kernel, link: &Link) -> Result<(), Error> {
        let alias = alias(&self.key, &self.owner);
        kernel.host()?.apply(&ChangeLink::new(link.device()).alias(&alias)).map_err(refused)?;
        let _ = sysctl::ensure(&["net", "ipv6", "conf", &link.name, "accept_ra"], "0");
        Ok(())
    }

    /// The container end if prevResult proves it ours (name, MAC address, and
    /// where recorded the host end's name), with its host end.
    fn find_recorded(&self, kernel: &mut Kernel) -> Result<Option<(Link, Option<Link>)>, Error> {
        if !kernel.has_sandbox() {
            return Ok(None);
        }
        let Some(mac) = &self.recorded.container_mac else { return Ok(None) };
        let Some(inside) = kernel.container()?.link_by_name(self.ifname()).map_err(refused)? else {
            return Ok(None);
        };
        let same_mac = inside.mac.is_some_and(|found| found.to_string().eq_ignore_ascii_case(mac));
        if !inside.is_veth() || !same_mac {
            return Ok(None);
        }
        let host = host_end_of(kernel, &inside)?
            .filter(|host| self.recorded.host_name.as_ref().is_none_or(|name| *name == host.name));
        Ok(Some((inside, host)))
    }
}

impl Resource<Kernel> for Veth {
    fn describe(&self) -> String {
        format!("interface {} of container {}", self.ifname(), self.key.container_id)
    }

    fn belongs(&self) -> Belongs {
        Belongs::AttachmentAddress
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        let link = self.create(kernel)?;
        if let Err(error) = self.finish(kernel, &link) {
            delete(kernel, &link)?;
            return Err(error);
        }
        Ok(Made::Created)
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let mut found = Vec::new();
        let inside_name = format!("interface {} in the container", self.ifname());
        let inside = kernel.container()?.link_by_name(self.ifname()).map_err(refused)?;
        let Some(inside) = inside else { return Ok(vec![Difference::missing(inside_name)]) };
        if !inside.is_veth() {
            found.push(Difference::new(&inside_name, "a veth", inside.kind_name()));
            return Ok(found);
        }
        let mac = inside.mac.map(|mac| mac.to_string()).unwrap_or_default();
        if let Some(expected) =
            self.recorded.container_mac.as_ref().filter(|wanted| !wanted.eq_ignore_ascii_case(&mac))
        {
            found.push(Difference::new(format!("{inside_name}, MAC address"), expected, mac));
        }
        self.check_host_end(kernel, &inside, &mut found)?;
        Ok(found)
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        if let Some(host) = find_by_owner(kernel, &self.owner, Some(&self.key))? {
            return delete(kernel, &host);
        }
        if !kernel.has_sandbox() {
            return Ok(());
        }
        match self.find_recorded(kernel)? {
            Some((_, Some(host))) => delete(kernel, &host),
            Some((inside, None)) if self.recorded.host_name.is_none() => {
                match kernel.container()?.apply(&DeleteLink(inside.device())) {
                    Err(error) if !error.is_not_found() => Err(refused(error)),
                    _ => Ok(()),
                }
            }
            _ => {
                let inside = kernel.container()?.link_by_name(self.ifname()).map_err(refused)?;
                if inside.is_some() {
                    log::warn!(
                        "interface {} in the namespace is left alone: nothing proves that it \
                         belongs to container {}",
                        self.ifname(),
                        self.key.container_id
                    );
                }
                Ok(())
            }
        }
    }
}

impl Veth {
    fn check_host_end(
        &self,
        kernel: &mut Kernel,
        inside: &Link,
        found: &mut Vec<Difference>,
    ) -> Result<(), Error> {
        let name = format!("host end of {}", self.ifname());
        let Some(host) = host_end_of(kernel, inside)? else {
            found.push(Difference::missing(name));
            return Ok(());
        };
        if let Some(expected) = self.recorded.host_name.as_ref().filter(|name| **name != host.name)
        {
            found.push(Difference::new(&name, expected, &host.name));
        }
        let name = format!("{name} ({})", host.name);
        if !host.is_up() {
            found.push(Difference::new(&name, "up", "down"));
        }
        if let Some(mtu) = self.mtu.filter(|mtu| *mtu != host.mtu) {
            found.push(Difference::new(
                format!("{name}, MTU"),
                mtu.to_string(),
                host.mtu.to_string(),
            ));
        }
        Ok(())
    }
}

/// The host end's name of a mark.
fn host_name(owner: &OwnerMark, candidate: u32) -> String {
    owner.short_name("veth", candidate)
}

/// The host end's MAC address: the second proof of whose it is, there from
/// the first instant.
fn host_mac(owner: &OwnerMark, candidate: u32) -> MacAddress {
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
    let network = podwire_spec::id::NetworkName::parse(parts.next()?).ok()?;
    let (container, ifname) = (parts.next()?, parts.next()?);
    parts.next().is_none().then(|| OwnerMark::new(&network, container, ifname))
}

/// Whether a link is provably the host end of this owner: its alias says so,
/// or it has none yet and both name and MAC address are the derived ones.
fn is_ours(link: &Link, owner: &OwnerMark, key: Option<&AttachmentKey>) -> bool {
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

fn delete(kernel: &mut Kernel, link: &Link) -> Result<(), Error> {
    match kernel.host()?.apply(&DeleteLink(link.device())) {
        Err(error) if !error.is_not_found() => Err(refused(error)),
        _ => Ok(()),
    }
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
    use podwire_spec::id::{ContainerId, IfName, NetworkName};

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
