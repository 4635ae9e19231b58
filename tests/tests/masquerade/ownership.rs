//! Whose masquerade it is: DEL, CHECK, re-ADD, and interference.

use std::time::Instant;

use podwire_plugin::Resource;
use podwire_resources::Kernel;
use podwire_resources::masquerade::available;

use crate::lab::{Lab, add, check, del, key, masquerade, masquerade_of};

#[test]
fn b053_del_by_the_owner_alone_leaves_empty_tables() {
    let lab = Lab::new();
    let before = lab.world.snapshot();
    add("c1", &["10.1.0.2/24", "fd00:1::2/64"]);
    add("c2", &["10.1.0.3/24", "10.9.0.3/16"]);
    assert!(lab.ruleset().contains("10.1.0.2 comment"), "{}", lab.ruleset());
    del("c1");
    assert!(!lab.ruleset().contains("10.1.0.2"), "{}", lab.ruleset());
    assert!(check("c2", &["10.1.0.3/24", "10.9.0.3/16"]).is_empty());
    del("c2");
    lab.world.snapshot().since(&before).beyond_residue(&[]).assert_empty();
    assert!(!lab.ruleset().contains("leaving"), "{}", lab.ruleset());
    // A second DEL, and one of an attachment that never was.
    del("c2");
    del("c3");
}

#[test]
fn what_nft_lists_it_can_read_back() {
    let lab = Lab::new();
    add("c1", &["10.1.0.2/24", "fd00:1::2/64"]);
    let listed = lab.ruleset();
    let file = lab.world.write("ruleset", &listed);
    lab.world.exec(&["nft", "flush", "ruleset"]);
    lab.world.exec(&["nft", "-f", file.to_str().unwrap()]);
    assert_eq!(lab.ruleset(), listed);
    // Saved and restored, it still knows its owner.
    assert!(check("c1", &["10.1.0.2/24", "fd00:1::2/64"]).is_empty());
    del("c1");
    assert!(!lab.ruleset().contains("10.1.0.2"));
}

#[test]
fn b020_a_late_del_leaves_the_new_owner_alone() {
    let lab = Lab::new();
    add("old", &["10.1.0.2/24", "fd00:1::2/64"]);
    add("new", &["10.1.0.2/24", "fd00:1::2/64"]);
    for _ in 0..2 {
        del("old");
        assert!(check("new", &["10.1.0.2/24", "fd00:1::2/64"]).is_empty());
    }
    let text = check("old", &["10.1.0.2/24"])[0].to_string();
    assert!(text.contains("n1/old/eth0") && text.contains("n1/new/eth0"), "{text}");
    del("new");
    assert!(!lab.ruleset().contains("10.1.0.2"));
}

#[test]
fn an_owner_keeps_the_addresses_that_nobody_else_was_given() {
    let lab = Lab::new();
    add("old", &["10.1.0.2/24", "10.1.0.3/24"]);
    add("new", &["10.1.0.3/24"]);
    assert!(check("old", &["10.1.0.2/24"]).is_empty());
    assert!(check("new", &["10.1.0.3/24"]).is_empty());
    del("old");
    assert!(check("new", &["10.1.0.3/24"]).is_empty());
    assert!(!lab.ruleset().contains("10.1.0.2 "), "{}", lab.ruleset());
}

#[test]
fn an_add_again_replaces_what_the_first_one_made() {
    let lab = Lab::new();
    add("c1", &["10.1.0.2/24", "10.1.0.3/24"]);
    add("c1", &["10.1.0.2/24", "10.1.0.3/24"]);
    assert!(check("c1", &["10.1.0.2/24", "10.1.0.3/24"]).is_empty());
    add("c1", &["10.7.0.2/24"]);
    assert!(check("c1", &["10.7.0.2/24"]).is_empty());
    let listed = lab.ruleset();
    assert!(!listed.contains("10.1.0"), "{listed}");
    del("c1");
}

#[test]
fn two_interfaces_of_one_container_are_two_owners() {
    let lab = Lab::new();
    let mut kernel = Kernel::new(None).unwrap();
    let mut first = masquerade_of(&key("n1", "c1", "eth0"), &["10.1.0.2/24"]);
    let mut second = masquerade_of(&key("n1", "c1", "eth1"), &["10.1.0.3/24"]);
    first.make(&mut kernel).unwrap();
    second.make(&mut kernel).unwrap();
    first.remove(&mut kernel).unwrap();
    assert!(second.check(&mut kernel).unwrap().is_empty());
    second.remove(&mut kernel).unwrap();
    assert!(!lab.ruleset().contains("10.1.0.3"));
}

