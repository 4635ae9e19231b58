//! `loopback`: switches on the container's `lo`, whatever `CNI_IFNAME` says.

use podwire_plugin::{Addresses, Attachment, Description, Facts, Inventory, Plan, Request, Role};
use podwire_resources::loopback::{self, NAME};
use podwire_resources::{Kernel, refused};
use podwire_spec::error::Error;
use podwire_spec::operation::Operation;
use podwire_spec::result::{CniResult, Interface, IpConfig};

/// The plugin.
pub struct Loopback;

/// Its configuration: only whether plugins before it left a result, which it
/// then passes on.
pub struct Config {
    previous: Option<CniResult>,
}

impl Inventory for Loopback {
    type Config = Config;
    type Kernel = Kernel;

    fn description(&self) -> Description {
        Description::new("loopback", Role::Interface)
    }

    fn parse(&self, request: &Request<'_>, operation: Operation) -> Result<Config, Error> {
        let previous = match operation {
            Operation::Add => request.prev_result()?,
            _ => None,
        };
        Ok(Config { previous })
    }

    fn addresses(&self, _: &Config) -> Addresses {
        Addresses::None
    }

    fn needs_prev_result(&self) -> bool {
        false
    }

    fn complete(
        &self,
        config: &Config,
        attachment: &Attachment,
        _: CniResult,
    ) -> Result<CniResult, Error> {
        if let Some(previous) = &config.previous {
            return Ok(previous.clone());
        }
        let interface = Interface {
            name: NAME.to_owned(),
            mac: Some("00:00:00:00:00:00".to_owned()),
            sandbox: Some(attachment.sandbox_text()),
            ..Interface::default()
        };
        Ok(CniResult { interfaces: vec![interface], ..CniResult::default() })
    }

    fn desired(
        &self,
        _: &Config,
        attachment: &Attachment,
        facts: &Facts<'_>,
    ) -> Result<Plan<Kernel>, Error> {
        let mut lo = loopback::Loopback::new(attachment);
        if facts.operation == Operation::Check
            && let Some(result) = facts.result
        {
            // Behind other plugins the result is theirs, and so are its addresses.
            let addresses = result.container_addresses(NAME).addresses;
            let addresses = addresses.iter().map(|ip| ip.address);
            lo.recorded = addresses.filter(|address| address.addr().is_loopback()).collect();
        }
        Ok(vec![Box::new(lo)])
    }

    /// The first address of each family, which the kernel gave `lo` when it
    /// came up; without IPv6 there is only one.
    fn observe(
        &self,
        config: &Config,
        _: &Attachment,
        kernel: &mut Kernel,
        result: &mut CniResult,
    ) -> Result<(), Error> {
        if config.previous.is_some() {
            return Ok(());
        }
        let link = kernel.container_link(NAME)?;
        let there = kernel.container()?.addresses_of(link.device()).map_err(refused)?;
        for ipv4 in [true, false] {
            let first = there.iter().find(|one| one.address.addr().is_ipv4() == ipv4);
            if let Some(first) = first {
                let address = IpConfig { interface: Some(0), ..IpConfig::new(first.address) };
                result.ips.push(address);
            }
        }
        Ok(())
    }
}
