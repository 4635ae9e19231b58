//! What stands in the kernel: names, sets, chains and rules. Pure.

use podwire_netlink::nft::{
    Batch, Chain, ChainId, ChainKind, Data, DataType, Element, Family, Field, Hook, Rule, Set,
    SetId, Table, TableId, Verdict, priority,
};
use podwire_netlink::route::MacAddress;

use super::Port;
use crate::nft::{Entry, owners};

/// The name of the table.
pub const TABLE: &str = "podwire_spoof_check";
/// The chain that frames enter.
pub(super) const ENTRY: &str = "prerouting";
/// Objects of the table that stay: the entry chain, three sets.
pub(super) const LASTING: u32 = 4;

pub(super) const TABLE_ID: TableId<'static> = TableId::new(Family::Bridge, TABLE);
pub(super) const ENTRY_ID: ChainId<'static> = TABLE_ID.chain(ENTRY);
/// The chain that frames of guarded ports go over to.
pub(super) const CHECK: ChainId<'static> = TABLE_ID.chain("check_source");
/// The map of guarded ports.
pub(super) const GUARDED: SetId<'static> = TABLE_ID.set("guarded");
/// The set of ports and the addresses that they may send from.
pub(super) const ALLOWED: SetId<'static> = TABLE_ID.set("allowed");
pub(super) const OWNERS: SetId<'static> = TABLE_ID.set(owners::NAME);

const PORT_AND_SOURCE: [Field; 2] = [Field::InputInterface, Field::EtherSource];

pub(super) fn entry_chain() -> Chain {
    let (kind, hook) = (ChainKind::Filter, Hook::Prerouting);
    Chain::base(ENTRY_ID, kind, hook, priority::BRIDGE_DESTINATION_NAT)
}

pub(super) fn entry_rules() -> [Rule; 1] {
    [Rule::new(ENTRY_ID).verdict_map(&[Field::InputInterface], GUARDED.name)]
}

pub(super) fn check_rules() -> [Rule; 2] {
    [
        Rule::new(CHECK).in_set(&PORT_AND_SOURCE, ALLOWED.name).verdict(Verdict::Return),
        Rule::new(CHECK).verdict(Verdict::Drop),
    ]
}

/// What was found of the two chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// The chain that frames enter.
    pub(super) entry: Entry,
    /// Whether the other holds its rules.
    pub(super) has_check: bool,
}

/// Makes whatever is missing of table and sets, and makes the chains right. What is
/// right is left alone, for speed ([`crate::nft::transaction`]).
pub(super) fn declare(batch: &mut Batch, found: Found) {
    let port = DataType::InterfaceName;
    let address = DataType::EtherAddress;
    batch.add_table(&Table::new(TABLE_ID).with_comment("podwire: macspoofchk of CNI networks"));
    batch.add_set(&Set::verdict_map(GUARDED, &[port]).with_comment("ports that are checked"));
    batch.add_set(&Set::new(ALLOWED, &[port, address]).with_comment("what they may send from"));
    batch.add_set(&owners::set(TABLE_ID));
    found.entry.push(batch, &entry_chain(), &entry_rules());
    if !found.has_check {
        // It goes with the last port, so that it is seldom there.
        batch.add_chain(&Chain::regular(CHECK));
        batch.flush_chain(CHECK);
        for rule in check_rules() {
            batch.add_rule(&rule);
        }
    }
}

/// The key of a port in the map.
pub(super) fn guarded(interface: &str) -> Element {
    Element::new(Data::new().interface_name(interface))
}

/// The key of a port and an address in the set.
pub(super) fn allowed(interface: &str, mac: MacAddress) -> Element {
    Element::new(Data::new().interface_name(interface).ether(mac.0))
}

/// The verdict that guards a port.
pub(super) fn guard() -> Verdict {
    Verdict::goto(CHECK.name)
}

impl Port {
    /// How the owners set writes it down, behind the owner's name.
    pub(super) fn words(&self) -> [String; 2] {
        [self.interface.clone(), self.mac.to_string()]
    }

    /// Reads it back.
    pub(super) fn from_words(words: &[String]) -> Option<Self> {
        let [_, interface, mac, ..] = words else { return None };
        Some(Self { interface: interface.clone(), mac: mac.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_written_down_and_read_back() {
        let port = Port {
            interface: "veth0a1b2c3d".to_owned(),
            mac: "0a:58:0a:01:00:02".parse().unwrap(),
        };
        let mut words = vec!["n1/c1/eth0".to_owned()];
        words.extend(port.words());
        assert_eq!(Port::from_words(&words), Some(port));
        assert_eq!(Port::from_words(&words[..2]), None);
        assert_eq!(Port::from_words(&[]), None);
        words[2] = "not an address".to_owned();
        assert_eq!(Port::from_words(&words), None);
    }

    #[test]
    fn keys_are_laid_out_as_the_rules_read_them() {
        let mac = "0a:58:0a:01:00:02".parse().unwrap();
        let key = allowed("veth0", mac).key;
        assert_eq!(&key.as_bytes()[..6], b"veth0\0");
        assert_eq!(key.as_bytes()[16..], [0x0a, 0x58, 0x0a, 1, 0, 2, 0, 0]);
        assert_eq!(guarded("veth0").key.as_bytes().len(), 16);
    }
}