#[test]
fn b076_after_a_flush_check_fails_and_del_succeeds() {
    let lab = Lab::new();
    let addresses = ["10.1.0.2/24", "fd00:1::2/64"];
    add("c1", &addresses);
    assert!(check("c1", &addresses).is_empty());
    lab.world.exec(&["nft", "flush", "ruleset"]);
    let found: Vec<_> = check("c1", &addresses).iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("masquerade of 10.1.0.2"), "{found:?}");
    assert!(found[0].ends_with("is missing"), "{found:?}");
    del("c1");
    assert_eq!(lab.ruleset(), "");
}

#[test]
fn b076_a_part_taken_away_is_named_and_del_removes_the_rest() {
    let breakages: [(&str, &str); 6] = [
        ("flush chain ip podwire_masquerade postrouting", "leave multicast"),
        (
            "flush chain ip podwire_masquerade leaving_10.1.0.0_24",
            "all but what is for 10.1.0.0/24",
        ),
        ("add rule ip podwire_masquerade postrouting accept", "leave multicast"),
        ("delete element ip podwire_masquerade sources { 10.1.0.2 }", "masquerade of 10.1.0.2"),
        ("flush map ip podwire_masquerade sources", "masquerade of 10.1.0.2"),
        ("delete table ip podwire_masquerade", "masquerade of 10.1.0.2"),
    ];
    for (breakage, expected) in breakages {
        let lab = Lab::new();
        add("c1", &["10.1.0.2/24"]);
        let command: Vec<_> = std::iter::once("nft").chain(breakage.split(' ')).collect();
        lab.world.exec(&command);
        let found: Vec<_> = check("c1", &["10.1.0.2/24"]).iter().map(ToString::to_string).collect();
        assert!(found.iter().any(|text| text.contains(expected)), "{breakage}: {found:?}");
        // The next ADD mends it for all.
        add("c2", &["10.1.0.3/24"]);
        assert!(check("c2", &["10.1.0.3/24"]).is_empty(), "{breakage}");
        del("c1");
        del("c2");
        assert!(!lab.ruleset().contains("10.1.0."), "{breakage}: {}", lab.ruleset());
    }
}

#[test]
fn b076_lost_records_of_owners_do_not_block_del() {
    let lab = Lab::new();
    add("c1", &["10.1.0.2/24"]);
    lab.world.exec(&["nft", "flush", "set", "ip", "podwire_masquerade", "owners"]);
    del("c1");
    // The element can't be found by its owner any more; the next ADD of the
    // address takes it over.
    add("c2", &["10.1.0.2/24"]);
    assert!(check("c2", &["10.1.0.2/24"]).is_empty());
    del("c2");
    assert!(!lab.ruleset().contains("10.1.0.2"), "{}", lab.ruleset());
}

#[test]
fn foreign_tables_are_left_alone() {
    let lab = Lab::new();
    let foreign = "table ip nat { chain POSTROUTING { type nat hook postrouting priority 100; \
                   ip saddr 10.1.0.2 accept comment \"foreign\"; }; }";
    lab.world.exec(&["nft", foreign]);
    let before = lab.world.snapshot();
    add("c1", &["10.1.0.2/24"]);
    del("c1");
    lab.world.snapshot().since(&before).beyond_residue(&[]).assert_empty();
}

#[test]
fn a_set_of_another_shape_is_an_error_that_names_it() {
    let lab = Lab::new();
    lab.world.exec(&["nft", "add", "table", "ip", "podwire_masquerade"]);
    let set = "add set ip podwire_masquerade sources { type inet_service; }";
    lab.world.exec(&["nft", set]);
    let before = lab.world.snapshot();
    let mut wanted = masquerade("c1", &["10.1.0.2/24"]);
    let error = wanted.make(&mut Kernel::new(None).unwrap()).unwrap_err();
    assert!(error.msg.contains("podwire_masquerade sources"), "{error}");
    lab.world.snapshot().since(&before).assert_empty();
}

