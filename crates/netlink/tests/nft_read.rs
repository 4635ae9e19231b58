//! What nft and iptables-nft made, as it is read, and what ours looks like to iptables.

#![allow(clippy::unwrap_used)] // Test code throughout.

mod nft_support;

use nft_support::{assert_contains, nft_load, private_namespace, ruleset, run, shell};
use podwire_netlink::nft::{
    BaseChain, Batch, Chain, ChainKind, Comparison, Data, DataType, Element, Expression, Family,
    Field, Hook, IpVersion, NftSocket, Policy, Rule, Set, SetFlags, TableId, Verdict, xtables,
};

const TABLE: TableId<'static> = TableId::new(Family::Ipv4, "made");

#[test]
fn tables_chains_sets_and_elements_of_nft_are_read() {
    private_namespace();
    nft_load(
        r#"
        table ip made {
            comment "a table"
            map ports {
                type inet_proto . inet_service : ipv4_addr . inet_service
                comment "a map"
                elements = { tcp . 8080 comment "owner" : 10.1.0.5 . 80 }
            }
            map entries { type ifname : verdict; elements = { "veth0" : jump other }; }
            set networks { type ipv4_addr; flags interval; elements = { 10.0.0.0/8 }; }
            set pairs { type ipv4_addr . ipv4_addr; flags interval; elements = { 10.1.0.5 . 10.1.0.0/24 }; }
            chain entry {
                comment "a chain"
                type nat hook postrouting priority srcnat - 5; policy accept;
            }
            chain other { }
        }
        table inet elsewhere { chain entry { type filter hook forward priority filter; policy drop; }; }
        "#,
    );
    let mut socket = NftSocket::open().unwrap();
    assert_eq!(socket.tables(None).unwrap().len(), 2);
    let table = socket.table(TABLE).unwrap().unwrap();
    assert_eq!(table.userdata.comment().as_deref(), Some("a table"));
    assert_eq!(socket.table(TableId::new(Family::Ipv6, "made")).unwrap(), None);

    let chains = socket.chains(TABLE).unwrap();
    assert_eq!(chains.len(), 2);
    let entry = &chains[0];
    assert_eq!(entry.id(), TABLE.chain("entry"));
    assert_eq!(entry.userdata.comment().as_deref(), Some("a chain"));
    let base = BaseChain {
        kind: ChainKind::Nat,
        hook: Hook::Postrouting,
        priority: 95,
        policy: Some(Policy::Accept),
    };
    assert_eq!(entry.base, Some(base));
    assert_eq!(chains[1].base, None);
    assert_eq!(socket.chain(TABLE.chain("entry")).unwrap().as_ref(), Some(entry));
    assert_eq!(socket.chain(TABLE.chain("absent")).unwrap(), None);

    let sets = socket.sets(TABLE).unwrap();
    assert_eq!(sets.len(), 4);
    let ports = socket.set(TABLE.set("ports")).unwrap().unwrap();
    assert_eq!(ports.comment().as_deref(), Some("a map"));
    assert_eq!(ports.flags, SetFlags::MAP);
    let keys = [DataType::InetProtocol, DataType::InetService];
    let values = [DataType::Ipv4Address, DataType::InetService];
    assert!(ports.has_shape_of(&Set::map(TABLE.set("ports"), &keys, &values)));
    assert!(!ports.has_shape_of(&Set::new(TABLE.set("ports"), &keys)));
    assert!(!ports.has_shape_of(&Set::map(TABLE.set("ports"), &values, &keys)));
    let entries = socket.set(TABLE.set("entries")).unwrap().unwrap();
    let fields = [DataType::InterfaceName];
    assert!(entries.has_shape_of(&Set::verdict_map(TABLE.set("entries"), &fields)));
    assert_eq!(socket.set(TABLE.set("absent")).unwrap(), None);

    let pod: std::net::Ipv4Addr = "10.1.0.5".parse().unwrap();
    let element = Element::new(Data::new().protocol(6).port(8080))
        .with_data(Data::new().ipv4(pod).port(80))
        .with_comment("owner");
    assert_eq!(socket.elements(TABLE.set("ports")).unwrap(), std::slice::from_ref(&element));
    let key = Element::new(Data::new().protocol(6).port(8080));
    assert_eq!(socket.element(TABLE.set("ports"), &key).unwrap(), Some(element));
    let key = Element::new(Data::new().protocol(17).port(8080));
    assert_eq!(socket.element(TABLE.set("ports"), &key).unwrap(), None);
    assert_eq!(socket.element(TABLE.set("absent"), &key).unwrap(), None);
    let jump = Element::new(Data::new().interface_name("veth0"));
    let jump = jump.with_verdict(Verdict::jump("other"));
    assert_eq!(socket.elements(TABLE.set("entries")).unwrap(), [jump]);
    let networks = socket.elements(TABLE.set("networks")).unwrap();
    for bound in Element::prefix("10.0.0.0/8".parse().unwrap()) {
        assert!(networks.contains(&bound), "{bound:?} in {networks:?}");
    }
    let covered = Element::new("10.9.9.9".parse::<std::net::Ipv4Addr>().unwrap());
    assert!(socket.element(TABLE.set("networks"), &covered).unwrap().is_some());
    let pairs = socket.elements(TABLE.set("pairs")).unwrap();
    let end = Data::new().ipv4(pod).ipv4("10.1.0.255".parse().unwrap());
    assert_eq!(pairs[0].key_end, Some(end));
}

