//! STATUS of every plugin names what stands in the way of an ADD. The rows stand in
//! `podwire_tests::readiness`, the page for people in `docs/status.md`.

use podwire_tests::prove_each;
use podwire_tests::readiness::{prove, rows};

prove_each! {
    prove, rows;
    bridge: "bridge";
    dhcp: "dhcp";
    dummy: "dummy";
    firewall: "firewall";
    host_device: "host-device";
    host_local: "host-local";
    ipvlan: "ipvlan";
    macvlan: "macvlan";
    ptp: "ptp";
    tap: "tap";
    tuning: "tuning";
    vlan: "vlan";
    vrf: "vrf";
}
