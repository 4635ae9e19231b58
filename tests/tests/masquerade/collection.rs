//! GC.

use podwire_plugin::Resource;
use podwire_resources::Kernel;

use crate::lab::{Lab, add, check, gc, key, masquerade_of};

#[test]
fn gc_removes_what_is_not_valid_of_its_network_alone() {
    let lab = Lab::new();
    add("c1", &["10.1.0.2/24", "fd00:1::2/64"]);
    add("c2", &["10.1.0.3/24"]);
    let mut kernel = Kernel::new(None).unwrap();
    let mut other = masquerade_of(&key("n2", "c1", "eth0"), &["10.2.0.2/24"]);
    other.make(&mut kernel).unwrap();

    assert_eq!(gc("n1", &[("c2", "eth0")]), ["masquerade of n1/c1/eth0"]);
    assert!(check("c2", &["10.1.0.3/24"]).is_empty());
    assert!(other.check(&mut kernel).unwrap().is_empty());
    assert!(!lab.ruleset().contains("10.1.0.2"));
    assert!(!lab.ruleset().contains("fd00:1::2"));

    // The same container on another interface is another attachment.
    assert_eq!(gc("n1", &[("c2", "eth1")]), ["masquerade of n1/c2/eth0"]);
    assert!(gc("n1", &[]).is_empty());
    assert!(other.check(&mut kernel).unwrap().is_empty());
}

#[test]
fn gc_of_an_untouched_host_finds_nothing_and_makes_nothing() {
    let lab = Lab::new();
    let before = lab.world.snapshot();
    assert!(gc("n1", &[]).is_empty());
    lab.world.snapshot().since(&before).assert_empty();
}
