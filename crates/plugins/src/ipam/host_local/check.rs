//! CHECK: the reservations of an attachment are those of its result.

use podwire_plugin::{Attachment, DRIFT, Request};
use podwire_spec::Error;

use super::config::Config;
use super::ledger::Purpose;
use super::pool::Reservation;
use super::reservation::Owner;
use super::{errors, open, owner_of};

/// Compares what is reserved for the attachment with its result.
///
/// The addresses in the result that are in this configuration's ranges must
/// be those that are reserved, neither more nor fewer; addresses of others
/// are theirs to check. Without a result something must be reserved.
///
/// # Errors
/// Code 100 ([`DRIFT`]) naming the first difference.
pub(super) fn check(request: &Request<'_>, attachment: &Attachment) -> Result<(), Error> {
    let config = Config::parse(request.config, request.version)?;
    let network = attachment.network();
    let owner = owner_of(attachment);
    let held = match open(&config.data_dir, network, Purpose::Look)? {
        Some(ledger) => {
            let failed = |error| errors::path(network, &error);
            let held = ledger.held_by(&owner).map_err(failed)?;
            if held.is_empty() {
                let container = attachment.container_id().as_str().to_owned();
                ledger.held_by(&Owner::Container(container)).map_err(failed)?
            } else {
                held
            }
        }
        None => Vec::new(),
    };
    let covered = |address| config.sets.iter().any(|set| set.range_of(address).is_some());
    let expected: Option<Vec<_>> = request.prev_result()?.map(|result| {
        let addresses = result.ips.iter().map(|ip| ip.address.addr());
        addresses.filter(|address| covered(*address)).collect()
    });
    let held: Vec<&Reservation> = held.iter().filter(|one| covered(one.address)).collect();
    let Some(expected) = expected.filter(|expected| !(expected.is_empty() && held.is_empty()))
    else {
        return if held.is_empty() { Err(nothing(attachment)) } else { Ok(()) };
    };
    for address in &expected {
        if held.iter().any(|one| one.address == *address) {
            continue;
        }
        if held.is_empty() && expected.len() == 1 {
            return Err(nothing(attachment).with_details(format!("{address} is expected")));
        }
        return Err(Error::new(
            DRIFT,
            format!("host-local: {address} of {owner} in network {network} is not reserved for it"),
        ));
    }
    match held.iter().find(|one| !expected.contains(&one.address)) {
        Some(extra) => Err(Error::new(
            DRIFT,
            format!(
                "host-local: {} is reserved for {owner} in network {network}, but the attachment \
             doesn't have it: prevResult has {expected:?}",
                extra.address
            ),
        )),
        None => Ok(()),
    }
}

fn nothing(attachment: &Attachment) -> Error {
    Error::new(
        DRIFT,
        format!(
            "host-local: Failed to find address added by container {} for interface {} in network {}",
            attachment.container_id(),
            attachment.ifname(),
            attachment.network()
        ),
    )
}
