//! What is written through netlink, as nft prints it.

#![allow(clippy::unwrap_used)] // Test code throughout.

mod nft_support;

use nft_support::{assert_contains, private_namespace, ruleset, run};
use podwire_netlink::nft::{
    Batch, Chain, ChainKind, Comparison, Data, DataType, Element, Family, Field, Hook, IpVersion,
    NatFlags, NftSocket, Policy, Rule, Set, Table, TableId, Verdict, conntrack_state,
    conntrack_status, priority,
};

const TABLE: TableId<'static> = TableId::new(Family::Ipv4, "podwire");

fn commit(batch: &Batch) {
    NftSocket::open().unwrap().commit(batch).unwrap();
}

/// Port mappings: maps with one and with both keys, for IPv4 and IPv6.
#[test]
fn port_maps_are_listed_as_meant() {
    private_namespace();
    let mut batch = Batch::new();
    for (family, version, address) in
        [(Family::Ipv4, IpVersion::V4, "10.1.0.5"), (Family::Ipv6, IpVersion::V6, "fd00::5")]
    {
        let table = TableId::new(family, "podwire");
        let address: std::net::IpAddr = address.parse().unwrap();
        let address_type = Field::destination(version).data_type();
        batch.add_table(&Table::new(table).with_comment("port mappings"));
        let ports = [DataType::InetProtocol, DataType::InetService];
        let value = [address_type, DataType::InetService];
        batch.add_set(&Set::map(table.set("ports"), &ports, &value).with_comment("any address"));
        let keys = [address_type, DataType::InetProtocol, DataType::InetService];
        batch.add_set(&Set::map(table.set("addresses"), &keys, &value));
        let chain = table.chain("prerouting");
        let place = (ChainKind::Nat, Hook::Prerouting, priority::DESTINATION_NAT + 1);
        batch.add_chain(&Chain::base(chain, place.0, place.1, place.2).with_comment("entry"));
        batch.flush_chain(chain);
        let fields = [Field::TransportProtocol, Field::DestinationPort];
        batch.add_rule(
            &Rule::new(chain)
                .destination_is_local(Comparison::Equal)
                .dnat_to_map(version, &fields, "ports")
                .with_comment("a rule"),
        );
        let fields =
            [Field::destination(version), Field::TransportProtocol, Field::DestinationPort];
        batch.add_rule(&Rule::new(chain).dnat_to_map(version, &fields, "addresses"));
        let target = Data::new().address(address).port(80);
        batch.add_elements(
            table.set("ports"),
            [&Element::new(Data::new().protocol(6).port(8080))
                .with_data(target.clone())
                .with_comment("owner")],
        );
        batch.add_elements(
            table.set("addresses"),
            [&Element::new(Data::new().address(address).protocol(17).port(53)).with_data(target)],
        );
    }
    commit(&batch);
    commit(&batch);
    let listed = ruleset();
    for part in [
        "table ip podwire { comment \"port mappings\"",
        "map ports { type inet_proto . inet_service : ipv4_addr . inet_service comment \"any address\"",
        "elements = { tcp . 8080 comment \"owner\" : 10.1.0.5 . 80 }",
        "map addresses { type ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service",
        "elements = { 10.1.0.5 . udp . 53 : 10.1.0.5 . 80 }",
        "chain prerouting { comment \"entry\" type nat hook prerouting priority dstnat + 1; policy accept;",
        "fib daddr type local dnat ip to meta l4proto . th dport map @ports comment \"a rule\"",
        "dnat ip to ip daddr . meta l4proto . th dport map @addresses",
        "map ports { type inet_proto . inet_service : ipv6_addr . inet_service",
        "elements = { tcp . 8080 comment \"owner\" : fd00::5 . 80 }",
        "elements = { fd00::5 . udp . 53 : fd00::5 . 80 }",
        "fib daddr type local dnat ip6 to meta l4proto . th dport map @ports",
        "dnat ip6 to ip6 daddr . meta l4proto . th dport map @addresses",
    ] {
        assert_contains(&listed, part);
    }
    // nft reads back what it printed: nothing in it is only printable.
    let printed = run("nft", &["list", "ruleset"]);
    run("nft", &["flush", "ruleset"]);
    nft_support::nft_load(&printed);
    assert_eq!(ruleset(), listed);
    // And JSON output, which has a printer of its own, works too.
    assert_contains(&run("nft", &["-j", "list", "ruleset"]), "\"fd00::5\"");
}

