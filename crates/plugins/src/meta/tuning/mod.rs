//! `tuning`: kernel parameters and link attributes of the container's
//! interface.
//!
//! Sysctls are set in the order of the configuration, those of `args.cni` in
//! their place or behind; they go with the namespace and are never set back, as
//! with the Go plugin. Link attributes are kept in a file before they are
//! changed, and set back by DEL: the device may go back to the host.
//!
//! Differences from the Go plugin that one can see:
//!
//! - a failed ADD sets back what it changed; a repeated one doesn't forget the
//!   originals;
//! - DEL reports what it could not set back, and forgets the originals of a
//!   namespace or interface that is gone;
//! - CHECK compares numbers as numbers and lists without regard to blanks, MAC
//!   addresses without regard to case, and is not upset by a packet capture;
//! - GC removes kept originals by the owner that is written beside them; the
//!   Go plugin's tell no network and stay;
//! - the result has the MTU too, where its version has a field for it;
//! - an allow list of which a line is no regular expression is an error that
//!   names the line.

mod allowlist;
mod config;
mod room;

use std::path::Path;

use podwire_netlink::route::MacAddress;
use podwire_plugin::{Attachment, Collection, Description, Facts, Inventory, Plan, Request, Role};
use podwire_resources::Kernel;
use podwire_resources::link_attributes::{Backups, LinkAttributes};
use podwire_resources::sandbox_sysctls::SandboxSysctls;
use podwire_spec::error::{Error, ErrorCode};
use podwire_spec::operation::Operation;
use podwire_spec::result::CniResult;

pub use self::config::Config;

/// The plugin.
pub struct Tuning;

/// Where an administrator says which sysctls may be set.
const ALLOW_LIST: &str = "/etc/cni/tuning/allowlist.conf";

impl Inventory for Tuning {
    type Config = Config;
    type Kernel = Kernel;

    fn description(&self) -> Description {
        Description::new("tuning", Role::Chained)
    }

    fn parse(&self, request: &Request<'_>, operation: Operation) -> Result<Config, Error> {
        let config = match operation {
            // Only what was kept matters then.
            Operation::Del | Operation::Gc => Config::parse(request).unwrap_or_else(|error| {
                log::warn!("going on with dataDir alone: {error}");
                Config::only_data_dir(request)
            }),
            _ => Config::parse(request)?,
        };
        if operation == Operation::Add {
            allowlist::admit(Path::new(ALLOW_LIST), config.names())?;
        }
        Ok(config)
    }

    /// The interface's new MAC address and MTU. One of the host that happens
    /// to have its name is another.
    fn complete(
        &self,
        config: &Config,
        attachment: &Attachment,
        base: CniResult,
    ) -> Result<CniResult, Error> {
        let mut result = base;
        let ifname = attachment.ifname().as_str();
        let is_told = result.interface_in_sandbox(ifname).is_some();
        for interface in &mut result.interfaces {
            if interface.name != ifname || is_told && interface.sandbox.is_none() {
                continue;
            }
            if let Some(mac) = config.attributes.mac {
                interface.mac = Some(mac.to_string());
            }
            if let Some(mtu) = config.attributes.mtu {
                interface.mtu = Some(mtu);
            }
        }
        Ok(result)
    }

    fn desired(
        &self,
        config: &Config,
        attachment: &Attachment,
        facts: &Facts<'_>,
    ) -> Result<Plan<Kernel>, Error> {
        let mut plan: Plan<Kernel> = Vec::new();
        let parameters = config.parameters(attachment.ifname());
        if !parameters.is_empty() {
            plan.push(Box::new(SandboxSysctls::new(parameters)));
        }
        if !config.attributes.is_empty() || facts.operation == Operation::Del {
            plan.push(Box::new(LinkAttributes::new(
                attachment,
                config.attributes.clone(),
                &config.data_dir,
                recorded_mac(attachment, facts),
            )));
        }
        Ok(plan)
    }

    fn collections(&self, config: &Config) -> Vec<Box<dyn Collection<Kernel>>> {
        vec![Box::new(Backups(config.data_dir.clone()))]
    }

    fn ready(&self, config: &Config, _: &mut Kernel) -> Result<(), Error> {
        allowlist::admit(Path::new(ALLOW_LIST), config.names())
            .map_err(|error| Error { code: ErrorCode::Unavailable, ..error })?;
        if config.attributes.is_empty() { Ok(()) } else { room::can_keep(&config.data_dir) }
    }
}

/// The interface's MAC address as the chain left it.
fn recorded_mac(attachment: &Attachment, facts: &Facts<'_>) -> Option<MacAddress> {
    let (_, interface) = facts.result?.interface_in_sandbox(attachment.ifname().as_str())?;
    interface.mac.as_deref()?.parse().ok()
}
