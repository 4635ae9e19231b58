//! The elements that one attachment's mappings are, and the words by which
//! its owner finds them again. Pure.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use podwire_netlink::nft::{Data, Element, IpVersion, Verdict};
use podwire_plugin::{OwnerMark, shorten};
use podwire_resources::nft::owners::{self, Record};
use podwire_resources::nft::{COMMENT_LIMIT, cut, display_name, owner_comment};
use podwire_spec::id::AttachmentKey;

use super::config::{Config, Masquerade};
use super::layout::{self, Filled, HAIRPINS, Scope};
use super::mapping::{Mapping, Protocol};

/// Bytes of the owner's name that are written down.
const NAME_LIMIT: usize = 100;

/// What one attachment's mappings of one IP version are to be.
#[derive(Debug, Clone)]
pub(super) struct Forwarding {
    /// IPv4 or IPv6.
    pub(super) version: IpVersion,
    /// Whose they are.
    pub(super) owner: OwnerMark,
    name: String,
    comment: String,
    container: String,
    /// The maps that they are in.
    pub(super) scope: Scope,
    /// The container's address.
    pub(super) address: IpAddr,
    /// The container's network.
    pub(super) subnet: IpNet,
    /// What is forwarded.
    pub(super) mappings: Vec<Mapping>,
    /// The chain that masquerades, if any does.
    pub(super) masquerade: Option<Filled>,
    /// Whether the host's own chain marks packets for masquerading.
    pub(super) marked: bool,
}

/// An element of one of the table's maps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The map's name.
    pub(super) map: String,
    /// The element.
    pub(super) element: Element,
    /// The mapping it serves, for people.
    pub(super) what: String,
    /// Whether its key is a port of the host, which has one owner.
    pub(super) is_port: bool,
}

impl Forwarding {
    /// The mappings that the configuration wants for an address; `None` when
    /// there are none for its IP version.
    pub(super) fn new(config: &Config, key: &AttachmentKey, address: IpNet) -> Option<Self> {
        let version = layout::version_of(address.addr());
        let is_v4 = version == IpVersion::V4;
        let mappings: Vec<_> =
            config.mappings.iter().filter(|mapping| mapping.is_for(is_v4)).cloned().collect();
        if mappings.is_empty() {
            return None;
        }
        let owner = OwnerMark::of(key);
        let scope = match config.condition(version) {
            Some(_) => Scope::Network(owner.network),
            None => Scope::Common,
        };
        let (masquerade, marked) = match &config.masquerade {
            Masquerade::Nothing => (None, false),
            Masquerade::Local => {
                (Some(layout::masquerade_chain(version, Some(address.trunc()))), false)
            }
            Masquerade::Everything => (Some(layout::masquerade_chain(version, None)), false),
            Masquerade::Marked { .. } => (None, true),
        };
        Some(Self {
            version,
            owner,
            name: display_name(key),
            comment: owner_comment(key),
            container: container_word(key.container_id.as_str()),
            scope,
            address: address.addr(),
            subnet: address.trunc(),
            mappings,
            masquerade,
            marked,
        })
    }

