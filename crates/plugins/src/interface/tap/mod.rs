//! `tap`: a TAP device in the container, for a program there to attach to.
//!
//! Unlike the reference, all of its keys hold whichever are set together, frames
//! never carry packet information in front, and an interface that is there
//! already is never taken for the one to make.

mod config;

use podwire_plugin::{Addresses, Attachment, Description, Facts, Inventory, Plan, Request, Role};
use podwire_resources::Kernel;
use podwire_resources::child_link::Evidence;
use podwire_resources::interface::{DuplicateDetection, Interface};
use podwire_resources::tap;
use podwire_spec::error::Error;
use podwire_spec::operation::Operation;
use podwire_spec::result::CniResult;

use crate::interface::keys;
use crate::interface::only::only_interface;

pub use config::Config;

/// The plugin. Nothing of an attachment is on the host: GC has only the
/// addresses to return, which the IPAM plugin does.
pub struct Tap;

impl Inventory for Tap {
    type Config = Config;
    type Kernel = Kernel;

    fn description(&self) -> Description {
        Description::new("tap", Role::Interface)
    }

    fn parse(&self, request: &Request<'_>, operation: Operation) -> Result<Config, Error> {
        Config::parse(request, operation)
    }

    fn addresses(&self, config: &Config) -> Addresses {
        Addresses::delegated_if(config.has_ipam)
    }

    fn complete(
        &self,
        config: &Config,
        attachment: &Attachment,
        base: CniResult,
    ) -> Result<CniResult, Error> {
        Ok(only_interface(attachment, base, &config.dns))
    }

    fn foundation(
        &self,
        config: &Config,
        attachment: &Attachment,
        facts: &Facts<'_>,
    ) -> Result<Plan<Kernel>, Error> {
        let ifname = attachment.ifname().as_str();
        let evidence = Evidence::of(facts.result, ifname, config.version)
            .or_mtu(keys::expected_mtu(config.version, config.mtu));
        let mut device = tap::Tap::new(attachment, evidence);
        device.owner = config.owner;
        device.group = config.group;
        device.multi_queue = config.multi_queue;
        device.mtu = config.mtu;
        device.mac = config.mac;
        device.label.clone_from(&config.label);
        device.bridge.clone_from(&config.bridge);
        Ok(vec![Box::new(device)])
    }

    fn desired(
        &self,
        config: &Config,
        attachment: &Attachment,
        facts: &Facts<'_>,
    ) -> Result<Plan<Kernel>, Error> {
        let nothing = CniResult::default();
        let result = facts.result.unwrap_or(&nothing);
        let interface = Interface {
            duplicate_detection: if config.has_ipam {
                DuplicateDetection::Off
            } else {
                DuplicateDetection::Kernel
            },
            announce: config.has_ipam,
            ..Interface::from_result(result, attachment.ifname().as_str())
        };
        Ok(vec![Box::new(interface)])
    }

    fn observe(
        &self,
        _: &Config,
        attachment: &Attachment,
        kernel: &mut Kernel,
        result: &mut CniResult,
    ) -> Result<(), Error> {
        let device = kernel
            .made_child(attachment.ifname().as_str())
            .ok_or_else(|| Error::internal("a bug in Podwire: the device is unknown"))?;
        if let Some(interface) = result.interfaces.first_mut() {
            interface.mac = device.mac.map(|mac| mac.to_string());
        }
        Ok(())
    }

    fn ready(&self, _: &Config, _: &mut Kernel) -> Result<(), Error> {
        tap::available()
    }
}