/// Rules by nft and by our builder are the same, and what we don't know goes through unchanged.
#[test]
fn rules_of_nft_are_read_and_written_back_the_same() {
    private_namespace();
    nft_load(
        r#"
        table ip made {
            map ports { type inet_proto . inet_service : ipv4_addr . inet_service; }
            set pods { type ipv4_addr; }
            map marks { type ipv4_addr : mark; }
            chain other { }
            chain entry {
                type nat hook prerouting priority dstnat;
                fib daddr type local dnat to meta l4proto . th dport map @ports comment "first"
                ip saddr @pods ip daddr != @pods counter
                ip daddr 224.0.0.0/4 return
                meta mark & 0x2000 == 0x2000 jump other
                meta mark set meta mark | 0x2000
                iifname "veth0" goto other
                ct state established,related accept
                ct mark set meta mark
                meta mark set ip saddr map @marks
                tcp dport 80 dnat to 10.1.0.5:8080
                tcp dport 81 redirect to :8081
                tcp dport { 1, 2 } drop
                ip saddr 10.0.0.1-10.0.0.9 limit rate 10/second burst 5 packets log prefix "x" accept
                ip ttl set 5
                numgen random mod 2 vmap { 0 : accept, 1 : drop }
            }
            chain filter {
                type filter hook forward priority filter;
                reject with icmp admin-prohibited
                tcp dport 82 reject with tcp reset
            }
            chain post {
                type nat hook postrouting priority srcnat;
                masquerade fully-random
                meta l4proto tcp masquerade to :1024-65535
                snat to 10.0.0.1-10.0.0.9 persistent
            }
        }
        "#,
    );
    let mut socket = NftSocket::open().unwrap();
    let before = ruleset();
    let rules = socket.rules(TABLE.chain("entry")).unwrap();
    assert_eq!(rules.len(), 15);
    let fields = [Field::TransportProtocol, Field::DestinationPort];
    let ours = Rule::new(TABLE.chain("entry"))
        .destination_is_local(Comparison::Equal)
        .dnat_to_map(IpVersion::V4, &fields, "ports")
        .with_comment("first");
    assert!(rules[0].is_equivalent(&ours), "{:#?}\n{ours:#?}", rules[0]);
    let ours = Rule::new(TABLE.chain("entry"))
        .in_set(&[Field::Ipv4Source], "pods")
        .not_in_set(&[Field::Ipv4Destination], "pods")
        .counter();
    assert!(rules[1].is_equivalent(&ours), "{:#?}\n{ours:#?}", rules[1]);
    assert_eq!(rules[3].target_chain(), Some("other"));
    assert_eq!(rules[5].target_chain(), Some("other"));
    let unknown = |rule: &Rule| {
        let names = rule.expressions.iter().filter_map(|expression| match expression {
            Expression::Unknown { name, .. } => Some(name.clone()),
            _ => None,
        });
        names.collect::<Vec<_>>()
    };
    assert_eq!(unknown(&rules[12]), ["limit", "log"]);
    assert!(rules[..12].iter().all(|rule| unknown(rule).is_empty()));

    // Each rule replaced by what was read of it, but for those that use a set of their own.
    let mut batch = Batch::new();
    let all = socket.table_rules(TABLE).unwrap();
    assert_eq!(all.len(), 20);
    let mut replaced = 0;
    for rule in &all {
        let anonymous = rule.expressions.iter().any(|expression| {
            matches!(expression, Expression::Lookup { set, .. } if set.starts_with("__"))
        });
        if !anonymous {
            batch.replace_rule(rule, rule.handle.unwrap());
            replaced += 1;
        }
    }
    assert_eq!(replaced, 18);
    socket.commit(&batch).unwrap();
    assert_eq!(ruleset(), before);
    let again = socket.table_rules(TABLE).unwrap();
    assert!(all.iter().zip(&again).all(|(one, other)| one.is_equivalent(other)));
}

