//! Plugins that make one interface in the container, move one there, or switch one on.

use podwire_testkit::Feature;
use serde_json::{Value, json};

use super::bridge::addresses;
use super::inside::{both_families, common, common_of_kind, moved_routes, removed};
use super::{Mutation, Subject, host, inside, listen, listen_inside, nothing};

/// Two uplinks to other machines.
const UPLINKS: &str = "for number in 0 1; do
        ip link add up$number type veth peer name far$number
        ip link set up$number up; ip link set far$number up
    done";

pub(super) fn subjects() -> Vec<Subject> {
    vec![macvlan(), ipvlan(), vlan(), dummy(), tap(), host_device(), loopback()]
}

/// A plugin with an address of IPv4 alone: one of the other family is tried for a second
/// where other machines may have it.
fn one_address(more: &Value) -> Vec<Value> {
    let mut config = json!({"ipam": addresses(&["10.1.0.2/24"])});
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    vec![config]
}

fn macvlan() -> Subject {
    Subject {
        plugin: "macvlan",
        setting: "child of up0 in mode bridge, MTU",
        needs: &[],
        prepare: UPLINKS,
        chain: || one_address(&json!({"type": "macvlan", "master": "up0", "mtu": 1400})),
        noticed: || {
            let mode = inside(
                "the mode is another",
                "ip link set eth0 type macvlan mode private",
                &["macvlan mode: expected bridge, found private"],
            );
            [common(true, "expected a macvlan"), parents(), vec![removed(), alias(), mode]].concat()
        },
        tolerated: || vec![listen("up0"), listen_inside(), moved_routes()],
    }
}

fn ipvlan() -> Subject {
    Subject {
        plugin: "ipvlan",
        setting: "child of up0 in mode l2, MTU",
        needs: &[Feature::Ipvlan],
        prepare: UPLINKS,
        chain: || one_address(&json!({"type": "ipvlan", "master": "up0", "mtu": 1400})),
        noticed: || {
            let own = vec![
                removed(),
                alias(),
                inside(
                    "the mode is another",
                    "ip link set eth0 type ipvlan mode l3",
                    &["ipvlan mode: expected l2, found l3"],
                ),
                inside(
                    "the isolation is another",
                    "ip link set eth0 type ipvlan mode l2 private",
                    &["ipvlan flag: expected bridge, found private"],
                ),
            ];
            [common_of_kind(false, "expected a ipvlan"), parents(), own].concat()
        },
        tolerated: || vec![moved_routes()],
    }
}

fn vlan() -> Subject {
    Subject {
        plugin: "vlan",
        setting: "VLAN 100 of up0, MTU",
        needs: &[Feature::Vlan],
        prepare: UPLINKS,
        chain: || {
            one_address(&json!({"type": "vlan", "master": "up0", "vlanId": 100, "mtu": 1400}))
        },
        noticed: || {
            let other = host(
                "the VLAN is another",
                "nsenter --net=$NETNS ip link set eth0 netns $$
                 ip link del eth0
                 ip link add link up0 name other type vlan id 7
                 ip link set other address $MAC netns c1
                 nsenter --net=$NETNS ip link set other name eth0",
                &["VLAN: expected 100, found 7"],
            );
            let own = vec![removed(), alias(), other];
            [common_of_kind(true, "expected a vlan"), parents(), own].concat()
        },
        tolerated: || vec![listen_inside()],
    }
}

fn dummy() -> Subject {
    Subject {
        plugin: "dummy",
        setting: "both families",
        needs: &[Feature::Dummy],
        prepare: "",
        chain: || {
            vec![json!({"type": "dummy", "ipam": addresses(&["10.1.0.2/24", "fd00:1::2/64"])})]
        },
        noticed: || {
            let mut common = common_of_kind(true, "expected a dummy");
            common.retain(|one| !one.what.contains("MTU"));
            [common, both_families(), vec![removed(), alias()]].concat()
        },
        tolerated: || vec![listen_inside(), moved_routes()],
    }
}

