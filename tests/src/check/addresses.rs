//! The IPAM plugins.

use serde_json::{Value, json};

use super::bridge::addresses;
use super::{Deed, Mutation, Subject, host, nothing};

pub(super) fn subjects() -> Vec<Subject> {
    vec![
        Subject {
            plugin: "host-local",
            setting: "an address of each family",
            needs: &[],
            prepare: "",
            chain: pool,
            noticed: || {
                vec![
                    host(
                        "the reservation is removed",
                        "rm /var/lib/cni/networks/n/10.1.0.2",
                        &["10.1.0.2", "c1", "not reserved"],
                    ),
                    host("all reservations are removed", "rm -r /var/lib/cni/networks/n", &["c1"]),
                    host(
                        "the reservation is another container's",
                        "printf 'other\\r\\neth0' > /var/lib/cni/networks/n/10.1.0.2",
                        &["10.1.0.2", "c1", "not reserved"],
                    ),
                    host(
                        "the reservation is another interface's",
                        "printf 'c1\\r\\neth1' > /var/lib/cni/networks/n/10.1.0.2",
                        &["10.1.0.2", "c1", "not reserved"],
                    ),
                    host(
                        "the reservation is empty",
                        ": > /var/lib/cni/networks/n/10.1.0.2",
                        &["10.1.0.2", "c1", "not reserved"],
                    ),
                    host(
                        "the reservation is of another address",
                        "mv /var/lib/cni/networks/n/10.1.0.2 /var/lib/cni/networks/n/10.1.0.9",
                        &["10.1.0.2", "c1", "not reserved"],
                    ),
                    host(
                        "an address too many is reserved",
                        "cp /var/lib/cni/networks/n/10.1.0.2 /var/lib/cni/networks/n/10.1.0.9",
                        &["10.1.0.9", "c1"],
                    ),
                    record(
                        "the recorded address is another",
                        |result| result["ips"][0]["address"] = json!("10.1.0.7/24"),
                        &["10.1.0.7", "not reserved"],
                    ),
                ]
            },
            tolerated: || {
                vec![
                    host(
                        "the index and the stamps are removed",
                        "rm -r /var/lib/cni/networks/.podwire",
                        &[],
                    ),
                    host(
                        "the marks of the last address are removed",
                        "rm -f /var/lib/cni/networks/n/last_reserved_ip.*",
                        &[],
                    ),
                    host(
                        "the reservation is of an old release, without the interface",
                        "for one in 10.1.0.2 fd00:1::2; do
                             rm /var/lib/cni/networks/n/$one
                             printf c1 > /var/lib/cni/networks/n/$one
                         done",
                        &[],
                    ),
                ]
            },
        },
        Subject {
            plugin: "bridge",
            setting: "with host-local",
            needs: &[],
            prepare: "",
            chain: pool,
            noticed: || {
                vec![host(
                    "the reservation is removed",
                    "rm /var/lib/cni/networks/n/10.1.0.2",
                    &["10.1.0.2", "c1", "not reserved"],
                )]
            },
            tolerated: nothing,
        },
        Subject {
            plugin: "static",
            setting: "an address of each family",
            needs: &[],
            prepare: "",
            chain: || {
                vec![json!({"type": "bridge", "bridge": "br0", "isGateway": true,
                    "ipam": addresses(&["10.1.0.2/24", "fd00:1::2/64"])})]
            },
            noticed: || {
                vec![
                    record(
                        "the recorded address is another",
                        |result| result["ips"][0]["address"] = json!("10.1.0.7/24"),
                        &["10.1.0.2/24"],
                    ),
                    record(
                        "the recorded gateway is another",
                        |result| result["ips"][0]["gateway"] = json!("10.1.0.7"),
                        &["10.1.0.1", "10.1.0.7"],
                    ),
                    record(
                        "a recorded address is removed",
                        |result| drop(result["ips"].as_array_mut().unwrap().pop()),
                        &["fd00:1::2/64"],
                    ),
                ]
            },
            tolerated: nothing,
        },
    ]
}

fn pool() -> Vec<Value> {
    vec![json!({"type": "bridge", "bridge": "br0", "ipam": {"type": "host-local",
        "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd00:1::/64"}]]}})]
}

fn record(what: &'static str, change: fn(&mut Value), says: &[&'static str]) -> Mutation {
    Mutation { what, deed: Deed::Record(change), says: says.to_vec() }
}