/// Every statement that the rule builder has.
#[test]
fn statements_are_listed_as_meant() {
    private_namespace();
    let mut batch = Batch::new();
    batch.add_table(&Table::new(TABLE));
    let filter = TABLE.chain("filter");
    let output = TABLE.chain("translate");
    let other = TABLE.chain("other");
    batch.add_chain(&Chain::regular(other));
    let hook = (ChainKind::Filter, Hook::Forward, priority::FILTER);
    batch.add_chain(&Chain::base(filter, hook.0, hook.1, hook.2).with_policy(Policy::Drop));
    let hook = (ChainKind::Nat, Hook::Output, priority::DESTINATION_NAT);
    batch.add_chain(&Chain::base(output, hook.0, hook.1, hook.2));
    let net = |text: &str| text.parse().unwrap();
    let (equal, other_than) = (Comparison::Equal, Comparison::NotEqual);
    let accept = Verdict::Accept;
    let rules = [
        (
            Rule::new(filter).source(equal, net("10.1.0.5/32")).verdict(accept.clone()),
            "ip saddr 10.1.0.5 accept",
        ),
        (
            Rule::new(filter).source(other_than, net("10.1.0.0/24")).verdict(Verdict::Drop),
            "ip saddr != 10.1.0.0/24 drop",
        ),
        (
            Rule::new(filter).destination(equal, net("224.0.0.0/4")).verdict(Verdict::Return),
            "ip daddr 224.0.0.0/4 return",
        ),
        (
            Rule::new(filter).destination(other_than, net("10.0.0.0/13")).counter(),
            "ip daddr != 10.0.0.0/13 counter packets 0 bytes 0",
        ),
        (
            Rule::new(filter)
                .input_interface(equal, "veth0")
                .output_interface(other_than, "eth0")
                .verdict(Verdict::jump("other")),
            "iifname \"veth0\" oifname != \"eth0\" jump other",
        ),
        (
            Rule::new(filter).field(Field::InputInterface, equal, Data::from_bytes(*b"eth")),
            "iifname \"eth*\"",
        ),
        (
            Rule::new(filter).protocol(6).destination_port(80).verdict(Verdict::goto("other")),
            "tcp dport 80 goto other",
        ),
        (Rule::new(filter).mark(equal, 0x2000, 0x2000), "meta mark & 0x00002000 == 0x00002000"),
        (Rule::new(filter).mark(other_than, 5, u32::MAX), "meta mark != 0x00000005"),
        (Rule::new(filter).set_mark(0x2000, 0x2000), "meta mark set meta mark | 0x00002000"),
        (Rule::new(filter).set_mark(7, u32::MAX), "meta mark set 0x00000007"),
        (
            Rule::new(filter)
                .conntrack_state(conntrack_state::ESTABLISHED | conntrack_state::RELATED)
                .verdict(accept),
            "ct state established,related accept",
        ),
        (Rule::new(filter).conntrack_status(conntrack_status::DESTINATION_NAT), "ct status dnat"),
        (Rule::new(filter).destination_is_local(other_than), "fib daddr type != local"),
        (
            Rule::new(output).protocol(6).dnat("10.1.0.5".parse().unwrap(), Some(80)),
            "meta l4proto tcp dnat to 10.1.0.5:80",
        ),
        (Rule::new(output).dnat("10.1.0.6".parse().unwrap(), None), "dnat to 10.1.0.6"),
    ];
    for (rule, _) in &rules {
        batch.add_rule(rule);
    }
    commit(&batch);
    let listed = ruleset();
    assert_contains(&listed, "type filter hook forward priority filter; policy drop;");
    for (_, expected) in &rules {
        assert_contains(&listed, expected);
    }
}

