//! `firewall`: lets a container's packets pass the host's own firewall, and
//! keeps bridges apart.
//!
//! Rules go into the host's chains over netlink, in the form of iptables (see
//! `podwire_resources::host_chains`), or firewalld is told over D-Bus which
//! addresses to trust. Differences from the Go plugin that one can see:
//!
//! - a container's rules carry its owner: DEL finds them without prevResult,
//!   and leaves those of an address's next owner;
//! - no program is run unless the host uses legacy xtables, so neither
//!   iptables nor ip6tables need be installed;
//! - rules for a bridge go with its last container, and follow the policy when
//!   it changes; the chains go when nothing is in them any more;
//! - CHECK makes nothing, looks at the policy too, and takes firewalld's no
//!   for a no;
//! - a mistake in the configuration doesn't keep DEL from removing.

mod config;
mod opening;

use std::net::IpAddr;

use podwire_plugin::{Attachment, Collection, Description, Facts, Inventory, Plan, Request, Role};
use podwire_resources::Kernel;
use podwire_resources::firewalld::{Firewalld, Sources, StaleSources};
use podwire_resources::host_chains::{self, Accepts, HostChains, IngressPolicy, Isolation};
use podwire_spec::Error;
use podwire_spec::id::IfName;
use podwire_spec::operation::Operation;
use podwire_spec::result::{AddressOrigin, CniResult};

use self::config::{Backend, Config as Settings};
use self::opening::Opening;
use crate::distinct::distinct;

/// The plugin.
pub struct Firewall;

/// Its configuration.
pub struct Config(Settings);

impl Inventory for Firewall {
    type Config = Config;
    type Kernel = Kernel;

    fn description(&self) -> Description {
        Description::new("firewall", Role::Chained)
    }

    fn parse(&self, request: &Request<'_>, operation: Operation) -> Result<Config, Error> {
        Ok(Config(match operation {
            Operation::Del | Operation::Gc => Settings::parse_leniently(request.object()),
            _ => Settings::parse(request.object())?,
        }))
    }

    fn desired(
        &self,
        config: &Config,
        attachment: &Attachment,
        facts: &Facts<'_>,
    ) -> Result<Plan<Kernel>, Error> {
        let Config(config) = config;
        let addresses =
            facts.result.map(|result| container_addresses(attachment, result)).unwrap_or_default();
        let named = facts.result.and_then(bridge);
        let needs_bridge = config.policy != IngressPolicy::Open
            && matches!(facts.operation, Operation::Add | Operation::Check);
        let bridge = match named.map(|name| IfName::parse(&name).map(|_| name)).transpose() {
            Ok(bridge) => bridge,
            Err(error) if needs_bridge => {
                return Err(Error::config(format!(
                    "ingressPolicy {:?} is about a bridge, and the first interface of the host in \
                     prevResult can't be one",
                    config.policy.as_str()
                ))
                .with_details(error.to_string()));
            }
            // Whoever takes away goes by what the owner has asked for.
            Err(_) => None,
        };
        if needs_bridge && bridge.is_none() {
            return Err(Error::config(format!(
                "ingressPolicy {:?} is about a bridge, and prevResult names no interface of the \
                 host",
                config.policy.as_str()
            ))
            .with_details("put the firewall plugin behind bridge, or leave ingressPolicy out"));
        }
        let key = &attachment.key;
        let is_removal = facts.operation == Operation::Del;
        let trusted = match config.backend {
            // Not ours to take from firewalld what we never gave it.
            Backend::HostChains if is_removal => Vec::new(),
            _ => addresses.clone(),
        };
        let opening = Opening {
            backend: config.backend,
            accepts: Accepts::new(key, addresses, &config.admin_chain),
            sources: Sources::new(key, &config.zone, trusted),
        };
        // Made in this order, bridges are apart before anything is let pass.
        Ok(vec![Box::new(Isolation::new(key, bridge, config.policy)), Box::new(opening)])
    }

    fn collections(&self, _: &Config) -> Vec<Box<dyn Collection<Kernel>>> {
        vec![Box::new(HostChains), Box::new(StaleSources)]
    }

