//! CHECK of what needs more of the kernel than build machines have: see
//! `check_mutations`.

use podwire_tests::check::{prove_elsewhere, subjects_elsewhere};
use podwire_tests::prove_each;

// B065: what later plugins changed is no difference, what others did is.
prove_each! {
    prove_elsewhere, subjects_elsewhere;
    b065_bridge: "bridge";
    b065_dummy: "dummy";
    b065_ipvlan: "ipvlan";
    b065_vlan: "vlan";
    b065_vrf: "vrf";
}