#[test]
fn status_tries_it_out_and_leaves_no_trace() {
    let lab = Lab::new();
    let before = lab.world.snapshot();
    available(&mut Kernel::new(None).unwrap()).unwrap();
    lab.world.snapshot().since(&before).assert_empty();
    add("c1", &["10.1.0.2/24"]);
    let before = lab.world.snapshot();
    available(&mut Kernel::new(None).unwrap()).unwrap();
    lab.world.snapshot().since(&before).assert_empty();
}

#[test]
fn the_cost_of_one_more_does_not_grow_with_a_thousand() {
    let lab = Lab::new();
    let mut kernel = Kernel::new(None).unwrap();
    let mut time = |numbers: std::ops::Range<u32>, work: &dyn Fn(&mut Kernel, u32)| {
        let started = Instant::now();
        numbers.clone().for_each(|number| work(&mut kernel, number));
        started.elapsed() / (numbers.end - numbers.start)
    };
    let address = |number: u32| format!("10.1.{}.{}/16", number / 250, number % 250 + 1);
    let add = |kernel: &mut Kernel, number: u32| {
        masquerade(&format!("c{number}"), &[&address(number)]).make(kernel).unwrap();
    };
    let del = |kernel: &mut Kernel, number: u32| {
        masquerade(&format!("c{number}"), &[]).remove(kernel).unwrap();
    };
    let few = time(0..100, &add);
    time(100..900, &add);
    let many = time(900..1000, &add);
    let rules = lab.world.nft_json(&["list", "table", "ip", "podwire_masquerade"]);
    let rules = rules["nftables"].as_array().unwrap();
    assert_eq!(rules.iter().filter(|object| object.get("rule").is_some()).count(), 4);
    let del_many = time(0..100, &del);
    time(100..900, &del);
    let del_few = time(900..1000, &del);
    eprintln!("ADD {few:?}, with 900 {many:?}; DEL with 900 {del_many:?}, {del_few:?}");
    assert!(many < few * 5 && del_many < del_few * 5, "it grows: {many:?}, {del_many:?}");
    assert!(!lab.ruleset().contains("10.1."));
}

/// Deleting anything makes the kernel wait when the socket is closed; an ADD
/// that finds all as it must be deletes nothing.
#[test]
fn an_add_beside_others_waits_for_nothing() {
    let _lab = Lab::new();
    add("c0", &["10.1.0.2/24"]);
    let started = Instant::now();
    for number in 3..103 {
        add(&format!("c{number}"), &[&format!("10.1.0.{number}/24")]);
    }
    let each = started.elapsed() / 100;
    eprintln!("ADD, with opening and closing: {each:?}");
    assert!(each.as_millis() < 5, "{each:?}");
}

/// Nor does the first one after the last DEL, which left the table with its chain
/// empty: adding a chain that is there counts as deleting.
#[test]
fn the_first_add_after_the_last_del_waits_for_nothing() {
    let _lab = Lab::new();
    let times = (0..20).map(|_| {
        let started = Instant::now();
        add("c1", &["10.1.0.2/24", "fd00:1::2/64"]);
        let took = started.elapsed();
        assert!(check("c1", &["10.1.0.2/24", "fd00:1::2/64"]).is_empty());
        del("c1");
        took
    });
    // The very first one makes the table.
    let least = times.skip(1).min().unwrap();
    assert!(least.as_millis() < 5, "{least:?}");
}

#[test]
fn many_at_once_all_succeed_and_leave_nothing() {
    let lab = Lab::new();
    let before = lab.world.snapshot();
    let host = lab.world.host().clone();
    let all_at_once = |work: &(dyn Fn(u32) + Sync)| {
        let started = Instant::now();
        std::thread::scope(|scope| {
            for worker in 0..16 {
                let host = &host;
                scope.spawn(move || {
                    host.run(|| {
                        for number in 0..12 {
                            work(worker * 12 + number);
                        }
                    });
                });
            }
        });
        started.elapsed()
    };
    let subnet = |number: u32| format!("10.{}.0.{}/24", number % 5, number + 1);
    let added = all_at_once(&|number| add(&format!("c{number}"), &[&subnet(number)]));
    for number in 0..192 {
        assert!(check(&format!("c{number}"), &[&subnet(number)]).is_empty());
    }
    let removed = all_at_once(&|number| del(&format!("c{number}")));
    eprintln!("192 at once: added in {added:?}, removed in {removed:?}");
    lab.world.snapshot().since(&before).beyond_residue(&[]).assert_empty();
    assert!(!lab.ruleset().contains("leaving"), "{}", lab.ruleset());
}
