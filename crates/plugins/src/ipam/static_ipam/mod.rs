//! `static`: the addresses that the configuration or the runtime names.
//!
//! It keeps nothing and reserves nothing: that an address is used once is up
//! to whoever names it. So DEL and GC have nothing to free, and STATUS has
//! nothing to run out of; they succeed because of that, not for lack of code.
//!
//! Where addresses come from, and which of them count: see [`config`].

mod config;

use podwire_plugin::{Attachment, Description, Plugin, Request, Role, Undo};
use podwire_spec::Error;
use podwire_spec::request::ValidAttachments;
use podwire_spec::result::CniResult;

use config::Config;

/// The `static` IPAM plugin.
#[derive(Debug, Clone, Copy)]
pub struct Static;

impl Plugin for Static {
    fn description(&self) -> Description {
        Description::new("static", Role::Ipam)
    }

    fn add<'a>(
        &'a self,
        request: &'a Request<'a>,
        _attachment: &'a Attachment,
        _undo: &mut Undo<'a>,
    ) -> Result<CniResult, Error> {
        let config = config_of(request)?;
        Ok(CniResult {
            ips: config.ips(),
            routes: config.routes,
            dns: config.dns,
            ..CniResult::default()
        })
    }

    /// Nothing was reserved, so nothing is freed; the configuration isn't
    /// even looked at.
    fn del(&self, _request: &Request<'_>, _attachment: &Attachment) -> Result<(), Error> {
        Ok(())
    }

    /// Every address that ADD would give must be in the result, with its
    /// gateway.
    fn check(&self, request: &Request<'_>, _attachment: &Attachment) -> Result<(), Error> {
        let config = config_of(request)?;
        let previous = request.require_prev_result()?;
        config.compare(&previous.ips)
    }

    /// There is no pool that could be empty and no file that could be
    /// missing: an ADD whose configuration is good can always be served.
    fn status(&self, _request: &Request<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Nothing is kept between calls, so nothing can be left over.
    fn gc(&self, _request: &Request<'_>, _valid: &ValidAttachments) -> Result<(), Error> {
        Ok(())
    }
}

fn config_of(request: &Request<'_>) -> Result<Config, Error> {
    let arguments = request.arguments(&["IP", "GATEWAY"])?;
    Config::parse(request.config, request.version, arguments.get("IP"), arguments.get("GATEWAY"))
}
