//! Elements, and the words that find them again.

use std::collections::BTreeSet;

use podwire_netlink::nft::{ElementValue, IpVersion, Verdict};
use podwire_plugin::OwnerMark;
use podwire_resources::nft::owners::Record;
use podwire_spec::id::{ContainerId, IfName, NetworkName};
use podwire_spec::json::Object;

use super::*;
use crate::meta::portmap::config::Strictness;

fn key(network: &str, container: &str) -> AttachmentKey {
    AttachmentKey {
        network: NetworkName::parse(network).unwrap(),
        container_id: ContainerId::parse(container).unwrap(),
        ifname: IfName::parse("eth0").unwrap(),
    }
}

fn forwarding(keys: &str, mappings: &str, address: &str) -> Option<Forwarding> {
    let keys = Object::parse(keys).unwrap();
    let runtime = format!("{{\"portMappings\":{mappings}}}");
    let runtime = Object::parse(&runtime).unwrap();
    let config = Config::parse(&keys, Some(&runtime), Strictness::Whole).unwrap();
    Forwarding::new(&config, &key("n1", "c1"), address.parse().unwrap())
}

const MAPPINGS: &str = r#"[{"hostPort":8080,"containerPort":80},
    {"hostPort":8080,"containerPort":80,"protocol":"udp","hostIP":"192.0.2.1"},
    {"hostPort":8080,"containerPort":81,"protocol":"udp","hostIP":"2001:db8::1"},
    {"hostPort":9090,"containerPort":80,"protocol":"sctp","hostIP":"0.0.0.0"}]"#;

fn record(forwarding: &Forwarding) -> Record {
    Record { words: forwarding.words(Some(7)), entries: Vec::new() }
}

#[test]
fn every_element_is_found_again_by_the_words() {
    for (keys, address, count) in [
        ("{}", "10.1.0.2/24", 6),
        ("{}", "fd00::2/64", 4),
        (r#"{"snat":false}"#, "10.1.0.2/24", 3),
        (r#"{"masqAll":true,"conditionsV4":["-s","192.0.2.0/24"]}"#, "10.1.0.2/24", 6),
    ] {
        let forwarding = forwarding(keys, MAPPINGS, address).unwrap();
        let held = Held::read(&record(&forwarding), &forwarding.owner);
        assert_eq!(held.name, "n1/c1/eth0");
        assert_eq!((held.link, held.address), (Some(7), Some(forwarding.address)));
        assert_eq!(held.mappings.len(), forwarding.mappings.len());
        let entries: BTreeSet<_> =
            forwarding.entries().into_iter().map(|entry| (entry.map, entry.element.key)).collect();
        assert_eq!(entries.len(), count, "{keys} {address}");
        let found: BTreeSet<_> =
            held.keys().into_iter().map(|(map, element)| (map, element.key)).collect();
        assert!(entries.is_subset(&found), "{entries:?} in {found:?}");
    }
}

#[test]
fn words_have_no_blanks_and_survive_a_meddler() {
    let forwarding = forwarding("{}", MAPPINGS, "10.1.0.2/24").unwrap();
    let mut record = record(&forwarding);
    assert!(record.words.iter().all(|word| !word.contains(char::is_whitespace)));
    record.words.extend(
        ["tcp:", "tcp:1", "tcp:x:1", "tcp:[:1:2", "tcp:70000:1", "to=", "link=x", "é"]
            .map(str::to_owned),
    );
    let held = Held::read(&record, &forwarding.owner);
    assert_eq!(held.mappings.len(), 3);
    let nothing = Held::read(&Record::default(), &forwarding.owner);
    assert_eq!((nothing.name.as_str(), nothing.mappings.len()), ("", 0));
    assert!(nothing.keys().is_empty());
}

#[test]
fn a_port_for_all_addresses_and_one_for_one_are_in_maps_of_their_own() {
    let forwarding = forwarding("{}", MAPPINGS, "10.1.0.2/24").unwrap();
    let maps: Vec<_> = forwarding.entries().into_iter().map(|entry| entry.map).collect();
    let of = |name: &str| maps.iter().filter(|map| *map == name).count();
    assert_eq!((of("ports"), of("address_ports"), of("hairpins")), (2, 1, 3));
}

#[test]
fn hairpins_go_to_the_chain_of_the_subnet_or_of_all() {
    let chain = |keys: &str, address: &str| {
        let forwarding = forwarding(keys, MAPPINGS, address).unwrap();
        let hairpin = forwarding.entries().into_iter().find(|entry| !entry.is_port).unwrap();
        match hairpin.element.value.unwrap() {
            ElementValue::Verdict(Verdict::Goto(chain)) => chain,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(chain("{}", "10.1.0.2/24"), "from_10.1.0.0/24");
    assert_eq!(chain("{}", "fd00:1::2/64"), "from_fd00_1__/64");
    assert_eq!(chain(r#"{"masqAll":true}"#, "10.1.0.2/24"), "from_anywhere");
}

#[test]
fn b079_families_without_mappings_have_nothing() {
    let v4_only = r#"[{"hostPort":1,"containerPort":2,"hostIP":"192.0.2.1"}]"#;
    assert!(forwarding("{}", v4_only, "fd00::2/64").is_none());
    assert!(forwarding("{}", v4_only, "10.1.0.2/24").is_some());
    assert!(forwarding("{}", "[]", "10.1.0.2/24").is_none());
}

#[test]
fn networks_with_conditions_have_maps_of_their_own() {
    let keys = r#"{"conditionsV4":["!","-s","192.0.2.0/24"]}"#;
    let own = forwarding(keys, MAPPINGS, "10.1.0.2/24").unwrap();
    assert_eq!(own.version, IpVersion::V4);
    let maps: BTreeSet<_> = own.entries().into_iter().map(|entry| entry.map).collect();
    let half = "43d91f8451058a70";
    let expected = [format!("address_ports_{half}"), "hairpins".into(), format!("ports_{half}")];
    assert_eq!(maps, expected.into());
    assert_eq!(own.network_comment(), format!("{half} conditions of n1"));
    // The other family's mappings stay with everybody's.
    let common = forwarding(keys, MAPPINGS, "fd00::2/64").unwrap();
    assert_eq!(common.scope, Scope::Common);
}

#[test]
fn one_container_is_known_on_all_its_networks() {
    let config = Object::parse("{}").unwrap();
    let runtime = format!("{{\"portMappings\":{MAPPINGS}}}");
    let runtime = Object::parse(&runtime).unwrap();
    let config = Config::parse(&config, Some(&runtime), Strictness::Whole).unwrap();
    let on = |network: &str, container: &str| {
        Forwarding::new(&config, &key(network, container), "10.1.0.2/24".parse().unwrap()).unwrap()
    };
    let (first, second, other) = (on("n1", "c1"), on("n2", "c1"), on("n1", "c2"));
    let held = Held::read(&record(&first), &first.owner);
    assert!(second.is_same_container(&held) && !other.is_same_container(&held));
    assert_ne!(first.owner, second.owner);
    assert_eq!(first.owner, OwnerMark::of(&key("n1", "c1")));
}
