//! `vrf`: puts the attachment's interface into a routing domain of the
//! container's.
//!
//! Nothing is on the host, and all goes with the container's namespace: GC
//! has nothing to do. STATUS says whether the kernel has VRFs. Differences from
//! the Go plugin that one can see:
//!
//! - a free table is one that no VRF, rule or route uses, and never `default`,
//!   `main` or `local`;
//! - a repeated ADD finds the interface in its VRF and changes nothing; one
//!   that fails takes it out again and puts its routes back;
//! - DEL succeeds when the interface is gone, and removes the VRF when nothing
//!   is in it; an interface of another container, which lies at the old path, stays
//!   in its VRF.

mod config;

use podwire_plugin::{Attachment, Description, Facts, Inventory, Plan, Request, Role};
use podwire_resources::{Kernel, vrf};
use podwire_spec::Error;
use podwire_spec::operation::Operation;

use self::config::Config as Settings;

/// The plugin.
pub struct Vrf;

/// Its configuration; on DEL there may be none that can be read.
pub struct Config(Option<Settings>);

impl Inventory for Vrf {
    type Config = Config;
    type Kernel = Kernel;

    fn description(&self) -> Description {
        Description::new("vrf", Role::Chained)
    }

    fn parse(&self, request: &Request<'_>, operation: Operation) -> Result<Config, Error> {
        let settings = Settings::parse(request.object());
        match operation {
            Operation::Del | Operation::Gc => {
                let settings = settings.map_err(|error| {
                    log::warn!("nothing can be removed: {error}");
                });
                Ok(Config(settings.ok()))
            }
            _ => settings.map(|settings| Config(Some(settings))),
        }
    }

    fn desired(
        &self,
        config: &Config,
        attachment: &Attachment,
        facts: &Facts<'_>,
    ) -> Result<Plan<Kernel>, Error> {
        let Config(Some(config)) = config else { return Ok(Vec::new()) };
        let mac = super::recorded_mac(facts, attachment.ifname().as_str());
        let domain = vrf::Vrf::new(attachment, config.name.as_str(), config.table);
        Ok(vec![Box::new(domain.with_mac(mac))])
    }

    fn ready(&self, _: &Config, kernel: &mut Kernel) -> Result<(), Error> {
        vrf::available(kernel)
    }
}
