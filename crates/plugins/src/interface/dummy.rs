//! The keys of `dummy`: there are none of its own.

use podwire_plugin::{Addresses, Request};
use podwire_spec::error::Error;
use podwire_spec::operation::Operation;

use super::child::Config;

/// Sees to it that there is IPAM: without addresses the interface has no use.
///
/// # Errors
/// Code 7 without `ipam.type`.
pub(super) fn read(_: &Request<'_>, _: Operation, config: &mut Config) -> Result<(), Error> {
    if config.addresses == Addresses::Delegated {
        return Ok(());
    }
    Err(Error::config("dummy interface requires an IPAM configuration")
        .with_details("set ipam.type, for example to \"static\" or \"host-local\""))
}
