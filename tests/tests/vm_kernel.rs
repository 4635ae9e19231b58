//! The kernels of the virtual machine have what the other tests there need: an
//! image without a module must not go unnoticed.

use podwire_testkit::{Feature, World};

#[test]
fn a_guest_has_every_feature() {
    let world = World::new();
    let missing: Vec<_> = Feature::ALL.into_iter().filter(|feature| !world.has(*feature)).collect();
    assert!(missing.is_empty(), "missing: {missing:?}");
}
