//! Garbage collection: what is left of attachments that are no more.

use std::collections::BTreeSet;

use podwire_netlink::nft::Batch;
use podwire_plugin::{Belongs, Collection, Difference, Made, OwnerMark, Plan, Resource, Valid};
use podwire_resources::nft::{owners, retrying};
use podwire_resources::{Kernel, refused};
use podwire_spec::Error;

use super::layout::{self, Scope, VERSIONS};
use super::removal::Stale;
use super::structure::Structure;
use super::takeover::{self, GoMappings};

/// Our own mappings, by the owners sets.
pub(super) struct OwnMappings;

impl Collection<Kernel> for OwnMappings {
    fn describe(&self) -> String {
        "port mappings".to_owned()
    }

    fn stale(&self, kernel: &mut Kernel, valid: &Valid) -> Result<Plan<Kernel>, Error> {
        let socket = kernel.nft()?;
        let mut stale = BTreeSet::new();
        for version in VERSIONS {
            let all = owners::all(socket, layout::table(version)).map_err(refused)?;
            stale.extend(all.into_iter().filter(|mark| valid.is_stale(mark)));
        }
        // Removed last first, so this one after those who use it.
        let mut plan: Plan<Kernel> =
            vec![Box::new(UnusedConditions(OwnerMark::network_half(valid.network())))];
        for mark in stale {
            plan.push(Box::new(Stale(mark)));
        }
        Ok(plan)
    }
}

/// Those of the Go plugin that name this network.
pub(super) struct GoLeftovers;

impl Collection<Kernel> for GoLeftovers {
    fn describe(&self) -> String {
        "port mappings that the Go plugin made".to_owned()
    }

    fn stale(&self, kernel: &mut Kernel, valid: &Valid) -> Result<Plan<Kernel>, Error> {
        let network = valid.network().as_str();
        let mut plan: Plan<Kernel> = Vec::new();
        for container in takeover::containers_of(kernel.nft()?, network)? {
            if !valid.holds_container(&container) {
                plan.push(Box::new(GoMappings {
                    network: network.to_owned(),
                    container,
                    addresses: Vec::new(),
                    by_container: false,
                }));
            }
        }
        for (container, count) in takeover::rules_by_container(kernel.nft()?)? {
            if !valid.holds_container(&container) {
                log::warn!(
                    "{count} rules in cni_hostport that the Go plugin made for container \
                     {container} stay: they name no network, and it may be alive on another; \
                     its DEL removes them"
                );
            }
        }
        Ok(plan)
    }
}

/// The maps and conditions of a network that has no attachment with mappings
/// any more, by the network's half of owner marks.
struct UnusedConditions([u8; 8]);

impl Resource<Kernel> for UnusedConditions {
    fn describe(&self) -> String {
        "conditions of a network without port mappings".to_owned()
    }

    fn belongs(&self) -> Belongs {
        Belongs::Attachment
    }

    fn make(&mut self, _: &mut Kernel) -> Result<Made, Error> {
        Ok(Made::Found)
    }

    fn check(&self, _: &mut Kernel) -> Result<Vec<Difference>, Error> {
        Ok(Vec::new())
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        let scope = Scope::Network(self.0);
        let socket = kernel.nft()?;
        retrying(|| {
            let generation = socket.generation()?;
            let mut batch = Batch::new();
            for version in VERSIONS {
                let structure = Structure::observe(socket, version)?;
                if !structure.has_scope(scope) {
                    continue;
                }
                let all = owners::all(socket, layout::table(version))?;
                if !all.iter().any(|mark| mark.network == self.0) {
                    structure.drop_network(&mut batch, scope);
                }
            }
            if !batch.is_empty() {
                batch.require_generation(generation);
                socket.commit(&batch)?;
            }
            Ok(())
        })
    }
}
