//! Which DNS settings a result carries.

use podwire_spec::result::{CniResult, Dns};

/// The configuration's own DNS replaces IPAM's as a whole, if it says
/// anything.
pub(crate) fn prefer(configured: &Dns, result: &mut CniResult) {
    if !configured.is_empty() {
        result.dns = configured.clone();
    }
}