    /// The elements.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(2 * self.mappings.len());
        for mapping in &self.mappings {
            let (map, key) = port_key(self.scope, mapping);
            let target = Data::new().address(self.address).port(mapping.container_port);
            entries.push(Entry {
                map,
                element: Element::new(key).with_data(target).with_comment(&self.comment),
                what: mapping.host_side(),
                is_port: true,
            });
            if let Some(chain) = &self.masquerade {
                entries.push(Entry {
                    map: HAIRPINS.to_owned(),
                    element: Element::new(masquerade_key(self.address, mapping))
                        .with_verdict(Verdict::goto(&chain.chain.name))
                        .with_comment(&self.comment),
                    what: mapping.host_side(),
                    is_port: false,
                });
            }
        }
        // A port may be mapped for two addresses of the host: one element.
        entries.sort_by(|one, other| {
            (&one.map, &one.element.key).cmp(&(&other.map, &other.element.key))
        });
        entries.dedup_by(|one, other| {
            (&one.map, &one.element.key) == (&other.map, &other.element.key)
        });
        entries
    }

    /// What is written down in the owners set. `link` is the host's end of the
    /// container's interface, which proves that the container is there.
    fn words(&self, link: Option<u32>) -> Vec<String> {
        let mut words = vec![cut(&self.name, NAME_LIMIT).to_owned(), self.container.clone()];
        words.extend(link.map(|index| format!("{LINK}{index}")));
        words.push(format!("{ADDRESS}{}", self.address));
        if self.scope != Scope::Common {
            words.push(CONDITIONAL.to_owned());
        }
        if self.marked {
            words.push(MARKED.to_owned());
        }
        words.extend(self.mappings.iter().map(ToString::to_string));
        words
    }

    /// The entries of the owners map, each of which counts for the chain that
    /// the attachment relies on.
    pub(super) fn record(&self, link: Option<u32>, heirs: &[OwnerMark]) -> Vec<Element> {
        let mut words = self.words(link);
        words.extend(heirs.iter().map(heir_word));
        record_entries(&self.owner, &words, self.scope)
    }

    /// Whether it relies on a chain that goes when nobody does.
    pub(super) fn relies_on(&self, chain: &str) -> bool {
        self.scope.chain() == chain
            || self.masquerade.as_ref().is_some_and(|filled| filled.chain.name == chain)
    }

    /// The owner, as in comments.
    pub(super) fn comment(&self) -> &str {
        &self.comment
    }

    /// The network, as in the comments of its conditions.
    pub(super) fn network_comment(&self) -> String {
        let network = self.name.split('/').next().unwrap_or_default();
        let comment = format!("{} conditions of {network}", layout::hex(self.owner.network));
        cut(&comment, COMMENT_LIMIT).to_owned()
    }

    /// Whether it is of this container, by its whole id.
    pub(super) fn is_of(&self, container: &str) -> bool {
        self.container == container_word(container)
    }

    /// Whether a holder's record is of another attachment of the same
    /// container.
    pub(super) fn is_same_container(&self, holder: &Held) -> bool {
        holder.container == self.container
    }
}

/// The entries of the owners map that say these words.
pub(super) fn record_entries(owner: &OwnerMark, words: &[String], scope: Scope) -> Vec<Element> {
    let entries = owners::entries(owner, words);
    entries.into_iter().map(|entry| entry.with_verdict(Verdict::goto(scope.chain()))).collect()
}

/// The word by which a record names an heir.
pub(super) fn heir_word(heir: &OwnerMark) -> String {
    format!("{HEIR}{heir}")
}

const CONTAINER: &str = "id=";
const LINK: &str = "link=";
const ADDRESS: &str = "to=";
const CONDITIONAL: &str = "conditional";
const MARKED: &str = "marked";
const HEIR: &str = "heir=";

/// The container, shortened: ids have no longest length.
fn container_word(id: &str) -> String {
    format!("{CONTAINER}{}", shorten(&[id], 16))
}

/// What an attachment's record in the owners set says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    /// `network/container/interface`.
    pub(super) name: String,
    container: String,
    /// The host's end of the container's interface, by index.
    pub(super) link: Option<u32>,
    /// The container's address.
    pub(super) address: Option<IpAddr>,
    /// Whether rules of the host's nat table mark its packets.
    pub(super) marked: bool,
    /// What is forwarded.
    pub(super) mappings: Vec<Mapping>,
    /// The maps that they are in.
    pub(super) scope: Scope,
    /// Attachments of the same container that want what this one holds, in the order
    /// in which they came.
    pub(super) heirs: Vec<OwnerMark>,
}