#[test]
fn rules_of_iptables_are_read() {
    private_namespace();
    shell(
        "iptables-nft -N OURS
         iptables-nft -A FORWARD -m comment --comment 'to ours' -j OURS
         iptables-nft -A OURS -d 10.1.0.5/32 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
         iptables-nft -A OURS -s 10.1.0.5/32 -i veth0 -j ACCEPT
         iptables-nft -t nat -A PREROUTING -p tcp -j DNAT --to-destination 10.1.0.5:80",
    );
    let mut socket = NftSocket::open().unwrap();
    let filter = TableId::new(Family::Ipv4, "filter");
    let forward = socket.rules(filter.chain("FORWARD")).unwrap();
    assert_eq!(forward[0].comment().as_deref(), Some("to ours"));
    assert_eq!(forward[0].target_chain(), Some("OURS"));
    let rules = socket.rules(filter.chain("OURS")).unwrap();
    let pod = "10.1.0.5/32".parse().unwrap();
    let ours = Rule::new(filter.chain("OURS"))
        .destination(Comparison::Equal, pod)
        .xt_conntrack(xtables::state::RELATED | xtables::state::ESTABLISHED)
        .counter()
        .verdict(Verdict::Accept);
    assert!(rules[0].is_equivalent(&ours), "{:#?}\n{ours:#?}", rules[0]);
    let nat = TableId::new(Family::Ipv4, "nat");
    let translating = socket.rules(nat.chain("PREROUTING")).unwrap();
    let target = translating[0].expressions.iter().any(
        |expression| matches!(expression, Expression::XtTarget { name, .. } if name == "DNAT"),
    );
    assert!(target, "{:#?}", translating[0]);
}

/// Rules of ours in iptables' chains, in the form that iptables lists and can delete.
#[test]
fn iptables_lists_our_rules_in_its_chains() {
    private_namespace();
    // iptables makes the table and its chains.
    run("iptables-nft", &["-P", "FORWARD", "DROP"]);
    run("iptables-nft", &["-A", "FORWARD", "-s", "192.0.2.1/32", "-j", "ACCEPT"]);
    let filter = TableId::new(Family::Ipv4, "filter");
    let (forward, ours) = (filter.chain("FORWARD"), filter.chain("OURS"));
    let pod = "10.1.0.5/32".parse().unwrap();
    let equal = Comparison::Equal;
    let mut batch = Batch::new();
    batch.add_chain(&Chain::regular(ours));
    batch.insert_rule(
        &Rule::new(forward).xt_comment("our rules").counter().verdict(Verdict::jump("OURS")),
    );
    batch.add_rule(
        &Rule::new(ours)
            .destination(equal, pod)
            .xt_conntrack(xtables::state::RELATED | xtables::state::ESTABLISHED)
            .counter()
            .verdict(Verdict::Accept)
            .with_comment("userdata"),
    );
    batch.add_rule(
        &Rule::new(ours)
            .input_interface(equal, "veth0")
            .output_interface(Comparison::NotEqual, "eth0")
            .source(equal, pod)
            .counter()
            .verdict(Verdict::Accept),
    );
    batch.add_rule(
        &Rule::new(ours)
            .destination(Comparison::NotEqual, "10.1.0.0/20".parse().unwrap())
            .mark(equal, 0x2000, 0x2000)
            .counter()
            .verdict(Verdict::Drop),
    );
    NftSocket::open().unwrap().commit(&batch).unwrap();
    let listed = run("iptables-nft", &["-S"]);
    for line in [
        "-A FORWARD -m comment --comment \"our rules\" -j OURS\n",
        "-A OURS -d 10.1.0.5/32 -m conntrack --ctstate RELATED,ESTABLISHED -m comment --comment userdata -j ACCEPT\n",
        "-A OURS -s 10.1.0.5/32 -i veth0 ! -o eth0 -j ACCEPT\n",
        "-A OURS ! -d 10.1.0.0/20 -m mark --mark 0x2000/0x2000 -j DROP\n",
    ] {
        assert_contains(&listed, line);
    }
    let ours_first = listed.find("-A FORWARD -m comment").unwrap();
    assert!(ours_first < listed.find("-A FORWARD -s 192.0.2.1").unwrap());
    // iptables works on the table and on our rules as on its own.
    let arguments = ["-D", "OURS", "-s", "10.1.0.5/32", "-i", "veth0", "!", "-o", "eth0"];
    run("iptables-nft", &[arguments.as_slice(), &["-j", "ACCEPT"]].concat());
    assert!(!run("iptables-nft", &["-S"]).contains("veth0"));
}