fn tap() -> Subject {
    Subject {
        plugin: "tap",
        setting: "owner and group, both families, MTU",
        needs: &[],
        prepare: "",
        chain: || {
            vec![json!({"type": "tap", "mtu": 1400, "owner": 1000, "group": 1001,
                "ipam": addresses(&["10.1.0.2/24", "fd00:1::2/64"])})]
        },
        noticed: || {
            let own = vec![
                removed(),
                alias(),
                inside(
                    "the device has another owner",
                    "mac=$(cat /sys/class/net/eth0/address)
                     ip link del eth0
                     ip tuntap add eth0 mode tap user 7 group 1001
                     ip link set eth0 address $mac mtu 1400 up
                     ip addr add 10.1.0.2/24 dev eth0; ip addr add fd00:1::2/64 dev eth0 nodad
                     ip route add default via 10.1.0.1; ip route add default via fd00:1::1",
                    &["owner: expected 1000, found 7"],
                ),
                inside(
                    "the device is for layer 3",
                    "ip link del eth0; ip tuntap add eth0 mode tun",
                    &["expected tap, found tun"],
                ),
            ];
            [common(true, "expected a tun"), both_families(), own].concat()
        },
        tolerated: || vec![listen_inside(), moved_routes()],
    }
}

fn host_device() -> Subject {
    Subject {
        plugin: "host-device",
        setting: "a device with an address",
        needs: &[],
        prepare: "ip link add hdev address 02:00:00:00:00:d1 type veth peer name far0
            ip link set far0 up",
        chain: || one_address(&json!({"type": "host-device", "device": "hdev"})),
        noticed: || {
            let own = vec![
                removed(),
                inside(
                    "the alias, its name on the host, is removed",
                    "ip link set eth0 alias ''",
                    &["eth0 in the container, alias: expected hdev", "found none"],
                ),
                inside(
                    "the alias, its name on the host, is another",
                    "ip link set eth0 alias other",
                    &["eth0 in the container, alias: expected hdev", "found other"],
                ),
            ];
            let all = common(true, "expected").into_iter();
            let all = all.filter(|one| !one.what.contains("MTU") && !one.what.contains("kind"));
            [all.collect(), own].concat()
        },
        tolerated: || vec![listen_inside(), moved_routes()],
    }
}

fn loopback() -> Subject {
    Subject {
        plugin: "loopback",
        setting: "",
        needs: &[],
        prepare: "",
        chain: || vec![json!({"type": "loopback"})],
        noticed: || {
            vec![
                inside(
                    "the interface is down",
                    "ip link set lo down",
                    &["loopback interface in the container: expected up, found down"],
                ),
                inside(
                    "an address is removed",
                    "ip addr del 127.0.0.1/8 dev lo",
                    &["address 127.0.0.1/8 on lo in the container is missing"],
                ),
                inside(
                    "an IPv6 address is removed",
                    "ip addr del ::1/128 dev lo",
                    &["address ::1/128 on lo in the container is missing"],
                ),
            ]
        },
        tolerated: nothing,
    }
}

/// The interface's mark is another.
fn alias() -> Mutation {
    inside(
        "the interface has another alias",
        "ip link set eth0 alias mine",
        &["eth0 in the container, alias", "found mine"],
    )
}

/// What it hangs on.
fn parents() -> Vec<Mutation> {
    vec![
        host(
            "the parent is removed",
            "ip link del up0",
            &["interface eth0 in the container is missing"],
        ),
        host(
            "the parent has another name",
            "ip link set up0 down; ip link set up0 name up9; ip link set up9 up",
            &["master up0", "missing"],
        ),
        host(
            "another device has the parent's name",
            "ip link set up0 down; ip link set up0 name up9; ip link set up9 up
             ip link set up1 down; ip link set up1 name up0; ip link set up0 up",
            &["eth0 in the container, master: expected up0"],
        ),
    ]
}
