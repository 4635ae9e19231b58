//! What all interface plugins have in common: the container's interface with an address
//! and a default route.

use super::{Mutation, inside};

/// The container's interface, whose MTU is 1400, with 10.1.0.2/24 and a default route by
/// 10.1.0.1. `kind` is how CHECK calls what it should be; `own_mac` is whether it may be
/// given another MAC address.
pub(super) fn common(own_mac: bool, kind: &'static str) -> Vec<Mutation> {
    let mut all = vec![
        inside(
            "the interface has another name",
            // Kernels before 6.2 rename no link that is up.
            "ip link set eth0 down; ip link set eth0 name eth9",
            &["interface eth0 in the container is missing"],
        ),
        inside(
            "the interface is down",
            "ip link set eth0 down",
            &["interface eth0 in the container: expected up, found down"],
        ),
        inside(
            "the interface has another MTU",
            "ip link set eth0 mtu 1300",
            &["interface eth0 in the container, MTU: expected 1400, found 1300"],
        ),
        inside(
            "the interface is one of another kind",
            "ip link set eth0 down; ip link set eth0 name old; ip link add eth0 type bridge",
            &["interface eth0 in the container: expected", kind, "found bridge"],
        ),
    ];
    if own_mac {
        all.push(inside(
            "the interface has another MAC address",
            "ip link set eth0 address 02:00:00:00:00:09",
            &["interface eth0 in the container, MAC address", "found 02:00:00:00:00:09"],
        ));
    }
    all.extend(addressed());
    all
}

/// Of [`common`] what differs between kinds of links; the rest is the same code for all,
/// and each row takes its time in emulation.
pub(super) fn common_of_kind(own_mac: bool, kind: &'static str) -> Vec<Mutation> {
    let mut all = common(own_mac, kind);
    let shared = ["an address has another prefix", "a route has another gateway"];
    all.retain(|one| {
        !shared.contains(&one.what) && one.what != "a route leads to another interface"
    });
    all
}

/// The address and the default route.
fn addressed() -> Vec<Mutation> {
    vec![
        inside(
            "an address is removed",
            "ip addr del 10.1.0.2/24 dev eth0",
            &["address 10.1.0.2/24 on eth0 in the container is missing"],
        ),
        inside(
            "an address has another prefix",
            "ip addr del 10.1.0.2/24 dev eth0; ip addr add 10.1.0.2/16 dev eth0",
            &["address 10.1.0.2/24 on eth0", "expected prefix length 24, found 16"],
        ),
        inside(
            "a route is removed",
            "ip route del default",
            &["route to 0.0.0.0/0 via 10.1.0.1 on eth0 in the container is missing"],
        ),
        inside(
            "a route has another gateway",
            "ip route del default; ip route add default via 10.1.0.9 dev eth0 onlink",
            &["route to 0.0.0.0/0 via 10.1.0.1 on eth0 in the container"],
        ),
        inside(
            "a route leads to another interface",
            "ip link set lo up; ip route replace default dev lo",
            &["route to 0.0.0.0/0 via 10.1.0.1 on eth0 in the container"],
        ),
    ]
}

/// `fd00:1::2/64` and a default route by `fd00:1::1`.
pub(super) fn both_families() -> Vec<Mutation> {
    vec![
        inside(
            "an IPv6 address is removed",
            "ip addr del fd00:1::2/64 dev eth0",
            &["address fd00:1::2/64 on eth0 in the container is missing"],
        ),
        inside(
            "an IPv6 route is removed",
            "ip -6 route del default",
            &["route to ::/0 via fd00:1::1 on eth0 in the container is missing"],
        ),
        inside(
            "an IPv6 route has another gateway",
            "ip -6 route del default; ip -6 route add default via fd00:1::9 dev eth0 onlink",
            &["route to ::/0 via fd00:1::1 on eth0 in the container"],
        ),
    ]
}

/// The interface is removed.
pub(super) fn removed() -> Mutation {
    inside(
        "the interface is removed",
        "ip link del eth0",
        &["interface eth0 in the container is missing"],
    )
}

/// As `sbr` and `vrf` do.
pub(super) fn moved_routes() -> Mutation {
    inside(
        "the routes are moved to another table",
        "ip route del default
         ip route add 10.1.0.0/24 dev eth0 table 100
         ip route add default via 10.1.0.1 dev eth0 table 100",
        &[],
    )
}
