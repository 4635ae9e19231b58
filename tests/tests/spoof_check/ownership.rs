//! Whose check it is: DEL, CHECK, GC, interference, scale.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use podwire_plugin::Resource;
use podwire_resources::Kernel;

use crate::lab::{Lab, add, check, del, gc, kernel, run, set_mac, spoof_check, spoof_check_of};

#[test]
fn del_by_the_owner_alone_leaves_empty_tables() {
    let lab = Lab::new();
    let first = lab.container("c1", "10.1.0.2");
    let second = lab.container("c2", "10.1.0.3");
    let before = lab.world.snapshot();
    add("c1", &first);
    add("c2", &second);
    assert_eq!(check("c1", &first), []);
    del("c1");
    assert_eq!(check("c2", &second), []);
    assert!(!lab.ruleset().contains("h-c1"), "{}", lab.ruleset());
    // Again, and after the container is gone.
    second.remove();
    del("c2");
    del("c2");
    del("c3");
    let after = lab.world.snapshot().since(&before).beyond_residue(&[]);
    after.without(|change| change.name().contains("h-c2")).assert_empty();
    assert!(!lab.ruleset().contains("iifname"), "{}", lab.ruleset());
}

#[test]
fn what_nft_lists_it_can_read_back() {
    let lab = Lab::new();
    let container = lab.container("c1", "10.1.0.2");
    add("c1", &container);
    let listed = lab.ruleset();
    let file = lab.world.write("ruleset", &listed);
    run(&lab.world, "nft flush ruleset");
    run(&lab.world, &format!("nft -f {}", file.display()));
    assert_eq!(lab.ruleset(), listed);
    assert_eq!(check("c1", &container), []);
    del("c1");
    assert!(!lab.ruleset().contains("h-c1"));
}

#[test]
fn b020_a_late_del_leaves_the_new_owner_of_the_port_alone() {
    let lab = Lab::new();
    let container = lab.container("c1", "10.1.0.2");
    add("old", &container);
    add("new", &container);
    del("old");
    assert_eq!(check("new", &container), []);
    let found = check("old", &container);
    assert!(found[0].to_string().contains("n1/new/eth0"), "{found:?}");
    add("new", &container);
    assert_eq!(check("new", &container), []);
    del("new");
    assert!(!lab.ruleset().contains("h-c1"), "{}", lab.ruleset());
}

#[test]
fn b076_a_flush_and_a_part_taken_away_are_named_and_mended() {
    let breakages = [
        ("nft flush ruleset", "spoof check of h-c1"),
        ("nft flush chain bridge podwire_spoof_check prerouting", "look the port up"),
        ("nft flush chain bridge podwire_spoof_check check_source", "from an allowed address"),
        ("nft flush set bridge podwire_spoof_check allowed", "dropped"),
        ("nft flush map bridge podwire_spoof_check guarded", "spoof check of h-c1"),
    ];
    for (breakage, expected) in breakages {
        let lab = Lab::new();
        let container = lab.container("c1", "10.1.0.2");
        add("c1", &container);
        run(&lab.world, breakage);
        let found: Vec<_> = check("c1", &container).iter().map(ToString::to_string).collect();
        assert!(found.iter().any(|text| text.contains(expected)), "{breakage}: {found:?}");
        add("c1", &container);
        assert_eq!(check("c1", &container), [], "{breakage}");
        run(&lab.world, breakage);
        del("c1");
        assert!(!lab.ruleset().contains("h-c1"), "{breakage}: {}", lab.ruleset());
    }
}

#[test]
fn check_tells_that_the_containers_address_has_changed() {
    let lab = Lab::new();
    let container = lab.container("c1", "10.1.0.2");
    add("c1", &container);
    set_mac(&container, "02:00:00:00:00:66");
    let found = check("c1", &container)[0].to_string();
    assert!(found.contains("02:00:00:00:00:66"), "{found}");
}

#[test]
fn an_interface_without_host_end_is_an_error_that_names_it() {
    let lab = Lab::new();
    let namespace = lab.world.netns("c1");
    namespace.exec(&["ip", "link", "add", "eth0", "type", "bridge"]);
    let error = spoof_check("c1").make(&mut kernel(&namespace)).unwrap_err();
    assert!(error.msg.contains("eth0"), "{error}");
    assert_eq!(check("c1", &namespace).len(), 1);
}

#[test]
fn gc_removes_what_is_not_valid_of_its_network_alone() {
    let lab = Lab::new();
    let [first, second, other] = [("c1", "10.1.0.2"), ("c2", "10.1.0.3"), ("c3", "10.1.0.4")]
        .map(|(name, address)| lab.container(name, address));
    add("c1", &first);
    add("c2", &second);
    spoof_check_of("n2", "c3").make(&mut kernel(&other)).unwrap();
    assert_eq!(gc("n1", &[("c2", "eth0")]), ["spoof check of n1/c1/eth0"]);
    assert_eq!(check("c2", &second), []);
    assert_eq!(spoof_check_of("n2", "c3").check(&mut kernel(&other)).unwrap(), []);
    assert_eq!(gc("n1", &[]), ["spoof check of n1/c2/eth0"]);
    assert!(gc("n1", &[]).is_empty());
    assert_eq!(gc("n2", &[]), ["spoof check of n2/c3/eth0"]);
}

#[test]
fn b104_five_thousand_foreign_rules_make_nothing_slower() {
    let lab = Lab::new();
    let mut foreign = "table bridge nat {\n chain PREROUTING {\n type filter hook prerouting \
                       priority -300;\n"
        .to_owned();
    for number in 0..5000 {
        writeln!(foreign, "iifname \"foreign{number}\" counter comment \"foreign\"").unwrap();
    }
    foreign += "}\n}\n";
    let file = lab.world.write("foreign", foreign);
    run(&lab.world, &format!("nft -f {}", file.display()));
    let before = lab.world.nft_json(&["list", "ruleset"]);
    let container = lab.container("c1", "10.1.0.2");
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        for work in [&|| add("c1", &container), &|| del("c1")] as [&dyn Fn(); 2] {
            let started = Instant::now();
            work();
            slowest = slowest.max(started.elapsed());
        }
    }
    eprintln!("slowest of 20 ADDs and DELs: {slowest:?}");
    assert!(slowest < Duration::from_millis(200), "{slowest:?}");

    add("c1", &container);
    container.remove();
    let started = Instant::now();
    assert_eq!(gc("n1", &[]).len(), 1);
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    let rules = |ruleset: &serde_json::Value| {
        let objects = ruleset["nftables"].as_array().unwrap().iter();
        objects.filter(|object| object.get("rule").is_some()).count()
    };
    assert_eq!(rules(&lab.world.nft_json(&["list", "ruleset"])), rules(&before));
}

/// One of the sets is not where it should be: nothing is left half made.
#[test]
fn a_set_of_another_shape_is_an_error_that_names_it() {
    let lab = Lab::new();
    let container = lab.container("c1", "10.1.0.2");
    run(&lab.world, "nft add table bridge podwire_spoof_check");
    let set = "add set bridge podwire_spoof_check allowed { type inet_service; }";
    lab.world.exec(&["nft", set]);
    let before = lab.world.snapshot();
    let error = spoof_check("c1").make(&mut kernel(&container)).unwrap_err();
    assert!(error.msg.contains("podwire_spoof_check allowed"), "{error}");
    lab.world.snapshot().since(&before).assert_empty();
    spoof_check("c1").remove(&mut Kernel::new(None).unwrap()).unwrap();
}
