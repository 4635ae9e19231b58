//! Looking for a device that was moved.

use podwire_netlink::route::Link;
use podwire_spec::error::Error;
use podwire_spec::id::IfName;

use super::record::Record;
use crate::host_end::owner_of_alias;
use crate::kernel::{Kernel, refused};

/// What is known of the device. Without a record it was moved by another
/// plugin, or before a reboot.
pub(super) struct Search {
    pub(super) record: Option<Record>,
    /// Its name in the container.
    pub(super) ifname: String,
    /// Its name on the host, where the configuration goes by it.
    pub(super) configured: Option<String>,
    /// Its MAC address, as prevResult tells it.
    pub(super) mac: Option<String>,
    /// Names of devices that other attachments have: never this one's.
    pub(super) of_others: Vec<String>,
}

/// Where the device is.
pub(super) enum Where {
    /// In the container.
    Inside(Link),
    /// On the host, but not under its name: the namespace ended.
    Stray(Link),
    /// On the host under its name.
    Home(Link),
    /// Gone, as virtual devices go with their namespace; or with another
    /// container by now.
    Nowhere,
}

impl Search {
    pub(super) fn find(&self, kernel: &mut Kernel) -> Result<Where, Error> {
        if kernel.has_sandbox() {
            let inside = kernel.container()?.links().map_err(refused)?;
            if let Some(link) = self.pick_inside(&inside) {
                return Ok(Where::Inside(link.clone()));
            }
        }
        if let Some(record) = &self.record {
            let home = kernel.host()?.link_by_name(&record.name).map_err(refused)?;
            if let Some(home) = home.filter(|home| home.alias == record.alias) {
                let is_it = record.mac.is_none() || home.mac == record.mac;
                return Ok(if is_it { Where::Home(home) } else { Where::Nowhere });
            }
        }
        let Some(name) =
            self.record.as_ref().map(|record| &record.name).or(self.configured.as_ref())
        else {
            return Ok(Where::Nowhere);
        };
        let stray = stray(kernel, name)?
            .filter(|stray| self.record.as_ref().is_none_or(|record| record.is_of(stray)));
        Ok(stray.map_or(Where::Nowhere, Where::Stray))
    }

    /// The device among a container's interfaces, whatever its name is there.
    fn pick_inside<'l>(&self, links: &'l [Link]) -> Option<&'l Link> {
        let named = links.iter().find(|link| link.name == self.ifname);
        if let Some(record) = &self.record {
            let is_it =
                |link: &&Link| link.alias.as_deref() == Some(&record.name) && record.is_of(link);
            // Somebody may have taken its alias away.
            let is_bare = |link: &&Link| link.alias.is_none() && record.is_of(link);
            // Of several that say so it is the one that kept its index, which nothing in
            // the container can change.
            let is_itself = |link: &&Link| link.index == record.index && is_it(link);
            return links
                .iter()
                .find(is_itself)
                .or_else(|| named.filter(is_it))
                .or_else(|| links.iter().find(is_it))
                .or_else(|| named.filter(is_bare));
        }
        let has_mac = |link: &Link| {
            let mac = link.mac.map(|mac| mac.to_string()).unwrap_or_default();
            self.mac.as_ref().is_none_or(|known| known.eq_ignore_ascii_case(&mac))
        };
        let is_it = |link: &&Link| {
            let Some(alias) = &link.alias else { return false };
            let is_configured = self.configured.as_ref().is_none_or(|name| name == alias);
            // Our own links have an alias too.
            let is_foreign = owner_of_alias(alias).is_some() || self.of_others.contains(alias);
            !is_foreign && is_configured && has_mac(link)
        };
        // Renamed inside, it is told by the name that it had on the host.
        let renamed = || links.iter().find(|link| self.configured.is_some() && is_it(link));
        named.filter(is_it).or_else(renamed)
    }

    /// What the device was on the host, as far as is known: at least its name.
    pub(super) fn origin(&self, link: &Link) -> Result<Record, Error> {
        if let Some(record) = &self.record {
            return Ok(record.clone());
        }
        let name = link.alias.clone().unwrap_or_default();
        IfName::parse(&name).map_err(|error| {
            error.context(format!("the alias of {} is no name to return it under", link.name))
        })?;
        Ok(Record {
            name,
            alias: None,
            index: link.index,
            mac: link.mac,
            mtu: link.mtu,
            up: false,
            physical: link.kind.is_none(),
            ifname: self.ifname.clone(),
            sandbox: String::new(),
        })
    }
}

/// A device of the host whose alias says that its name is `name`, which it
/// hasn't: the kernel brought it home at the end of its namespace.
pub(super) fn stray(kernel: &mut Kernel, name: &str) -> Result<Option<Link>, Error> {
    let links = kernel.host()?.links().map_err(refused)?;
    let mut strays =
        links.into_iter().filter(|link| link.alias.as_deref() == Some(name) && link.name != name);
    let first = strays.next();
    // Two that say so prove nothing.
    Ok(if strays.next().is_none() { first } else { None })
}