/// Masquerade by sets: addresses, prefixes, and pairs with a prefix in them.
#[test]
fn masquerade_sets_are_listed_as_meant() {
    private_namespace();
    let mut batch = Batch::new();
    batch.add_table(&Table::new(TABLE));
    let chain = TABLE.chain("postrouting");
    let place = (ChainKind::Nat, Hook::Postrouting, priority::SOURCE_NAT);
    batch.add_chain(&Chain::base(chain, place.0, place.1, place.2));
    let address = DataType::Ipv4Address;
    batch.add_set(&Set::new(TABLE.set("pods"), &[address]));
    batch.add_set(&Set::new(TABLE.set("networks"), &[address]).with_intervals());
    batch.add_set(&Set::new(TABLE.set("pairs"), &[address, address]).with_intervals());
    let pod: std::net::Ipv4Addr = "10.1.0.5".parse().unwrap();
    batch.add_elements(TABLE.set("pods"), [&Element::new(pod).with_comment("owner")]);
    batch.add_elements(TABLE.set("networks"), &Element::prefix("10.1.0.0/16".parse().unwrap()));
    batch.add_elements(TABLE.set("networks"), &Element::prefix("240.0.0.0/4".parse().unwrap()));
    let least = Data::new().ipv4(pod).ipv4("10.1.0.0".parse().unwrap());
    let greatest = Data::new().ipv4(pod).ipv4("10.1.0.255".parse().unwrap());
    let pair = Element::new(least).with_key_end(greatest).with_comment("own network");
    batch.add_elements(TABLE.set("pairs"), [&pair]);
    batch.add_rule(
        &Rule::new(chain)
            .in_set(&[Field::Ipv4Source, Field::Ipv4Destination], "pairs")
            .verdict(Verdict::Return),
    );
    batch.add_rule(
        &Rule::new(chain)
            .in_set(&[Field::Ipv4Source], "pods")
            .not_in_set(&[Field::Ipv4Destination], "networks")
            .masquerade_with(NatFlags::FULLY_RANDOM),
    );
    let net = "10.9.0.0/16".parse().unwrap();
    batch.add_rule(&Rule::new(chain).source(Comparison::Equal, net).masquerade());
    commit(&batch);
    let listed = ruleset();
    for part in [
        "elements = { 10.1.0.5 comment \"owner\" }",
        "flags interval elements = { 10.1.0.0/16, 240.0.0.0/4 }",
        "type ipv4_addr . ipv4_addr flags interval elements = { 10.1.0.5 . 10.1.0.0/24 comment \"own network\" }",
        "ip saddr . ip daddr @pairs return",
        "ip saddr @pods ip daddr != @networks masquerade fully-random",
        "ip saddr 10.9.0.0/16 masquerade",
    ] {
        assert_contains(&listed, part);
    }
}

/// A bridge's check that a port only sends from its own hardware address.
#[test]
fn bridge_checks_are_listed_as_meant() {
    private_namespace();
    let table = TableId::new(Family::Bridge, "podwire");
    let mut batch = Batch::new();
    batch.add_table(&Table::new(table));
    let (checked, own) = (table.set("checked"), table.set("own"));
    batch.add_set(&Set::verdict_map(checked, &[DataType::InterfaceName]));
    batch.add_set(&Set::new(own, &[DataType::EtherAddress, DataType::InterfaceName]));
    let (entry, check) = (table.chain("prerouting"), table.chain("check"));
    batch.add_chain(&Chain::regular(check));
    let place = (ChainKind::Filter, Hook::Prerouting, priority::BRIDGE_DESTINATION_NAT);
    batch.add_chain(&Chain::base(entry, place.0, place.1, place.2));
    batch.add_rule(&Rule::new(entry).verdict_map(&[Field::InputInterface], "checked"));
    batch.add_rule(
        &Rule::new(check)
            .in_set(&[Field::EtherSource, Field::InputInterface], "own")
            .verdict(Verdict::Return),
    );
    batch.add_rule(&Rule::new(check).ether_type(Comparison::Equal, 0x0806).verdict(Verdict::Drop));
    batch.add_elements(
        checked,
        [&Element::new(Data::new().interface_name("veth0")).with_verdict(Verdict::goto("check"))],
    );
    let address = [0x02, 0, 0, 0, 0, 1];
    batch.add_elements(own, [&Element::new(Data::new().ether(address).interface_name("veth0"))]);
    commit(&batch);
    let listed = ruleset();
    for part in [
        "map checked { type ifname : verdict elements = { \"veth0\" : goto check } }",
        "set own { type ether_addr . ifname elements = { 02:00:00:00:00:01 . \"veth0\" } }",
        "iifname vmap @checked",
        "ether saddr . iifname @own return",
        "ether type arp drop",
    ] {
        assert_contains(&listed, part);
    }
}
