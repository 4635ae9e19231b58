//! Transactions: all or nothing, refusals told by operation, deletion of what may not exist.

#![allow(clippy::unwrap_used)] // Test code throughout.

mod nft_support;

use std::time::Instant;

use nft_support::{assert_contains, private_namespace, ruleset};
use podwire_netlink::nft::{
    Batch, Chain, ChainKind, Comparison, Data, DataType, Element, Expression, Family, Field, Hook,
    NftSocket, Rule, Set, SetId, Table, TableId, UserData, Verdict, priority,
};

const TABLE: TableId<'static> = TableId::new(Family::Ipv4, "podwire");
const PORTS: SetId<'static> = TABLE.set("ports");

fn table_with_set() -> Batch {
    let mut batch = Batch::new();
    batch.add_table(&Table::new(TABLE));
    batch.add_set(&Set::new(PORTS, &[DataType::InetProtocol, DataType::InetService]));
    batch
}

fn port(number: u16) -> Element {
    Element::new(Data::new().protocol(6).port(number))
}

#[test]
fn a_refusal_names_its_operation_and_nothing_is_done() {
    private_namespace();
    let mut socket = NftSocket::open().unwrap();
    let mut batch = table_with_set();
    batch.add_chain(&Chain::regular(TABLE.chain("present")));
    batch.add_rule(&Rule::new(TABLE.chain("absent")).counter());
    batch.add_elements(PORTS, [&port(80)]);
    let error = socket.commit(&batch).unwrap_err();
    assert_eq!(error.operation(), "adding rule to");
    assert_eq!(error.object(), "ip podwire absent");
    assert!(error.is_not_found() && !error.is_unsupported(), "{error}");
    assert_eq!(ruleset(), "");
    // The socket goes on to work.
    socket.commit(&table_with_set()).unwrap();
    assert_contains(&ruleset(), "set ports");
}

#[test]
fn the_operations_may_be_of_several_families() {
    private_namespace();
    let mut batch = Batch::new();
    for family in [Family::Ipv4, Family::Ipv6, Family::Inet, Family::Bridge] {
        let table = TableId::new(family, "podwire");
        batch.create_table(&Table::new(table));
        batch.create_chain(&Chain::regular(table.chain("any")));
    }
    let mut socket = NftSocket::open().unwrap();
    socket.commit(&batch).unwrap();
    let families: Vec<_> =
        socket.tables(None).unwrap().into_iter().map(|table| table.family).collect();
    assert_eq!(families.len(), 4);
    assert_eq!(socket.tables(Some(Family::Bridge)).unwrap().len(), 1);
    let error = socket.commit(&batch).unwrap_err();
    assert!(error.is_exists(), "{error}");
    assert_eq!(error.to_string(), "creating table ip podwire: File exists");
}

#[test]
fn an_empty_batch_is_done() {
    private_namespace();
    NftSocket::open().unwrap().commit(&Batch::new()).unwrap();
}

#[test]
fn a_commit_can_require_that_nothing_changed() {
    private_namespace();
    let mut socket = NftSocket::open().unwrap();
    let before = socket.generation().unwrap();
    let mut batch = table_with_set();
    batch.require_generation(before);
    socket.commit(&batch).unwrap();
    assert_ne!(socket.generation().unwrap(), before);
    let error = socket.commit(&batch).unwrap_err();
    assert!(error.is_restart() && error.is_transient(), "{error}");
}

#[test]
fn what_the_kernel_lacks_is_named() {
    private_namespace();
    let mut socket = NftSocket::open().unwrap();
    let mut batch = table_with_set();
    let chain = TABLE.chain("any");
    batch.add_chain(&Chain::regular(chain));
    let expression = Expression::Unknown { name: "levitate".to_owned(), attributes: Vec::new() };
    batch.add_rule(&Rule::new(chain).counter().expression(expression));
    let error = socket.commit(&batch).unwrap_err();
    assert!(error.is_unsupported() && !error.is_not_found(), "{error}");
    assert_eq!(
        error.to_string(),
        "adding rule to ip podwire any: this kernel lacks the nftables expression \"levitate\" in family ip"
    );

    let mut batch = table_with_set();
    batch.add_chain(&Chain::regular(chain));
    batch.add_rule(&Rule::new(chain).expression(Expression::XtMatch {
        name: "levitation".to_owned(),
        revision: 7,
        info: vec![0; 8],
    }));
    let error = socket.commit(&batch).unwrap_err();
    assert_contains(&error.to_string(), "the xtables match \"levitation\"");

    // A set that isn't there is no lack of the kernel's.
    let mut batch = table_with_set();
    batch.add_chain(&Chain::regular(chain));
    batch.add_rule(&Rule::new(chain).in_set(&[Field::Ipv4Source], "absent"));
    let error = socket.commit(&batch).unwrap_err();
    assert!(error.is_not_found() && !error.is_unsupported(), "{error}");
}

