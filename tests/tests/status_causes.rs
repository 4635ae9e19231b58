//! STATUS of every plugin names what stands in the way of an ADD. The rows stand in
//! `podwire_tests::readiness`, the page for people in `docs/status.md`.

use podwire_tests::readiness::{prove, rows};

macro_rules! plugins {
    ($($name:ident: $plugin:literal;)*) => {
        $(
            #[test]
            fn $name() {
                prove($plugin);
            }
        )*

        #[test]
        fn every_plugin_is_proven() {
            let proven = [$($plugin),*];
            for row in rows() {
                assert!(proven.contains(&row.plugin), "no test proves {}", row.plugin);
            }
        }
    };
}

plugins! {
    bridge: "bridge";
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
