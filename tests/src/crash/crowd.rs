//! Many containers at once, and who holds which address, seen from outside.

use std::collections::BTreeMap;
use std::sync::Barrier;

use podwire_testkit::{Netns, Output, World};

use super::subject::Target;

/// Containers with their namespaces.
pub struct Crowd {
    /// The containers.
    pub targets: Vec<Target>,
    namespaces: Vec<Netns>,
}

impl Crowd {
    /// So many containers with a namespace each, not attached.
    pub fn new(world: &World, prefix: &str, count: usize) -> Self {
        let names: Vec<_> = (0..count).map(|number| format!("{prefix}{number}")).collect();
        let namespaces: Vec<_> = names.iter().map(|name| world.netns(name)).collect();
        let targets = names.iter().zip(&namespaces);
        let targets = targets.map(|(name, netns)| Target::new(name, netns.path())).collect();
        Self { targets, namespaces }
    }

    /// Does something with each at the same time; what failed, in order.
    pub fn at_once(
        &mut self,
        work: impl Fn(&mut Target) -> Result<(), Box<Output>> + Sync,
    ) -> Vec<Box<Output>> {
        let start = Barrier::new(self.targets.len());
        std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .targets
                .iter_mut()
                .map(|target| {
                    let (start, work) = (&start, &work);
                    scope.spawn(move || {
                        start.wait();
                        work(target)
                    })
                })
                .collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap().err()).collect()
        })
    }

    /// Panics unless every container has the addresses that its result names, and
    /// no address is held twice.
    #[track_caller]
    pub fn assert_addresses(&self, ifname: &str) {
        let mut holders: BTreeMap<String, &str> = BTreeMap::new();
        for (target, netns) in self.targets.iter().zip(&self.namespaces) {
            let result = target.result.as_ref().unwrap();
            let ips = result["ips"].as_array().unwrap().iter();
            let mut named: Vec<_> = ips.map(|ip| ip["address"].as_str().unwrap()).collect();
            named.sort_unstable();
            let mut there = addresses(netns, ifname);
            there.sort_unstable();
            assert_eq!(named, there, "{}", target.container);
            for address in there {
                if let Some(other) = holders.insert(address.clone(), &target.container) {
                    panic!("{address} is held by {other} and by {}", target.container);
                }
            }
        }
    }

    /// Takes the namespaces away.
    pub fn remove(self) {
        self.namespaces.iter().for_each(Netns::remove);
    }
}

/// The global addresses of an interface, with their prefix lengths.
fn addresses(netns: &Netns, ifname: &str) -> Vec<String> {
    let links = netns.ip_json(&["addr", "show", "dev", ifname, "scope", "global"]);
    let infos = links.as_array().unwrap().iter().filter_map(|link| link["addr_info"].as_array());
    infos
        .flatten()
        .filter(|info| info["local"].is_string())
        .map(|info| format!("{}/{}", info["local"].as_str().unwrap(), info["prefixlen"]))
        .collect()
}
