//! GC of every plugin that keeps something on the host frees exactly what is not valid.
//! The rows stand in `podwire_tests::collection`, the page for people in `docs/gc.md`.

use podwire_tests::collection::{prove, rows};
use podwire_tests::prove_each;

// B119, B001: what no valid attachment has goes, whatever is left of it.
prove_each! {
    prove, rows;
    b119_bandwidth: "bandwidth";
    b119_bridge: "bridge";
    b119_firewall: "firewall";
    b119_host_device: "host-device";
    b119_host_local: "host-local";
    b119_macvlan: "macvlan";
    b119_portmap: "portmap";
    b119_ptp: "ptp";
    b119_tap: "tap";
    b119_tuning: "tuning";
}