#[test]
fn what_can_not_be_expressed_is_refused_before_sending() {
    private_namespace();
    let mut socket = NftSocket::open().unwrap();
    let faults = [
        (port(80).with_comment(&"x".repeat(252)), "a comment longer than 251 bytes"),
        (port(80).with_comment("a\0b"), "a comment with a NUL in it"),
        (Element::new(Data::from_bytes([0; 65])), "a key or value longer than 64 bytes"),
        (port(80).with_userdata(UserData::from_bytes([0; 255])), "userdata longer than 254 bytes"),
    ];
    for (element, fault) in faults {
        let mut batch = table_with_set();
        batch.add_elements(PORTS, [&element]);
        assert_contains(&socket.commit(&batch).unwrap_err().to_string(), fault);
    }
    let mut batch = table_with_set();
    batch.add_elements(PORTS, [&port(80).with_comment(&"x".repeat(251))]);
    socket.commit(&batch).unwrap();
    assert_contains(&ruleset(), &"x".repeat(251));
}

/// Destroying, on this kernel and as on one before 6.3: present, absent, and with nothing above
/// it there.
#[test]
fn destroying_does_not_mind_what_is_not_there() {
    for old_kernel in [false, true] {
        private_namespace();
        let mut socket = NftSocket::open().unwrap();
        if old_kernel {
            socket.assume_no_destroy();
        }
        let chain = TABLE.chain("any");
        let mut destroy_all = Batch::new();
        destroy_all.destroy_elements(PORTS, [&port(80), &port(81)]);
        destroy_all.destroy_rule(chain, 12345);
        destroy_all.destroy_chain(chain);
        destroy_all.destroy_set(PORTS);
        destroy_all.destroy_table(TABLE);
        socket.commit(&destroy_all).unwrap();

        let mut batch = table_with_set();
        batch.add_chain(&Chain::regular(chain));
        batch.add_elements(PORTS, [&port(80), &port(82)]);
        batch.add_rule(&Rule::new(chain).counter());
        batch.add_rule(&Rule::new(chain).counter().with_comment("stays"));
        socket.commit(&batch).unwrap();

        let first = socket.rules(chain).unwrap().remove(0).handle.unwrap();
        let mut some = Batch::new();
        some.destroy_elements(PORTS, [&port(80), &port(81)]);
        some.destroy_rule(chain, first);
        some.destroy_chain(TABLE.chain("absent"));
        some.destroy_set(TABLE.set("absent"));
        some.destroy_table(TableId::new(Family::Ipv6, "absent"));
        some.add_elements(PORTS, [&port(83)]);
        // Twice: the second time there is nothing left of what is to go.
        socket.commit(&some).unwrap();
        socket.commit(&some).unwrap();
        let mut left = socket.elements(PORTS).unwrap();
        left.sort_by(|one, other| one.key.cmp(&other.key));
        assert_eq!(left, [port(82), port(83)]);
        let rules = socket.rules(chain).unwrap();
        assert_eq!(rules.len(), 1);
        assert_eq!(rules[0].comment().as_deref(), Some("stays"));

        let mut rest = Batch::new();
        rest.flush_chain(chain);
        rest.destroy_chain(chain);
        rest.destroy_elements(PORTS, [&port(82)]);
        rest.destroy_set(PORTS);
        rest.destroy_table(TABLE);
        socket.commit(&rest).unwrap();
        assert_eq!(ruleset(), "");
    }
}

/// A range is deleted by its own bounds, not by a key that it covers.
#[test]
fn destroying_a_range_does_not_take_one_that_covers_it() {
    for old_kernel in [false, true] {
        private_namespace();
        let mut socket = NftSocket::open().unwrap();
        if old_kernel {
            socket.assume_no_destroy();
        }
        let set = TABLE.set("networks");
        let mut batch = Batch::new();
        batch.add_table(&Table::new(TABLE));
        batch.add_set(&Set::new(set, &[DataType::Ipv4Address]).with_intervals());
        let wide = Element::prefix("10.1.0.0/16".parse().unwrap());
        let narrow = Element::prefix("10.1.2.0/24".parse().unwrap());
        batch.add_elements(set, &wide);
        socket.commit(&batch).unwrap();
        let mut batch = Batch::new();
        batch.destroy_elements(set, &narrow);
        socket.commit(&batch).unwrap();
        assert_contains(&ruleset(), "elements = { 10.1.0.0/16 }");
        let mut batch = Batch::new();
        batch.destroy_elements(set, &wide);
        socket.commit(&batch).unwrap();
        assert!(!ruleset().contains("10.1.0.0"));
    }
}

#[test]
fn deleting_minds_what_is_not_there() {
    private_namespace();
    let mut socket = NftSocket::open().unwrap();
    socket.commit(&table_with_set()).unwrap();
    let mut batch = Batch::new();
    batch.delete_elements(PORTS, [&port(80)]);
    let error = socket.commit(&batch).unwrap_err();
    assert!(error.is_not_found());
    assert_eq!(
        error.to_string(),
        "deleting elements of set ip podwire ports: No such file or directory"
    );
}

