//! The pair of interfaces between the container and the host.

use podwire_netlink::route::link_change::{ChangeLink, DeleteLink};
use podwire_netlink::route::link_new::{End, NewLink};
use podwire_netlink::route::{Link, MacAddress};
use podwire_plugin::{Attachment, Belongs, Difference, Made, OwnerMark, Resource};
use podwire_spec::error::Error;
use podwire_spec::id::AttachmentKey;
use podwire_spec::result::CniResult;
use podwire_sys::sysctl;
use std::net::IpAddr;
use std::os::fd::AsFd;

use crate::bridge::random_mac;
use crate::host_end::{
    CANDIDATES, alias, find_by_owner, find_renamed, host_end_of, host_mac, host_name, is_ours,
};
use crate::kernel::{Kernel, Pair, delete, refused};
use crate::sandbox_path;

/// What a result of an earlier ADD says of the pair.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// The host end's name.
    pub host_name: Option<String>,
    /// The host end's MAC address.
    pub host_mac: Option<String>,
    /// The container end's MAC address.
    pub container_mac: Option<String>,
    /// The container end's MTU in bytes.
    pub container_mtu: Option<u32>,
    /// Where the container end is.
    pub sandbox: Option<String>,
    /// The container end's addresses.
    pub addresses: Vec<IpAddr>,
}

