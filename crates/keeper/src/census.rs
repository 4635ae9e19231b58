//! The attachments of a node, each with its condition.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use ipnet::IpNet;
use podwire_runtime::RuntimeError;
use podwire_runtime::live::{Liveness, Watcher};
use podwire_runtime::store::{State, Store, Stored, Unreadable};
use podwire_spec::id::AttachmentKey;
use podwire_spec::result::{CniResult, VersionedResult};
use podwire_spec::version::SpecVersion;

/// All that is recorded on a node, at one moment.
#[derive(Debug, Default)]
pub struct Census {
    /// The attachments, finished and not, sorted by network, container and
    /// interface.
    pub attachments: Vec<Entry>,
    /// Files among the records that can't be understood.
    pub unreadable: Vec<Unreadable>,
    /// Files that were set aside because they couldn't be understood.
    pub set_aside: Vec<PathBuf>,
}

/// One attachment.
#[derive(Debug)]
pub struct Entry {
    /// Its record, and where that lies.
    pub stored: Stored,
    /// Whether its namespace is there.
    pub liveness: Liveness,
    /// How long ago the record was written; `None` if the file was removed
    /// meanwhile or its time lies in the future.
    pub age: Option<Duration>,
}

/// How an attachment is, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Its namespace is there.
    Alive,
    /// Its namespace is gone: what is left of it is to be removed.
    Dead,
    /// Whether its namespace is there can't be told.
    Unknown,
    /// An ADD runs, or was cut short.
    Adding,
    /// An ADD failed, and so did removing what it had made.
    DeletePending,
}

impl Condition {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Alive => Liveness::Alive.as_str(),
            Self::Dead => Liveness::Dead.as_str(),
            Self::Unknown => Liveness::Unknown.as_str(),
            Self::Adding => State::Adding.as_str(),
            Self::DeletePending => State::DeletePending.as_str(),
        }
    }
}

impl Census {
    /// Reads all records and looks for their namespaces.
    ///
    /// # Errors
    /// If a directory of the store is there and can't be listed.
    pub fn take(store: &Store) -> Result<Self, RuntimeError> {
        let listing = store.list()?;
        let (now, watcher) = (SystemTime::now(), Watcher::new());
        let attachments = listing.attachments.into_iter().map(|stored| Entry {
            liveness: watcher.liveness(&stored),
            age: std::fs::metadata(&stored.path)
                .and_then(|metadata| metadata.modified())
                .ok()
                .and_then(|written| now.duration_since(written).ok()),
            stored,
        });
        Ok(Self {
            attachments: attachments.collect(),
            unreadable: listing.unreadable,
            set_aside: store.quarantined()?,
        })
    }
}

impl Entry {
    /// What names it.
    pub fn key(&self) -> &AttachmentKey {
        &self.stored.record.key
    }

    /// How it is.
    pub fn condition(&self) -> Condition {
        match (self.stored.record.state, self.liveness) {
            (State::Adding, _) => Condition::Adding,
            (State::DeletePending, _) => Condition::DeletePending,
            (State::Attached, Liveness::Alive) => Condition::Alive,
            (State::Attached, Liveness::Dead) => Condition::Dead,
            (State::Attached, Liveness::Unknown) => Condition::Unknown,
        }
    }

    /// Its recorded result; `None` if there is none that can be read.
    pub fn result(&self) -> Option<CniResult> {
        // A result without a version is one of the oldest (libcni's rule).
        let result =
            VersionedResult::parse(&self.stored.record.result, SpecVersion::V0_1_0).ok()?;
        result.into_newest().ok()
    }

    /// The addresses of its interface, by the recorded result.
    pub fn addresses(&self) -> Vec<IpNet> {
        let Some(result) = self.result() else { return Vec::new() };
        let own = result.container_addresses(self.key().ifname.as_str());
        own.addresses.into_iter().map(|ip| ip.address).collect()
    }
}

#[cfg(test)]
mod tests {
    use podwire_runtime::store::Record;
    use podwire_spec::id::{ContainerId, IfName, NetworkName};

    use super::*;

    fn record(id: &str, state: State, netns: &str) -> Record {
        Record {
            key: AttachmentKey {
                network: NetworkName::parse("net").unwrap(),
                container_id: ContainerId::parse(id).unwrap(),
                ifname: IfName::parse("eth0").unwrap(),
            },
            state,
            config: None,
            netns: netns.to_owned(),
            args: Vec::new(),
            capability_args: podwire_spec::request::CapabilityArguments::default(),
            result: r#"{"cniVersion":"1.0.0","ips":[{"address":"10.1.0.2/24"}]}"#.to_owned(),
        }
    }

    #[test]
    fn every_record_has_a_condition() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        let gone = directory.path().join("gone");
        for (id, netns) in
            [("a", "/proc/self/ns/net"), ("b", gone.to_str().unwrap()), ("c", "/nowhere/at/all")]
        {
            store.commit(&record(id, State::Attached, netns)).unwrap();
        }
        let mut pending = record("d", State::Adding, "/proc/self/ns/net");
        pending.result.clear();
        store.write_intent(&pending).unwrap();
        pending.key.container_id = ContainerId::parse("e").unwrap();
        pending.state = State::DeletePending;
        store.write_intent(&pending).unwrap();
        std::fs::write(directory.path().join("results/torn"), "").unwrap();

        let census = Census::take(&store).unwrap();
        let words: Vec<_> = census
            .attachments
            .iter()
            .map(|entry| format!("{} {}", entry.key().container_id, entry.condition().as_str()))
            .collect();
        assert_eq!(words, ["a alive", "b dead", "c unknown", "d adding", "e delete pending"]);
        assert_eq!(census.attachments[0].addresses(), ["10.1.0.2/24".parse().unwrap()]);
        assert!(census.attachments[0].age.unwrap() < Duration::from_mins(1));
        assert!(census.attachments[3].addresses().is_empty());
        assert_eq!(census.unreadable.len(), 1);

        store.set_aside(&census.unreadable[0]).unwrap();
        let census = Census::take(&store).unwrap();
        assert_eq!((census.unreadable.len(), census.set_aside.len()), (0, 1));
    }

    #[test]
    fn an_empty_node_has_none() {
        let directory = tempfile::tempdir().unwrap();
        let census = Census::take(&Store::new(directory.path().join("absent"))).unwrap();
        assert!(census.attachments.is_empty() && census.set_aside.is_empty());
    }
}
