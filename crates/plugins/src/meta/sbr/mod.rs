//! `sbr`: source-based routing. Packets from an address of this attachment
//! leave by its interface, however many interfaces the container has.
//!
//! Nothing is on the host, and all goes with the container's namespace: GC
//! and STATUS have nothing to do. Differences from the Go plugin that one can
//! see:
//!
//! - a table is taken only if nothing uses it, neither rules nor routes of
//!   either IP version, and never `default`, `main` or `local`;
//! - a table holds only the routes of its address's IP version; link-local
//!   and router-announced routes stay in the main table;
//! - CHECK looks for rules, default and subnet routes; DEL takes the table's
//!   routes with the rules, and makes nothing where the namespace is gone;
//! - an ADD that fails puts the main table's routes back; one that is repeated
//!   changes nothing.

mod config;

use podwire_plugin::{Attachment, Description, Facts, Inventory, Plan, Request, Role};
use podwire_resources::Kernel;
use podwire_resources::source_routing::{Source, SourceRouting, needs_table};
use podwire_spec::Error;
use podwire_spec::operation::Operation;
use podwire_spec::result::{AddressOrigin, CniResult};

use self::config::Config as Settings;

/// The plugin.
pub struct Sbr;

/// Its configuration.
pub struct Config(Settings);

impl Inventory for Sbr {
    type Config = Config;
    type Kernel = Kernel;

    fn description(&self) -> Description {
        Description::new("sbr", Role::Chained)
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
        let ifname = attachment.ifname().as_str();
        let sources =
            facts.result.map(|result| sources(config, ifname, result)).unwrap_or_default();
        if sources.is_empty() && matches!(facts.operation, Operation::Add | Operation::Check) {
            return Err(Error::config(format!(
                "prevResult names no address of interface {ifname} to route by"
            ))
            .with_details("sbr stands behind a plugin that gives the interface an address"));
        }
        let (table, hints) = (config.table, config.add_source_hints);
        let recorded = facts.result.into_iter().flat_map(|result| &result.routes);
        let defaults = recorded.filter(|route| route.dst.prefix_len() == 0);
        let routing = SourceRouting::new(attachment, sources, table, hints)
            .with_mac(super::recorded_mac(facts, ifname))
            .with_defaults(defaults.filter_map(|route| route.gw).collect());
        Ok(vec![Box::new(routing)])
    }
}

/// The interface's addresses, each with its gateway.
fn sources(config: &Settings, ifname: &str, result: &CniResult) -> Vec<Source> {
    let found = result.container_addresses(ifname);
    if found.origin == AddressOrigin::HostSide {
        // They are the host's: a rule for them would catch nothing.
        return Vec::new();
    }
    let mut sources: Vec<Source> = Vec::new();
    for ip in found.addresses {
        let address = ip.address.addr();
        let is_known = sources.iter().any(|source| source.address.addr() == address);
        if needs_table(address) && !is_known {
            let configured = config.gateway(address);
            sources.push(Source {
                address: ip.address,
                gateway: configured.or(ip.gateway),
                is_configured: configured.is_some(),
            });
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;
    use podwire_spec::json::Object;
    use podwire_spec::result::VersionedResult;
    use podwire_spec::version::SpecVersion;

    #[test]
    fn b113_configured_gateways_come_first_and_link_local_addresses_are_left_out() {
        let text = r#"{"gateways":["10.1.0.254"]}"#;
        let config = Settings::parse(&Object::parse(text).unwrap()).unwrap();
        let result = r#"{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":"/n"},
            {"name":"net1","sandbox":"/n"}],
            "ips":[{"address":"10.1.0.2/24","gateway":"10.1.0.1","interface":1},
                   {"address":"fd00::2/64","gateway":"fd00::1","interface":1},
                   {"address":"fe80::2/64","interface":1},
                   {"address":"10.9.0.2/24","interface":0}]}"#;
        let result =
            VersionedResult::parse(result, SpecVersion::V1_0_0).unwrap().into_newest().unwrap();
        let found = sources(&config, "net1", &result);
        let shown: Vec<_> = found
            .iter()
            .map(|one| {
                (one.address.to_string(), one.gateway.unwrap().to_string(), one.is_configured)
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("10.1.0.2/24".into(), "10.1.0.254".into(), true),
                ("fd00::2/64".into(), "fd00::1".into(), false)
            ]
        );
    }
}
