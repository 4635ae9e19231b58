//! ptp on real namespaces: packets, routes on both sides, CHECK of both, stale
//! routes, every way to lose the namespace, and the Go plugin beside it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // It is all of tests.

mod del;
mod forms;
mod kindnet;
mod peers;
mod stale;
mod verbs;

use serde_json::{Value, json};

use podwire_tests::lab::{host_local, with};

/// A network of IPv4.
fn pods() -> Value {
    json!({"cniVersion": "1.1.0", "name": "n", "type": "ptp", "ipam": host_local(&["10.1.0.0/24"])})
}

/// The same with both families.
fn dual() -> Value {
    with(&pods(), &json!({"ipam": host_local(&["10.1.0.0/24", "fd00:1::/64"])}))
}

/// Fixed addresses, with default routes.
fn fixed(addresses: &[Value]) -> Value {
    let routes = json!([{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]);
    with(&pods(), &json!({"ipam": {"type": "static", "addresses": addresses, "routes": routes}}))
}
