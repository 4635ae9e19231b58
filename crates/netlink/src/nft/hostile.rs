//! Answers that no kernel gives: reading them must never panic.

use proptest::prelude::*;

use super::batch::{Batch, Operation};
use super::{
    Chain, ChainId, ChainKind, Comparison, Data, DataType, Element, Family, Field, Hook, IpVersion,
    Rule, Set, Table, TableId, UserData, decode, diagnose, read_everything,
};
use crate::error::Refusal;
use crate::message::HEADER;
use rustix::io::Errno;

const TABLE: TableId<'static> = TableId::new(Family::Ipv4, "podwire");
const CHAIN: ChainId<'static> = TABLE.chain("any");

/// One message of every kind, with most expressions in it.
fn batch() -> Batch {
    let mut batch = Batch::new();
    batch.add_table(&Table::new(TABLE).with_comment("comment"));
    batch.add_chain(&Chain::base(CHAIN, ChainKind::Nat, Hook::Prerouting, -99));
    let fields = [Field::TransportProtocol, Field::DestinationPort];
    batch.add_rule(
        &Rule::new(CHAIN)
            .destination_is_local(Comparison::Equal)
            .source(Comparison::NotEqual, "10.0.0.0/9".parse().unwrap())
            .mark(Comparison::Equal, 1, 3)
            .set_mark(1, 3)
            .conntrack_state(6)
            .counter()
            .xt_conntrack(6)
            .dnat_to_map(IpVersion::V4, &fields, "ports")
            .masquerade()
            .with_comment("comment"),
    );
    let ports = TABLE.set("ports");
    let set = Set::map(
        ports,
        &[DataType::InetProtocol, DataType::InetService],
        &[DataType::Ipv4Address, DataType::InetService],
    );
    batch.add_set(&Set { size: Some(4), ..set.with_intervals().with_comment("comment") });
    let key = Data::new().protocol(6).port(80);
    let element = Element::new(key.clone()).with_key_end(key.clone()).with_data(key);
    batch.add_elements(ports, [&element.with_comment("comment")]);
    batch
}

fn bodies() -> Vec<Vec<u8>> {
    let batch = batch();
    let body = |operation: &Operation| batch.encoded.bytes()[operation.range.clone()].to_vec();
    batch.operations.iter().map(body).collect()
}

/// What our encoder writes, our decoder reads: the messages of both ways have the same form.
#[test]
fn what_is_written_is_read_back() {
    let bodies = bodies();
    let payload = |index: usize| &bodies[index][HEADER..];
    assert_eq!(decode::table(payload(0)).unwrap().unwrap().id(), TABLE);
    let chain = decode::chain(payload(1)).unwrap().unwrap();
    assert_eq!(chain.base.unwrap().priority, -99);
    let rule = decode::rule(payload(2)).unwrap().unwrap();
    assert_eq!(rule.comment().as_deref(), Some("comment"));
    assert_eq!(rule.expressions.len(), 21);
    let set = decode::set(payload(3)).unwrap().unwrap();
    assert_eq!((set.size, set.comment().as_deref()), (Some(4), Some("comment")));
    let elements = decode::elements(payload(4)).unwrap();
    assert_eq!(elements[0].key_end.as_ref(), Some(&elements[0].key));
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(mut bytes: Vec<u8>) {
        read_everything(&bytes);
        if let Some(first) = bytes.first_mut() {
            *first = Family::Ipv4.number();
        }
        read_everything(&bytes);
        let _ = UserData::from_bytes(bytes).comment();
    }

    #[test]
    fn damaged_messages_are_read_without_panic(
        which in 0_usize..5,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        keep: prop::sample::Index,
    ) {
        let mut payload = bodies()[which][HEADER..].to_vec();
        for (index, value) in damage {
            let index = index.index(payload.len());
            payload[index] = value;
        }
        read_everything(&payload);
        payload.truncate(keep.index(payload.len()));
        read_everything(&payload);
    }

    #[test]
    fn refusals_that_point_anywhere_are_understood_without_panic(
        which in 0_usize..5,
        kind in 0_u16..32,
        offset: u32,
        near in 0_u32..1024,
    ) {
        for offset in [offset, near] {
            let refusal = Refusal { errno: Errno::NOENT, message: None, offset: Some(offset) };
            let _ = diagnose::cause(refusal, kind, &bodies()[which]);
        }
    }
}
