//! Elements of nftables maps: the masquerade of an address, and two ports that
//! lead to it, each with its hairpin.

use std::net::Ipv4Addr;

use podwire_netlink::nft::{
    Batch, Chain, ChainKind, Comparison, Data, DataType, Element, Family, Field, Hook, IpVersion,
    NftSocket, Rule, Set, Table, TableId, Verdict, priority,
};

use crate::Outcome;

const TABLE: TableId<'static> = TableId::new(Family::Ipv4, "floor");
const SOURCES: &str = "sources";
const PORTS: &str = "ports";
const HAIRPINS: &str = "hairpins";
const LEAVING: &str = "leaving";
const TCP: u8 = 6;

/// What stands there before the first call: the table, its maps and chains.
pub(crate) fn prepare() -> Outcome {
    let mut batch = Batch::new();
    batch.add_table(&Table::new(TABLE));
    let (address, port) = (DataType::Ipv4Address, DataType::InetService);
    batch.add_set(&Set::verdict_map(TABLE.set(SOURCES), &[address]));
    batch.add_set(&Set::map(TABLE.set(PORTS), &[DataType::InetProtocol, port], &[address, port]));
    batch.add_set(&Set::verdict_map(TABLE.set(HAIRPINS), &[address, port]));
    batch.add_chain(&Chain::regular(TABLE.chain(LEAVING)));
    batch.add_rule(&Rule::new(TABLE.chain(LEAVING)).masquerade());
    let entry = TABLE.chain("postrouting");
    batch.add_chain(&Chain::base(entry, ChainKind::Nat, Hook::Postrouting, priority::SOURCE_NAT));
    let source = Field::source(IpVersion::V4);
    batch.add_rule(&Rule::new(entry).verdict_map(&[source], SOURCES));
    let entry = TABLE.chain("prerouting");
    let hook = Hook::Prerouting;
    batch.add_chain(&Chain::base(entry, ChainKind::Nat, hook, priority::DESTINATION_NAT));
    let fields = [Field::TransportProtocol, Field::DestinationPort];
    batch.add_rule(&Rule::new(entry).destination_is_local(Comparison::Equal).dnat_to_map(
        IpVersion::V4,
        &fields,
        PORTS,
    ));
    Ok(NftSocket::open()?.commit(&batch)?)
}

/// The elements of an address, in one transaction.
pub(crate) fn add(address: &str, ports: bool, masquerade: bool) -> Outcome {
    let address = parse(address)?;
    let mut batch = Batch::new();
    if masquerade {
        let element = Element::new(Data::new().ipv4(address)).with_verdict(Verdict::goto(LEAVING));
        batch.create_elements(TABLE.set(SOURCES), [&element]);
    }
    if ports {
        let [first, second] = mapped(address);
        let to = |port| Data::new().ipv4(address).port(port);
        let pair = [first.with_data(to(80)), second.with_data(to(81))];
        batch.create_elements(TABLE.set(PORTS), &pair);
        let hairpins = hairpins(address).map(|key| key.with_verdict(Verdict::goto(LEAVING)));
        batch.create_elements(TABLE.set(HAIRPINS), &hairpins);
    }
    Ok(NftSocket::open()?.commit(&batch)?)
}

/// The same elements gone, in one transaction. Closing the socket waits for the
/// grace period that the transaction began: whoever has more to do keeps it open
/// meanwhile.
pub(crate) fn remove(
    address: &str,
    ports: bool,
    masquerade: bool,
) -> Result<NftSocket, Box<dyn std::error::Error>> {
    let address = parse(address)?;
    let mut batch = Batch::new();
    if masquerade {
        batch.delete_elements(TABLE.set(SOURCES), [&Element::new(Data::new().ipv4(address))]);
    }
    if ports {
        batch.delete_elements(TABLE.set(PORTS), &mapped(address));
        batch.delete_elements(TABLE.set(HAIRPINS), &hairpins(address));
    }
    let mut socket = NftSocket::open()?;
    socket.commit(&batch)?;
    Ok(socket)
}

/// Two ports of the host that are this address's alone.
fn mapped(address: Ipv4Addr) -> [Element; 2] {
    let [.., high, low] = address.octets();
    let base = 8000 + (u16::from(high % 128) << 8 | u16::from(low)) * 2 % 50_000;
    [base, base + 1].map(|port| Element::new(Data::new().protocol(TCP).port(port)))
}

fn hairpins(address: Ipv4Addr) -> [Element; 2] {
    [80, 81].map(|port| Element::new(Data::new().ipv4(address).port(port)))
}

fn parse(address: &str) -> Result<Ipv4Addr, Box<dyn std::error::Error>> {
    Ok(address.split('/').next().unwrap_or_default().parse()?)
}
