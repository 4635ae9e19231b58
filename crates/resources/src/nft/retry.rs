//! Trying again what another process overtook.

use std::time::{Duration, Instant};

use podwire_netlink::Error as NetlinkError;
use podwire_spec::Error;

use crate::refused;

/// How long a transaction is tried again while others change the tables
/// underneath. Each time somebody else's went through, so the end is only
/// reached when a great many run at once.
const PATIENCE: Duration = Duration::from_secs(20);

/// Looks and commits again for as long as what was looked at changed before
/// the commit (`ERESTART`), up to a bound.
///
/// # Errors
/// The last failure: code 11 if it was still the same.
pub fn retrying<T>(mut attempt: impl FnMut() -> Result<T, NetlinkError>) -> Result<T, Error> {
    let until = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Err(error) if error.is_transient() && Instant::now() < until => {
                log::debug!("nftables changed underneath, looking again: {error}");
            }
            outcome => return outcome.map_err(refused),
        }
    }
}