#[test]
fn an_element_with_another_value_is_refused() {
    private_namespace();
    let mut socket = NftSocket::open().unwrap();
    let map = TABLE.set("map");
    let mut batch = Batch::new();
    batch.add_table(&Table::new(TABLE));
    batch.add_set(&Set::map(map, &[DataType::InetService], &[DataType::Mark]));
    let element = |mark| Element::new(Data::new().port(80)).with_data(Data::new().mark(mark));
    batch.add_elements(map, [&element(1)]);
    socket.commit(&batch).unwrap();
    socket.commit(&batch).unwrap();
    let mut batch = Batch::new();
    batch.add_elements(map, [&element(2)]);
    assert!(socket.commit(&batch).unwrap_err().is_exists());
    // Replaced in one transaction.
    let mut batch = Batch::new();
    batch.delete_elements(map, [&element(1)]);
    batch.create_elements(map, [&element(2)]);
    socket.commit(&batch).unwrap();
    assert_eq!(socket.elements(map).unwrap(), [element(2)]);
}

#[test]
fn rules_go_where_they_are_put() {
    private_namespace();
    let mut socket = NftSocket::open().unwrap();
    let chain = TABLE.chain("any");
    let rule = |comment: &str| Rule::new(chain).counter().with_comment(comment);
    let mut batch = table_with_set();
    batch.add_chain(&Chain::regular(chain));
    batch.add_rule(&rule("b"));
    batch.add_rule(&rule("d"));
    batch.insert_rule(&rule("a"));
    socket.commit(&batch).unwrap();
    let comments = |socket: &mut NftSocket| {
        let rules = socket.rules(chain).unwrap();
        rules.iter().map(|rule| rule.comment().unwrap()).collect::<String>()
    };
    assert_eq!(comments(&mut socket), "abd");
    let handles: Vec<_> =
        socket.rules(chain).unwrap().iter().map(|rule| rule.handle.unwrap()).collect();
    let mut batch = Batch::new();
    batch.add_rule_after(&rule("c"), handles[1]);
    batch.insert_rule_before(&rule("x"), handles[2]);
    batch.replace_rule(&rule("A"), handles[0]);
    socket.commit(&batch).unwrap();
    assert_eq!(comments(&mut socket), "Abcxd");
    let mut batch = Batch::new();
    batch.delete_rule(chain, handles[1]);
    socket.commit(&batch).unwrap();
    assert_eq!(comments(&mut socket), "Acxd");
    let mut batch = Batch::new();
    batch.flush_chain(chain);
    socket.commit(&batch).unwrap();
    assert_eq!(comments(&mut socket), "");
}

#[test]
fn a_used_chain_is_not_deleted() {
    private_namespace();
    let mut socket = NftSocket::open().unwrap();
    let (entry, used) = (TABLE.chain("entry"), TABLE.chain("used"));
    let mut batch = table_with_set();
    batch.add_chain(&Chain::regular(used));
    let (kind, hook) = (ChainKind::Filter, Hook::Input);
    batch.add_chain(&Chain::base(entry, kind, hook, priority::FILTER));
    batch.add_rule(
        &Rule::new(entry)
            .input_interface(Comparison::Equal, "veth0")
            .verdict(Verdict::jump("used")),
    );
    socket.commit(&batch).unwrap();
    let mut batch = Batch::new();
    batch.destroy_chain(used);
    let error = socket.commit(&batch).unwrap_err();
    assert!(error.is_busy(), "{error}");
    assert_eq!(error.object(), "ip podwire used");
}

#[test]
fn ten_thousand_elements_go_in_one_transaction() {
    private_namespace();
    let mut socket = NftSocket::open().unwrap();
    let map = TABLE.set("map");
    let fields = [DataType::InetProtocol, DataType::InetService];
    let mut batch = Batch::new();
    batch.add_table(&Table::new(TABLE));
    batch.add_set(&Set::map(map, &fields, &[DataType::Ipv4Address, DataType::InetService]));
    let target = Data::new().ipv4("10.1.0.5".parse().unwrap()).port(80);
    let elements: Vec<_> = (1..=10_000)
        .map(|number| {
            port(number).with_data(target.clone()).with_comment(&format!("owner {number:0200}"))
        })
        .collect();
    batch.add_elements(map, &elements);
    let start = Instant::now();
    socket.commit(&batch).unwrap();
    println!("added in {:?}", start.elapsed());
    let mut listed = socket.elements(map).unwrap();
    listed.sort_by(|one, other| one.key.cmp(&other.key));
    assert!(listed == elements, "{} elements are listed", listed.len());
    // One more among them, and one less.
    let start = Instant::now();
    let mut batch = Batch::new();
    batch.add_elements(map, [&port(20_000).with_data(target)]);
    batch.destroy_elements(map, [&elements[4999]]);
    socket.commit(&batch).unwrap();
    println!("changed one in {:?}", start.elapsed());
    assert_eq!(socket.element(map, &elements[4999]).unwrap(), None);
    assert_eq!(socket.element(map, &elements[5000]).unwrap().as_ref(), Some(&elements[5000]));
    let mut batch = Batch::new();
    batch.flush_set(map);
    socket.commit(&batch).unwrap();
    assert_eq!(socket.elements(map).unwrap(), []);
}