    fn ready(&self, config: &Config, kernel: &mut Kernel) -> Result<(), Error> {
        let Config(config) = config;
        if config.backend == Backend::Firewalld {
            let firewalld = Firewalld::find().map_err(|error| Error::unavailable(error.msg))?;
            if firewalld.is_none() {
                return Err(Error::unavailable("firewalld isn't running")
                    .with_details("start it, or set backend to \"iptables\""));
            }
            if config.policy == IngressPolicy::Open {
                return Ok(());
            }
        }
        host_chains::available(kernel)
    }
}

/// The container's addresses, never loopback ones (C13).
fn container_addresses(attachment: &Attachment, result: &CniResult) -> Vec<IpAddr> {
    let ifname = attachment.ifname().as_str();
    let found = result.container_addresses(ifname);
    if found.origin == AddressOrigin::HostSide {
        log::warn!(
            "prevResult names no address for interface {ifname} in the container; taking those it \
             names for interfaces of the host"
        );
    }
    let addresses = found.addresses.into_iter().map(|ip| ip.address.addr());
    distinct(addresses.filter(|address| !address.is_loopback()))
}

/// The bridge: the first interface of the host, as the reference plugin has
/// it.
fn bridge(result: &CniResult) -> Option<String> {
    let mut host = result.host_interfaces();
    host.find(|interface| interface.name != "lo").map(|interface| interface.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use podwire_plugin::Sandbox;
    use podwire_spec::id::{AttachmentKey, ContainerId, IfName, NetworkName};
    use podwire_spec::result::VersionedResult;
    use podwire_spec::version::SpecVersion;

    fn attachment() -> Attachment {
        let key = AttachmentKey {
            network: NetworkName::parse("n1").unwrap(),
            container_id: ContainerId::parse("c1").unwrap(),
            ifname: IfName::parse("eth0").unwrap(),
        };
        Attachment::new(key, Sandbox::Unspecified)
    }

    fn result(json: &str) -> CniResult {
        VersionedResult::parse(json, SpecVersion::V1_0_0).unwrap().into_newest().unwrap()
    }

    #[test]
    fn c13_loopback_in_the_chain_is_neither_address_nor_bridge() {
        let result = result(
            r#"{"cniVersion":"1.0.0","interfaces":[{"name":"lo","sandbox":"/n"},{"name":"nomad"},
               {"name":"veth1"},{"name":"eth0","sandbox":"/n"}],
               "ips":[{"address":"127.0.0.1/8","interface":0},{"address":"::1/128","interface":0},
               {"address":"172.26.64.2/20","interface":3}]}"#,
        );
        let addresses = container_addresses(&attachment(), &result);
        assert_eq!(addresses, ["172.26.64.2".parse::<IpAddr>().unwrap()]);
        assert_eq!(bridge(&result).as_deref(), Some("nomad"));
    }

    #[test]
    fn b110_a_policy_without_a_bridge_is_an_error_on_add_only() {
        let config = Config(Settings { policy: IngressPolicy::SameBridge, ..Settings::default() });
        let result = result(r#"{"cniVersion":"1.0.0","ips":[{"address":"10.1.0.2/24"}]}"#);
        let plan = |operation| {
            let facts = Facts { operation, result: Some(&result) };
            Firewall.desired(&config, &attachment(), &facts)
        };
        assert_eq!(plan(Operation::Add).err().unwrap().code.number(), 7);
        assert_eq!(plan(Operation::Del).unwrap().len(), 2);
    }

    /// B110: the kernel takes rules for a bridge without a name, and nobody
    /// can look that bridge up again.
    #[test]
    fn b110_a_bridge_that_cannot_be_is_refused_on_add_and_no_hindrance_later() {
        let config = Config(Settings { policy: IngressPolicy::Isolated, ..Settings::default() });
        for name in ["", "longer-than-any-interface", "a/b", "zz%d"] {
            let result = result(&format!(
                r#"{{"cniVersion":"1.0.0","interfaces":[{{"name":"{name}"}}],
                   "ips":[{{"address":"10.1.0.2/24"}}]}}"#
            ));
            let plan = |operation| {
                let facts = Facts { operation, result: Some(&result) };
                Firewall.desired(&config, &attachment(), &facts)
            };
            let error = plan(Operation::Add).err().unwrap();
            assert_eq!(error.code.number(), 7, "{name:?}");
            assert!(error.to_string().contains("interface name"), "{error}");
            assert_eq!(plan(Operation::Del).unwrap().len(), 2, "{name:?}");
        }
    }
}
