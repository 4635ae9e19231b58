//! Reading what few plugins touch.

use podwire_sys::sysctl;

use super::HostState;
use crate::command::execute;

/// What plugins set of a link, or could; below `net/FAMILY/conf/LINK`. Forwarding is
/// not among them: it follows the host's.
const OF_LINKS: [(&str, &[&str]); 2] = [
    (
        "ipv4",
        &["arp_announce", "arp_ignore", "arp_notify", "proxy_arp", "route_localnet", "rp_filter"],
    ),
    ("ipv6", &["accept_dad", "accept_ra", "disable_ipv6", "ndisc_notify"]),
];

/// Those that somebody has set by hand; the others come and go with packets.
#[track_caller]
pub(super) fn neighbours(state: &mut HostState) {
    let output = execute(&["ip", "-j", "neigh", "show", "nud", "permanent"]).success();
    if output.stdout.trim().is_empty() {
        return;
    }
    for neighbour in output.json().as_array().expect("an array") {
        let [address, link] = ["dst", "dev"].map(|key| neighbour[key].as_str().unwrap_or_default());
        let value = neighbour["lladdr"].as_str().unwrap_or_default().to_owned();
        state.add(format!("neighbour {link} {address}"), value);
    }
}

#[track_caller]
pub(super) fn link_sysctls(state: &mut HostState) {
    let links: Vec<String> = state.of_kind("link").map(str::to_owned).collect();
    for link in links.iter().filter_map(|fact| fact.strip_prefix("link ")) {
        for (family, keys) in OF_LINKS {
            for key in keys {
                match sysctl::read(&["net", family, "conf", link, key]) {
                    Ok(value) => state.add(format!("setting {link} {family} {key}"), value),
                    // The link went, or the kernel has no such key.
                    Err(error) if error.is_missing() => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
}

/// Who only looks at the old tables has the kernel make them.
#[track_caller]
pub(super) fn old_tables(state: &mut HostState) {
    for family in ["ip", "ip6"] {
        // Readable by root alone, and absent where the module is.
        let names = std::fs::read_to_string(format!("/proc/net/{family}_tables_names"));
        for name in names.unwrap_or_default().lines() {
            state.add(format!("xtables {family} {name}"), String::new());
        }
    }
}
