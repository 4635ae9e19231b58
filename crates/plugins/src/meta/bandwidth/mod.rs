//! `bandwidth`: limits how fast a container sends and receives.
//!
//! `ingressRate` and `ingressBurst` are about what goes to the container,
//! `egressRate` and `egressBurst` about what comes from it, in bits a second and
//! bits. They come from the configuration, or by the capability `bandwidth`; one
//! key in the configuration shuts the capability out.
//!
//! `shapedSubnets` limits only what is exchanged with these subnets,
//! `unshapedSubnets` all but that: the other side's address counts, which is
//! the source on the way to the container and the destination on the way from
//! it. Release 1.5 of the Go plugin compared the destination both ways, and was
//! withdrawn for it.
//!
//! Other differences from the Go plugin that one can see:
//!
//! - the host end is found by the index of the container interface's peer;
//!   prevResult need not list it;
//! - the ifb's name follows from network, container and interface, `bwp` and
//!   eight digits, and its alias tells the owner;
//! - a second ADD replaces what the first made; a failed one leaves nothing;
//! - bursts that runtimes send where none was asked for, which would leave the
//!   first seconds without a limit, are replaced by a tenth of a second's worth
//!   (see `config`);
//! - a burst smaller than a frame, which would let nothing pass, is enlarged;
//! - CHECK notices a limit or filter that is gone or changed.

mod config;

use podwire_plugin::{Attachment, Collection, Description, Facts, Inventory, Plan, Request, Role};
use podwire_resources::Kernel;
use podwire_resources::shaper::{
    self, Direction, EgressShaper, GoIfbs, HostShaper, Ifbs, Limit, Recorded, Shaping,
};
use podwire_spec::error::Error;
use podwire_spec::operation::Operation;
use podwire_spec::result::{CniResult, Interface};
use podwire_spec::version::SpecVersion;

pub use self::config::Config;

/// The plugin.
pub struct Bandwidth;

/// Results before 0.3.0 have no interfaces to add ours to.
const VERSIONS: [SpecVersion; 5] = [
    SpecVersion::V0_3_0,
    SpecVersion::V0_3_1,
    SpecVersion::V0_4_0,
    SpecVersion::V1_0_0,
    SpecVersion::V1_1_0,
];

/// Where the kernel tells of its packet scheduler.
const SCHEDULER: &str = "/proc/net/psched";

impl Inventory for Bandwidth {
    type Config = Config;
    type Kernel = Kernel;

    fn description(&self) -> Description {
        Description { versions: &VERSIONS, ..Description::new("bandwidth", Role::Chained) }
    }

    fn parse(&self, request: &Request<'_>, operation: Operation) -> Result<Config, Error> {
        let runtime_config = request.config.runtime_config.as_ref();
        let parsed = Config::parse(request.object(), runtime_config);
        match (operation, parsed) {
            // What is to be removed is found by its owner.
            (Operation::Del | Operation::Gc, Err(error)) => {
                log::warn!("going on without limits: {error}");
                Ok(Config::default())
            }
            (_, parsed) => parsed,
        }
    }

    /// The ifb's place in the result; its name is filled in when the kernel
    /// has it.
    fn complete(
        &self,
        config: &Config,
        _: &Attachment,
        base: CniResult,
    ) -> Result<CniResult, Error> {
        let mut result = base;
        if config.egress.is_some() {
            result.interfaces.push(Interface::default());
        }
        Ok(result)
    }

    fn desired(
        &self,
        config: &Config,
        attachment: &Attachment,
        facts: &Facts<'_>,
    ) -> Result<Plan<Kernel>, Error> {
        let shaping = |limit: Option<Limit>, direction| {
            limit.map(|limit| Shaping { limit, scope: config.scope.clone(), direction })
        };
        let ifname = attachment.ifname().as_str();
        let recorded = facts.result.map(|result| Recorded::from_result(result, ifname));
        let recorded = recorded.unwrap_or_default();
        let mut plan: Plan<Kernel> = Vec::new();
        // Removed last first: where the filter leads proves whose the other is.
        let egress = shaping(config.egress, Direction::Egress);
        if egress.is_some() || facts.operation == Operation::Del {
            plan.push(Box::new(EgressShaper::new(attachment, egress, recorded.clone())));
        }
        if let Some(shaping) = shaping(config.ingress, Direction::Ingress) {
            plan.push(Box::new(HostShaper::new(attachment, shaping, recorded)));
        }
        Ok(plan)
    }

    fn observe(
        &self,
        config: &Config,
        attachment: &Attachment,
        kernel: &mut Kernel,
        result: &mut CniResult,
    ) -> Result<(), Error> {
        if config.egress.is_none() {
            return Ok(());
        }
        let (name, mac) = shaper::observed(kernel, &attachment.owner)?;
        if let Some(last) = result.interfaces.last_mut() {
            last.name = name;
            last.mac = mac.map(|mac| mac.to_string());
        }
        Ok(())
    }

    fn collections(&self, _: &Config) -> Vec<Box<dyn Collection<Kernel>>> {
        vec![Box::new(Ifbs), Box::new(GoIfbs)]
    }

    /// Whether there is a packet scheduler at all. Its kinds and the ifb may be
    /// modules, which only making one loads.
    fn ready(&self, _: &Config, _: &mut Kernel) -> Result<(), Error> {
        if std::path::Path::new(SCHEDULER).exists() {
            return Ok(());
        }
        Err(Error::unavailable("the kernel has no packet scheduler")
            .with_details(format!("{SCHEDULER} is missing; CONFIG_NET_SCHED is needed")))
    }
}
