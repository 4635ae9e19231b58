//! `portmap`: ports of the host that lead to the container.
//!
//! All is done with nftables over netlink, in two tables of our own (see
//! `layout`), in one transaction for each call, and no program is run.
//! Differences from the Go plugin that one can see:
//!
//! - a port has one owner: mapping one whose holder is alive is an error that
//!   names it; one whose holder is gone is taken over;
//! - `backend` may be given but makes no difference, and conditions of either
//!   syntax are understood; `markMasqBit` has no effect;
//! - a second network of the same container with the same mappings leaves the
//!   ports with the first, and takes them over when that leaves;
//! - a mapping for one address of the host comes before one for all;
//! - `route_localnet` isn't set on an interface with a router behind it;
//! - UDP connections that a change of mappings makes wrong are forgotten on
//!   ADD and DEL, and no others.

mod collect;
mod condition;
mod config;
mod connections;
mod departure;
mod forwarding;
mod go_holder;
mod heirs;
mod holder;
mod hostports;
mod layout;
mod localnet;
mod mapping;
mod ready;
mod removal;
mod set_mark;
mod structure;
mod takeover;

use std::net::IpAddr;

use ipnet::IpNet;
use podwire_plugin::{
    Attachment, Collection, Description, Facts, Inventory, OwnerMark, Plan, Request, Role,
};
use podwire_resources::Kernel;
use podwire_resources::nft::owners::Record;
use podwire_spec::Error;
use podwire_spec::operation::Operation;
use podwire_spec::result::{AddressOrigin, CniResult};

use self::config::{Config as Settings, Masquerade, Strictness};
use self::forwarding::{Forwarding, Held};
use self::hostports::HostPorts;
use self::layout::VERSIONS;
use self::localnet::RouteLocalnet;
use self::set_mark::SetMark;
use self::takeover::GoMappings;

/// How many elements the maps hold of the attachment with this record.
pub(crate) fn mappings_in(record: &str) -> usize {
    let words = record.split_ascii_whitespace().map(str::to_owned).collect();
    let record = Record { words, entries: Vec::new() };
    let owner = OwnerMark { network: [0; 8], attachment: [0; 8] };
    Held::read(&record, &owner).keys().len()
}

/// The plugin.
pub struct Portmap;

/// Its configuration.
pub struct Config(Settings);

impl Inventory for Portmap {
    type Config = Config;
    type Kernel = Kernel;

    fn description(&self) -> Description {
        Description::new("portmap", Role::Chained)
    }

    fn parse(&self, request: &Request<'_>, operation: Operation) -> Result<Config, Error> {
        let strictness = match operation {
            Operation::Del | Operation::Gc => Strictness::Nothing,
            Operation::Status => Strictness::WithoutMappings,
            _ => Strictness::Whole,
        };
        let runtime_config = request.config.runtime_config.as_ref();
        Settings::parse(request.config.object(), runtime_config, strictness).map(Config)
    }

    fn desired(
        &self,
        config: &Config,
        attachment: &Attachment,
        facts: &Facts<'_>,
    ) -> Result<Plan<Kernel>, Error> {
        Ok(match (facts.operation, facts.result) {
            (Operation::Add | Operation::Check, Some(result)) => {
                wanted(&config.0, attachment, result)
            }
            _ => left(attachment, facts.result),
        })
    }

    fn collections(&self, _: &Config) -> Vec<Box<dyn Collection<Kernel>>> {
        vec![Box::new(collect::OwnMappings), Box::new(collect::GoLeftovers)]
    }

    fn ready(&self, _: &Config, kernel: &mut Kernel) -> Result<(), Error> {
        let socket = kernel.nft().map_err(|error| Error::unavailable(error.to_string()))?;
        let [v4, v6] = VERSIONS.map(|version| ready::probe(socket, version));
        // A kernel without IPv6 has no IPv6 containers to serve.
        if v6.is_ok() { Ok(()) } else { v4 }
    }
}

/// What ADD makes and CHECK looks for: nothing without mappings.
fn wanted(config: &Settings, attachment: &Attachment, result: &CniResult) -> Plan<Kernel> {
    if config.mappings.is_empty() {
        return Vec::new();
    }
    let mut forwardings = Vec::new();
    for address in container_addresses(attachment, result) {
        if let Some(forwarding) = Forwarding::new(config, &attachment.key, address) {
            let condition = config.condition(forwarding.version).cloned();
            forwardings.push((forwarding, condition));
        }
    }
    if forwardings.is_empty() {
        log::warn!(
            "no port is mapped: interface {} has no address of the mappings' IP version",
            attachment.ifname()
        );
        return Vec::new();
    }
    let mut plan: Plan<Kernel> = Vec::new();
    if config.masquerade != Masquerade::Nothing {
        for (forwarding, _) in &forwardings {
            if let IpAddr::V4(address) = forwarding.address {
                plan.push(Box::new(RouteLocalnet { address }));
            }
        }
    }
    let set_mark = match &config.masquerade {
        Masquerade::Marked { chain, everything } => {
            Some(SetMark { chain: chain.clone(), everything: *everything })
        }
        _ => None,
    };
    plan.push(Box::new(HostPorts { key: attachment.key.clone(), forwardings, set_mark }));
    plan
}

/// What DEL removes, found by the attachment's names alone.
fn left(attachment: &Attachment, result: Option<&CniResult>) -> Plan<Kernel> {
    let addresses = result.map(|result| container_addresses(attachment, result));
    let own = HostPorts { key: attachment.key.clone(), forwardings: Vec::new(), set_mark: None };
    let go = GoMappings {
        network: attachment.network().as_str().to_owned(),
        container: attachment.container_id().as_str().to_owned(),
        addresses: addresses.unwrap_or_default().iter().map(IpNet::addr).collect(),
        by_container: true,
    };
    vec![Box::new(own), Box::new(go)]
}

/// The first address of each family, never a loopback one (C13).
fn container_addresses(attachment: &Attachment, result: &CniResult) -> Vec<IpNet> {
    let ifname = attachment.ifname().as_str();
    let found = result.container_addresses(ifname);
    if found.origin == AddressOrigin::HostSide {
        log::warn!(
            "prevResult names no address for interface {ifname} in the container; taking those it \
             names for interfaces of the host"
        );
    }
    let first = |is_v4: bool| {
        let mut all = found.addresses.iter().map(|address| address.address);
        all.find(|net| net.addr().is_ipv4() == is_v4 && !net.addr().is_loopback())
    };
    [first(true), first(false)].into_iter().flatten().collect()
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
