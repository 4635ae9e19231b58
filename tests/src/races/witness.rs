//! Who holds which address, seen from outside.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use podwire_sys::netns::NetNs;
use podwire_testkit::probe::addresses_here;
use serde_json::Value;

/// Where sandboxes are.
const NAMESPACES: &str = "/run/netns";

/// Between two looks, so that those who are watched get on.
const PAUSE: Duration = Duration::from_millis(20);

/// Hears and looks.
#[derive(Debug, Default)]
pub struct Witness {
    /// By address, who was told that it is theirs and has not begun to give it back.
    holders: Mutex<BTreeMap<String, String>>,
    faults: Mutex<Vec<String>>,
    looks: AtomicU64,
    done: Mutex<bool>,
    is_done: Condvar,
}

impl Witness {
    /// An ADD of a container has answered with this result.
    pub fn attached(&self, container: &str, result: &Value) {
        let mut holders = self.holders.lock().unwrap();
        for ip in result["ips"].as_array().into_iter().flatten() {
            let address = ip["address"].as_str().unwrap().to_owned();
            if let Some(other) = holders.insert(address.clone(), container.to_owned()) {
                self.fault(format!("{address} was given to {container} while {other} had it"));
            }
        }
    }

    /// A DEL of a container begins.
    pub fn detaching(&self, container: &str) {
        self.holders.lock().unwrap().retain(|_, holder| holder != container);
    }

    /// Says what was wrong.
    pub fn fault(&self, what: String) {
        self.faults.lock().unwrap().push(what);
    }

    /// All that was wrong so far.
    pub fn faults(&self) -> Vec<String> {
        self.faults.lock().unwrap().clone()
    }

    /// How often all namespaces were looked at.
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Ends [`Witness::watch`].
    pub fn finish(&self) {
        *self.done.lock().unwrap() = true;
        self.is_done.notify_all();
    }

    /// Looks into all namespaces again and again.
    pub fn watch(&self) {
        loop {
            self.look();
            self.looks.fetch_add(1, Ordering::Relaxed);
            let done = self.done.lock().unwrap();
            let (done, _) = self.is_done.wait_timeout(done, PAUSE).unwrap();
            if *done {
                return;
            }
        }
    }

    fn look(&self) {
        let mut places: BTreeMap<IpAddr, PathBuf> = BTreeMap::new();
        for entry in std::fs::read_dir(NAMESPACES).into_iter().flatten().flatten() {
            let path = entry.path();
            for address in global(&path) {
                let Some(other) = places.insert(address, path.clone()) else { continue };
                // It may have moved between the looks: only if the first still has it
                // after the second was seen with it did both have it at once.
                if has(&path, address) && has(&other, address) {
                    let (one, two) = (other.display(), path.display());
                    self.fault(format!("{address} is in {one} and in {two} at once"));
                }
            }
        }
    }
}

fn has(namespace: &Path, address: IpAddr) -> bool {
    global(namespace).contains(&address)
}

/// The addresses in a namespace that are meant for others.
fn global(namespace: &Path) -> Vec<IpAddr> {
    // It may go at any moment.
    let Ok(Ok(found)) = NetNs::open(namespace).map(|netns| netns.run(addresses_here)) else {
        return Vec::new();
    };
    let is_local = |address: &IpAddr| match address {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unicast_link_local(),
    };
    found.into_iter().map(|(_, address)| address).filter(|address| !is_local(address)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_address_given_twice_is_seen_and_one_given_back_is_not() {
        let witness = Witness::default();
        let result = json!({"ips": [{"address": "10.1.0.2/24"}]});
        witness.attached("c1", &result);
        witness.detaching("c1");
        witness.attached("c2", &result);
        assert!(witness.faults().is_empty());
        witness.attached("c3", &result);
        assert!(witness.faults()[0].contains("10.1.0.2/24 was given to c3 while c2 had it"));
    }

    #[test]
    fn an_address_in_two_namespaces_is_seen() {
        std::thread::scope(|scope| {
            let work = || {
                let world = podwire_testkit::World::new();
                for name in ["one", "two"] {
                    let netns = world.netns(name);
                    netns.exec(&["ip", "link", "set", "lo", "up"]);
                    netns.exec(&["ip", "addr", "add", "10.1.0.2/24", "dev", "lo"]);
                }
                let witness = Witness::default();
                witness.look();
                let faults = witness.faults();
                assert_eq!(faults.len(), 1, "{faults:?}");
                assert!(faults[0].contains("10.1.0.2 is in"), "{faults:?}");
            };
            scope.spawn(work).join().unwrap();
        });
    }
}