impl Held {
    /// Reads a record. Words that say nothing are passed over: somebody may
    /// have written in the table by hand.
    pub(super) fn read(record: &Record, owner: &OwnerMark) -> Self {
        let has = |word: &str| record.words.iter().any(|other| other == word);
        let container = record.words.iter().find(|word| word.starts_with(CONTAINER));
        let heirs = record.words.iter().filter_map(|word| word.strip_prefix(HEIR));
        Self {
            name: record.words.first().cloned().unwrap_or_default(),
            container: container.cloned().unwrap_or_default(),
            link: record.value(LINK).and_then(|text| text.parse().ok()),
            address: record.value(ADDRESS).and_then(|text| text.parse().ok()),
            marked: has(MARKED),
            mappings: record.words.iter().filter_map(|word| read_mapping(word)).collect(),
            scope: if has(CONDITIONAL) { Scope::Network(owner.network) } else { Scope::Common },
            heirs: heirs.filter_map(OwnerMark::from_comment).collect(),
        }
    }

    /// Whether both are of one container.
    pub(super) fn is_same_container(&self, other: &Self) -> bool {
        !self.container.is_empty() && self.container == other.container
    }

    /// The maps and elements of the ports that it has, or would have if nobody else
    /// did.
    pub(super) fn ports(&self, owner: &OwnerMark) -> Vec<(String, Element)> {
        let Some(target) = self.address else { return Vec::new() };
        let comment = format!("{owner} {}", self.name);
        let element = |mapping: &Mapping| {
            let (map, key) = port_key(self.scope, mapping);
            let target = Data::new().address(target).port(mapping.container_port);
            let comment = cut(&comment, COMMENT_LIMIT);
            (map, Element::new(key).with_data(target).with_comment(comment))
        };
        self.mappings.iter().map(element).collect()
    }

    /// The maps and keys of everything it may have elements of.
    pub(super) fn keys(&self) -> Vec<(String, Element)> {
        let mut keys = Vec::with_capacity(2 * self.mappings.len());
        for mapping in &self.mappings {
            let (map, key) = port_key(self.scope, mapping);
            keys.push((map, Element::new(key)));
            if let Some(address) = self.address {
                keys.push((HAIRPINS.to_owned(), Element::new(masquerade_key(address, mapping))));
            }
        }
        keys
    }
}

fn port_key(scope: Scope, mapping: &Mapping) -> (String, Data) {
    let (protocol, port) = (mapping.protocol.number(), mapping.host_port);
    match mapping.host_address() {
        Some(address) => {
            (scope.address_ports(), Data::new().address(address).protocol(protocol).port(port))
        }
        None => (scope.ports(), Data::new().protocol(protocol).port(port)),
    }
}

fn masquerade_key(address: IpAddr, mapping: &Mapping) -> Data {
    Data::new()
        .address(address)
        .protocol(mapping.protocol.number())
        .port(mapping.container_port)
        .port(mapping.host_port)
}

impl fmt::Display for Mapping {
    /// `tcp:8080:80` or `tcp:[10.0.0.1]:8080:80`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:", self.protocol)?;
        if let Some(address) = self.host_address() {
            write!(formatter, "[{address}]:")?;
        }
        write!(formatter, "{}:{}", self.host_port, self.container_port)
    }
}

/// Reads what [`Mapping`]'s `Display` wrote.
fn read_mapping(word: &str) -> Option<Mapping> {
    let (protocol, rest) = word.split_once(':')?;
    let (host_ip, rest) = match rest.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once("]:")?;
            (Some(address.parse().ok()?), rest)
        }
        None => (None, rest),
    };
    let (host_port, container_port) = rest.split_once(':')?;
    Some(Mapping {
        protocol: Protocol::parse(protocol)?,
        host_ip,
        host_port: host_port.parse().ok()?,
        container_port: container_port.parse().ok()?,
    })
}

#[cfg(test)]
#[path = "forwarding_tests.rs"]
mod tests;
