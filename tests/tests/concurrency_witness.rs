//! Every kind of meeting once, with a witness; `cargo xtask races` does it 10,000 times.
//!
//! B019, B034: no address is held twice at any moment, and nothing is left.

use podwire_tests::races::Race;

#[test]
fn no_address_is_held_twice_at_any_moment() {
    let outcome = Race { operations: 200, crowd: 40 }.run(&|_| {});
    assert!(outcome.faults.is_empty(), "{outcome}");
    assert!(outcome.total() >= 200 && outcome.looks > 3, "{outcome}");
}
