//! What our plugins made on this node that the Go plugins don't know.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::ErrorKind;

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{Batch, Family, IpVersion, NftSocket, TableId};
use podwire_netlink::route::RouteSocket;
use podwire_plugin::OwnerMark;
use podwire_resources::host_end::owner_of_alias;
use podwire_resources::nft::legacy::xtables;
use podwire_resources::nft::{HOST_PORTS, owners, retrying};
use podwire_resources::{host_chains, masquerade, moved_device, refused, spoof_check};
use podwire_spec::Error;

const IP: [Family; 2] = [Family::Ipv4, Family::Ipv6];
/// Tables of the host that may hold rules of ours, each with its owner's mark.
const HOST_TABLES: [(&str, &str); 2] = [("filter", "firewall"), ("nat", "portmap")];

/// The attachments that have something, by the plugins that can remove it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remains {
    by_plugin: BTreeMap<&'static str, BTreeSet<String>>,
}

impl Remains {
    /// The plugins of which something may be left at all; the objects of the others
    /// are in the container, or are the very objects that the Go plugin makes.
    pub const PLUGINS: [&str; 6] =
        ["bandwidth", "bridge", "firewall", "host-device", "portmap", "ptp"];

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.by_plugin.is_empty()
    }

    /// Whether a plugin is still needed.
    pub fn need(&self, plugin: &str) -> bool {
        self.by_plugin.contains_key(plugin)
    }

    /// The attachments, as owner marks.
    pub fn attachments(&self) -> BTreeSet<&str> {
        self.by_plugin.values().flatten().map(String::as_str).collect()
    }

    /// How many attachments need which plugin.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.by_plugin.iter().map(|(plugin, marks)| (*plugin, marks.len()))
    }

    fn note(&mut self, plugins: &[&'static str], owner: impl fmt::Display) {
        for plugin in plugins {
            self.by_plugin.entry(plugin).or_default().insert(owner.to_string());
        }
    }
}

/// Looks through the calling thread's network namespace.
///
/// # Errors
/// The kernel refuses to tell; then nothing may be taken for certain.
pub fn remains() -> Result<Remains, Error> {
    let mut found = Remains::default();
    let mut nft = NftSocket::open().map_err(refused)?;
    match nft.generation() {
        Ok(_) => in_tables(&mut nft, &mut found).map_err(refused)?,
        // A kernel without nftables holds nothing of ours there.
        Err(error) if error.is_unsupported() => {}
        Err(error) => return Err(refused(error)),
    }
    in_legacy_tables(&mut found)?;
    for link in RouteSocket::open().map_err(refused)?.links_of_kind("ifb").map_err(refused)? {
        if let Some(owner) = link.alias.as_deref().and_then(owner_of_alias) {
            found.note(&["bandwidth"], owner);
        }
    }
    in_files(&mut found)?;
    Ok(found)
}

fn in_tables(nft: &mut NftSocket, found: &mut Remains) -> Result<(), NetlinkError> {
    let interfaces: &[&str] = &["bridge", "ptp"];
    let mut owned = vec![(TableId::new(Family::Bridge, spoof_check::TABLE), interfaces)];
    for family in IP {
        owned.push((TableId::new(family, masquerade::TABLE), interfaces));
        owned.push((TableId::new(family, HOST_PORTS), &["portmap"]));
    }
    for (table, plugins) in owned {
        for owner in owners::all(nft, table)? {
            found.note(plugins, owner);
        }
    }
    let members = TableId::new(Family::Ipv4, host_chains::MEMBERS_TABLE);
    for set in nft.sets(members)? {
        for element in nft.elements(set.id())? {
            match element.key.as_bytes().get(..16).and_then(OwnerMark::from_bytes) {
                Some(owner) => found.note(&["firewall"], owner),
                None => found.note(&["firewall"], "somebody"),
            }
        }
    }
    for family in IP {
        for (table, plugin) in HOST_TABLES {
            for rule in nft.table_rules(TableId::new(family, table))? {
                if let Some(owner) = rule.comment().and_then(|text| OwnerMark::from_comment(&text))
                {
                    found.note(&[plugin], owner);
                }
            }
        }
    }
    Ok(())
}

fn in_legacy_tables(found: &mut Remains) -> Result<(), Error> {
    for version in [IpVersion::V4, IpVersion::V6] {
        for (table, plugin) in HOST_TABLES {
            for rule in xtables::rules(version, table)?.unwrap_or_default() {
                if let Some(owner) = xtables::comment(&rule).and_then(OwnerMark::from_comment) {
                    found.note(&[plugin], owner);
                }
            }
        }
    }
    Ok(())
}

fn in_files(found: &mut Remains) -> Result<(), Error> {
    let entries = match std::fs::read_dir(moved_device::DIRECTORY) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(Error::io(format!("listing {}: {error}", moved_device::DIRECTORY)));
        }
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if let Some(mark) = name.to_str().and_then(|name| name.strip_suffix(".json")) {
            found.note(&["host-device"], mark);
        }
    }
    Ok(())
}

/// Removes our tables, in which nothing is left but what our plugins would keep for
/// the next container.
///
/// # Errors
/// Something is in them again, or the kernel refuses.
pub(crate) fn clear_tables() -> Result<(), Error> {
    let mut nft = NftSocket::open().map_err(refused)?;
    if nft.generation().is_err_and(|error| error.is_unsupported()) {
        return Ok(());
    }
    let is_clear = retrying(|| {
        let generation = nft.generation()?;
        let mut found = Remains::default();
        in_tables(&mut nft, &mut found)?;
        if !found.is_empty() {
            return Ok(false);
        }
        let mut tables = vec![
            TableId::new(Family::Bridge, spoof_check::TABLE),
            TableId::new(Family::Ipv4, host_chains::MEMBERS_TABLE),
        ];
        for family in IP {
            tables.push(TableId::new(family, masquerade::TABLE));
            tables.push(TableId::new(family, HOST_PORTS));
        }
        let mut batch = Batch::new();
        for table in tables {
            if nft.table(table)?.is_some() {
                batch.delete_table(table);
            }
        }
        if !batch.is_empty() {
            batch.require_generation(generation);
            nft.commit(&batch)?;
        }
        Ok(true)
    })?;
    if is_clear {
        return Ok(());
    }
    Err(Error::try_again("a call of our plugins has made something meanwhile"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_needs_its_plugins() {
        let mut found = Remains::default();
        assert!(found.is_empty());
        found.note(&["bridge", "ptp"], "a-b");
        found.note(&["portmap"], "a-b");
        assert!(found.need("ptp") && found.need("portmap") && !found.need("firewall"));
        assert_eq!(found.attachments().len(), 1);
        assert_eq!(found.counts().collect::<Vec<_>>(), [("bridge", 1), ("portmap", 1), ("ptp", 1)]);
        assert!(found.counts().all(|(plugin, _)| Remains::PLUGINS.contains(&plugin)));
    }
}
