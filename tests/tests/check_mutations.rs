//! CHECK of every plugin notices whatever happens to what it made, and nothing else. The
//! rows stand in `podwire_tests::check`, the page for people in `docs/check.md`; those
//! that need more of the kernel are tried in `vm_check_mutations`.

use podwire_tests::check::{prove, subjects_here};
use podwire_tests::prove_each;

// B065: what later plugins changed is no difference, what others did is.
prove_each! {
    prove, subjects_here;
    b065_bandwidth: "bandwidth";
    b065_bridge: "bridge";
    b065_firewall: "firewall";
    b065_host_device: "host-device";
    b065_host_local: "host-local";
    b065_loopback: "loopback";
    b065_macvlan: "macvlan";
    b065_portmap: "portmap";
    b065_ptp: "ptp";
    b065_sbr: "sbr";
    b065_static: "static";
    b065_tap: "tap";
    b065_tuning: "tuning";
}
