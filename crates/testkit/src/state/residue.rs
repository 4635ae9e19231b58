//! What may stay on a host after the last DEL.

use std::path::Path;

use super::Change;

/// Whether a change is one that the project documents as residue.
pub(super) fn is_allowed(change: &Change, bridges: &[&str]) -> bool {
    let words: Vec<&str> = change.name().split(' ').collect();
    match (change, words.as_slice()) {
        (Change::Added(..), ["link" | "address" | "setting", name, ..]) => bridges.contains(name),
        (Change::Added(..), ["route", _, "main", _, device, ..]) => bridges.contains(device),
        (Change::Added(..), ["nft", "table" | "set" | "map", ..]) => true,
        // The administrator's own, which firewall makes and never deletes (C13).
        (Change::Added(..), ["nft", "chain", "ip" | "ip6", "filter", name])
            if name.ends_with("-ADMIN") =>
        {
            true
        }
        // Rules are facts of their own: a chain that has some isn't empty.
        (Change::Added(_, chain), ["nft", "chain", ..]) => chain.contains("\"hook\""),
        (Change::Changed(_, _, now), ["sysctl", key]) => is_forwarding(key) && now == "1",
        (Change::Added(..) | Change::Changed(..), ["file", path, ..]) => is_bookkeeping(path),
        _ => false,
    }
}

fn is_forwarding(key: &str) -> bool {
    key == "net/ipv4/ip_forward" || key.ends_with("/forwarding")
}

/// host-local's lock and round-robin marks, our index and stamps.
fn is_bookkeeping(path: &str) -> bool {
    let path = Path::new(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name == "lock"
        || name.starts_with("last_reserved_ip.")
        || path.components().any(|component| component.as_os_str() == ".podwire")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(name: &str) -> Change {
        Change::Added(name.to_owned(), String::new())
    }

    #[test]
    fn only_what_is_documented_may_stay() {
        let allowed = [
            "link br0",
            "address br0 10.1.0.1/24",
            "setting br0 ipv4 rp_filter",
            "route -4 main 10.1.0.0/24 br0",
            "nft table ip podwire",
            "nft chain ip filter CNI-ADMIN",
            "file /var/lib/cni/networks/n/lock",
            "file /var/lib/cni/networks/n/last_reserved_ip.0",
            "file /var/lib/cni/networks/.podwire/n/index",
        ];
        for name in allowed {
            assert!(is_allowed(&added(name), &["br0"]), "{name}");
        }
        let leaks = [
            "link veth0a1b2c3d",
            "link br1",
            "setting br1 ipv4 rp_filter",
            "neighbour br0 10.1.0.2",
            "xtables ip nat",
            "route -4 main 10.1.0.0/24 br1",
            "route -4 77 10.1.0.0/24 br0",
            "nft chain ip podwire from_10.1.0.0/24",
            "nft rule ip podwire postrouting",
            "nft element ip podwire owners 1",
            "file /var/lib/cni/networks/n/10.1.0.2",
            "file /var/lib/cni/results/n-c1-eth0",
            "rule -4 100",
        ];
        for name in leaks {
            assert!(!is_allowed(&added(name), &["br0"]), "{name}");
        }
        let hooked = r#"{"hook":"postrouting","prio":100,"type":"nat"}"#.to_owned();
        let entry = Change::Added("nft chain ip podwire postrouting".to_owned(), hooked);
        assert!(is_allowed(&entry, &[]));
        let gone = Change::Removed("link br0".to_owned(), String::new());
        assert!(!is_allowed(&gone, &["br0"]));
    }

    #[test]
    fn forwarding_may_be_switched_on_only() {
        let change = |now: &str| {
            let key = "sysctl net/ipv4/ip_forward".to_owned();
            Change::Changed(key, "0".to_owned(), now.to_owned())
        };
        assert!(is_allowed(&change("1"), &[]));
        assert!(!is_allowed(&change("0"), &[]));
    }
}