impl Recorded {
    /// Finds the pair in a result: the container end by name and a sandbox,
    /// the host end as the first interface without one that isn't `bridge`.
    pub fn from_result(result: &CniResult, ifname: &str, bridge: Option<&str>) -> Self {
        let container = result.interface_in_sandbox(ifname).map(|(_, interface)| interface);
        let host = result.host_interfaces().find(|host| Some(host.name.as_str()) != bridge);
        let addresses = result.container_addresses(ifname).addresses;
        let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        Self {
            host_name: host.map(|host| host.name.clone()),
            host_mac: host.and_then(|host| text(&host.mac)),
            container_mac: container.and_then(|found| text(&found.mac)),
            container_mtu: container.and_then(|found| found.mtu),
            sandbox: container.and_then(|found| text(&found.sandbox)),
            addresses: addresses.iter().map(|ip| ip.address.addr()).collect(),
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
    fn create(&self, kernel: &mut Kernel) -> Result<Pair, Error> {
        let mac = match self.mac {
            Some(mac) => mac,
            None => random_mac()?,
        };
        for candidate in 0..CANDIDATES {
            let name = host_name(&self.owner, candidate);
            let (socket, sandbox) = kernel.host_and_sandbox()?;
            let mut host_end = End::new(&name).mac(host_mac(&self.owner, &name));
            let mut container_end = End::new(self.ifname()).mac(mac).namespace(sandbox.as_fd());
            if let Some(mtu) = self.mtu {
                host_end = host_end.mtu(mtu);
                container_end = container_end.mtu(mtu);
            }
            let host = match socket.create_link(&NewLink::veth(host_end, container_end)) {
                Ok(host) => host,
                Err(error) if error.is_exists() => {
                    self.explain_collision(kernel, &name)?;
                    continue;
                }
                Err(error) => return Err(refused(error)),
            };
            let index = host.parent.ok_or_else(|| {
                Error::internal(format!("the kernel doesn't tell the peer of {name}"))
            })?;
            return Ok(Pair { ifname: self.ifname().to_owned(), index, mac, host });
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
            return Err(Error::already_exists(format!(
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
        let _ = sysctl::demand(&["net", "ipv6", "conf", &link.name, "accept_ra"], "0");
        Ok(())
    }

    /// The container end if prevResult proves it ours: by name, MAC address
    /// and, where it is recorded, the host end's name. A MAC address alone may
    /// have been asked for twice.
    fn find_inside(&self, kernel: &mut Kernel) -> Result<Option<(Link, Option<Link>)>, Error> {
        let Some(mac) = &self.recorded.container_mac else { return Ok(None) };
        let Some(inside) = kernel.container()?.link_by_name(self.ifname()).map_err(refused)? else {
            return Ok(None);
        };
        if !inside.is_veth() || !has_mac(&inside, mac) {
            return Ok(None);
        }
        let host = host_end_of(kernel, &inside)?;
        match (&self.recorded.host_name, &host) {
            (None, _) => Ok(Some((inside, host))),
            (Some(name), Some(end)) if *name == end.name => Ok(Some((inside, host))),
            _ => Ok(None),
        }
    }

    /// The host end if prevResult proves it ours: by name and MAC address, and
    /// nobody else's mark on it.
    fn find_outside(&self, kernel: &mut Kernel) -> Result<Option<Link>, Error> {
        let (Some(name), Some(mac)) = (&self.recorded.host_name, &self.recorded.host_mac) else {
            return Ok(None);
        };
        // prevResult is outside input: no name, no link.
        if podwire_spec::id::IfName::parse(name).is_err() {
            return Ok(None);
        }
        let link = kernel.host()?.link_by_name(name).map_err(refused)?;
        Ok(link.filter(|link| link.is_veth() && has_mac(link, mac) && link.alias.is_none()))
    }

    /// Removes a pair that isn't under a name of ours: one that was renamed, or
    /// one without our mark, as other plugins left it, as far as prevResult proves that it is this attachment's.
    fn remove_recorded(&self, kernel: &mut Kernel) -> Result<(), Error> {
        if kernel.has_sandbox() {
            // Renamed on the host, it still is the peer and carries our mark.
            if let Some(inside) =
                kernel.container()?.link_by_name(self.ifname()).map_err(refused)?
                && let Some(host) = host_end_of(kernel, &inside)?
                && is_ours(&host, &self.owner, Some(&self.key))
            {
                return delete(kernel, &host);
            }
            match self.find_inside(kernel)? {
                Some((_, Some(host))) => return delete(kernel, &host),
                Some((inside, None)) => {
                    return match kernel.container()?.apply(&DeleteLink(inside.device())) {
                        Err(error) if !error.is_not_found() => Err(refused(error)),
                        _ => Ok(()),
                    };
                }
                None => {}
            }
        }
        if let Some(host) = self.find_outside(kernel)? {
            return delete(kernel, &host);
        }
        // Only an attachment that existed is worth looking at every pair.
        if self.recorded.container_mac.is_some()
            && let Some(host) = find_renamed(kernel, &self.owner, &self.key)?
        {
            return delete(kernel, &host);
        }
        if kernel.has_sandbox()
            && let Some(inside) =
                kernel.container()?.link_by_name(self.ifname()).map_err(refused)?
        {
            self.refuse_to_free(kernel, &inside)?;
            log::warn!(
                "interface {} in the namespace is left alone: nothing proves that it belongs to \
                 container {}",
                self.ifname(),
                self.key.container_id
            );
        }
        Ok(())
    }

    /// An error if an interface that isn't provably ours has both the MAC
    /// address and an address of prevResult: were that address freed, two
    /// containers would have it. Anything less is a stranger's interface in a
    /// reused namespace, which must not keep our reservation.
    fn refuse_to_free(&self, kernel: &mut Kernel, inside: &Link) -> Result<(), Error> {
        if !self.recorded.container_mac.as_deref().is_some_and(|mac| has_mac(inside, mac)) {
            return Ok(());
        }
        let there = kernel.container()?.addresses_of(inside.device()).map_err(refused)?;
        let Some(used) = self
            .recorded
            .addresses
            .iter()
            .find(|address| there.iter().any(|one| one.address.addr() == **address))
        else {
            return Ok(());
        };
        Err(Error::internal(format!(
            "interface {} in the namespace still has {used}, but nothing proves that it belongs \
             to container {}",
            self.ifname(),
            self.key.container_id
        ))
        .with_details(
            "its other end isn't the one in prevResult; the address stays reserved until the \
             interface or its namespace is removed",
        ))
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
        let pair = self.create(kernel)?;
        if let Err(error) = self.finish(kernel, &pair.host) {
            delete(kernel, &pair.host)?;
            return Err(error);
        }
        kernel.remember_pair(pair);
        Ok(Made::Created)
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let mut found = Vec::new();
        let inside_name = format!("interface {} in the container", self.ifname());
        let sandbox = self.recorded.sandbox.as_deref();
        sandbox_path::compare(kernel, sandbox, self.ifname(), &mut found)?;
        let inside = kernel.container()?.link_by_name(self.ifname()).map_err(refused)?;
        let Some(inside) = inside else {
            found.push(Difference::missing(inside_name));
            return Ok(found);
        };
        if !inside.is_veth() {
            found.push(Difference::new(&inside_name, "a veth", inside.kind_name()));
            return Ok(found);
        }
        if let Some(expected) = &self.recorded.container_mac
            && !has_mac(&inside, expected)
        {
            let mac = inside.mac.map(|mac| mac.to_string()).unwrap_or_default();
            found.push(Difference::new(format!("{inside_name}, MAC address"), expected, mac));
        }
        // What tuning set is recorded where the version has a field for it.
        if let Some(expected) = self.recorded.container_mtu.filter(|mtu| *mtu != inside.mtu) {
            found.push(Difference::new(
                format!("{inside_name}, MTU"),
                expected.to_string(),
                inside.mtu.to_string(),
            ));
        }
        self.check_host_end(kernel, &inside, &mut found)?;
        Ok(found)
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        match find_by_owner(kernel, &self.owner, Some(&self.key))? {
            Some(host) => delete(kernel, &host),
            None => self.remove_recorded(kernel),
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
        if let Some(expected) = self.recorded.host_mac.as_ref().filter(|mac| !has_mac(&host, mac)) {
            let mac = host.mac.map(|mac| mac.to_string()).unwrap_or_default();
            found.push(Difference::new(format!("{name}, MAC address"), expected, mac));
        }
        // One without an alias may be another plugin's work. Ours is what DEL and GC
        // find it by.
        if let Some(text) = &host.alias
            && !is_ours(&host, &self.owner, Some(&self.key))
        {
            let expected = alias(&self.key, &self.owner);
            found.push(Difference::new(format!("{name}, alias"), expected, text));
        }
        if !host.is_up() {
            found.push(Difference::new(&name, "up", "down"));
        }
        if let Some(mtu) = self.mtu.filter(|mtu| *mtu != host.mtu) {
            let actual = host.mtu.to_string();
            found.push(Difference::new(format!("{name}, MTU"), mtu.to_string(), actual));
        } else if inside.mtu > host.mtu {
            // A veth drops what is larger than the receiving end allows.
            found.push(Difference::new(
                format!("MTU of {} in the container", self.ifname()),
                format!("at most {}, that of {}", host.mtu, host.name),
                inside.mtu.to_string(),
            ));
        }
        Ok(())
    }
}

fn has_mac(link: &Link, text: &str) -> bool {
    link.mac.is_some_and(|mac| mac.to_string().eq_ignore_ascii_case(text))
}
