//! tap on real namespaces: every key in every combination, frames through an
//! attached program, nothing of a stranger taken, and the Go plugin beside it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // It is all of tests.

mod crash;
mod del;
mod keys;
mod peers;
mod verbs;

use podwire_testkit::Netns;
use podwire_tests::lab::{host_local, with};
use serde_json::{Value, json};

/// A device alone.
fn plain() -> Value {
    json!({"cniVersion": "1.1.0", "name": "n", "type": "tap"})
}

/// With addresses of both families.
fn addressed() -> Value {
    with(&plain(), &json!({"ipam": host_local(&["10.1.0.0/24", "fd00:1::/64"])}))
}

/// What the kernel says of a TAP device.
fn tun(netns: &Netns, name: &str) -> Value {
    let link = podwire_tests::lab::link(netns, name).unwrap();
    assert_eq!(link["linkinfo"]["info_kind"], "tun", "{link:#}");
    link["linkinfo"]["info_data"].clone()
}
