//! Plugins that adjust what the plugins before them made.

use podwire_netlink::route::MacAddress;
use podwire_plugin::Facts;

pub mod bandwidth;
pub mod firewall;
pub mod portmap;
pub mod sbr;
pub mod tuning;
pub mod vrf;

/// The MAC address that the result tells of an interface in the container.
fn recorded_mac(facts: &Facts<'_>, ifname: &str) -> Option<MacAddress> {
    let (_, interface) = facts.result?.interface_in_sandbox(ifname)?;
    interface.mac.as_deref()?.parse().ok()
}
