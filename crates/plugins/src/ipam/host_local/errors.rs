//! The texts of `host-local`: each failure says which network, address and
//! file it is about, and what to do.

use std::net::IpAddr;

use podwire_spec::Error;
use podwire_spec::id::NetworkName;
use podwire_sys::PathError;
use podwire_sys::lock::LockError;
use rustix::io::Errno;

use super::config::Requested;
use super::ledger::LedgerError;
use super::pool::{Pool, Reservation};
use super::range::{Place, RangeSet};
use super::reboot;

/// A file or directory of the pool can't be used: code 5.
pub(super) fn path(network: &NetworkName, error: &PathError) -> Error {
    let hint = match error.errno().map(Errno::from_raw_os_error) {
        Some(Errno::NOSPC | Errno::DQUOT) => "free space on its file system, then try again",
        Some(Errno::ROFS) => "remount its file system for writing, then try again",
        Some(Errno::ACCESS | Errno::PERM) => "host-local must run as the owner of ipam.dataDir",
        Some(Errno::NOTDIR) => "ipam.dataDir must be a directory",
        _ => "",
    };
    Error::io(format!("reservations of network {network}: {error}")).with_details(hint)
}

/// The pool can't be locked (code 11 when others hold it) or read.
pub(super) fn ledger(network: &NetworkName, error: &LedgerError) -> Error {
    match error {
        LedgerError::Lock(LockError::File(error)) | LedgerError::Path(error) => {
            path(network, error)
        }
        LedgerError::Lock(error @ LockError::TimedOut { .. }) => {
            Error::try_again(format!("reservations of network {network}: {error}")).with_details(
                "nothing was changed; if that process is stuck, end it: the lock goes with it",
            )
        }
    }
}

/// A second ADD of the same attachment (B038, B059).
pub(super) fn duplicate(pool: &Pool, held: &Reservation) -> Error {
    let network = pool.network();
    Error::already_exists(format!(
        "network {network}: {} has been allocated to {} (file {}), duplicate allocation is not \
         allowed",
        held.address,
        held.owner,
        pool.path_of(held.address).display()
    ))
    .with_details(format!(
        "run DEL for it first, which needs no namespace; if its container is gone: podwire gc \
         {network} --keep-live"
    ))
}

/// A requested address that another holds (B062).
pub(super) fn held(pool: &Pool, requested: &Requested, holder: Option<&Reservation>) -> Error {
    let network = pool.network();
    let address = requested.address;
    let file = pool.path_of(address);
    let by = holder.map_or_else(|| "somebody".to_owned(), |holder| holder.owner.to_string());
    let outdated = reboot::count_older(holder.into_iter()) > 0;
    let age = if outdated { ", reserved before this boot, so its container is gone" } else { "" };
    Error::internal(format!(
        "{}: requested IP address {address} is not available in network {network}: held by {by} \
         (file {}){age}",
        requested.source,
        file.display()
    ))
    .with_details(if outdated {
        format!("free it with: podwire gc {network} --keep-live")
    } else {
        "detach that container, or request another address".to_owned()
    })
}

/// A requested address that this configuration never hands out (B062).
pub(super) fn not_allocatable(sets: &[RangeSet], requested: &Requested) -> Error {
    let Requested { address, source } = requested;
    let all: Vec<_> = sets.iter().map(ToString::to_string).collect();
    let all = all.join("; ");
    let ranges = || sets.iter().flat_map(RangeSet::ranges);
    let place = ranges()
        .map(|range| (range.place(*address), range))
        .find(|(place, _)| *place != Place::Outside);
    let reason = match place {
        Some((Place::Gateway, range)) => {
            format!("requested ip {address} is subnet {}'s gateway", range.subnet)
        }
        Some((Place::Network, range)) => format!(
            "requested IP address {address} can't be allocated: it is the network address of {}",
            range.subnet
        ),
        Some((Place::Broadcast, range)) => format!(
            "requested IP address {address} can't be allocated: it is the broadcast address of {}",
            range.subnet
        ),
        Some((Place::Excluded, range)) => format!(
            "requested IP address {address} can't be allocated: {}.exclude names it",
            range.path
        ),
        Some((Place::BesideBounds | Place::Usable, range)) => format!(
            "requested IP address {address} is outside every range: {} is limited to {range}",
            range.subnet
        ),
        Some((Place::Outside, _)) | None => {
            format!("requested IP address {address} is outside every range ({all})")
        }
    };
    Error::config(format!("{source}: {reason}"))
        .with_details(format!("failed to allocate all requested IPs: {address}"))
}

/// Two requested addresses of one set, which gives one.
pub(super) fn second_request(set: &RangeSet, first: IpAddr, second: &Requested) -> Error {
    Error::config(format!(
        "{}: requested IP address {} is of range set {set}, which already gives {first}: a set \
         gives one address",
        second.source, second.address
    ))
    .with_details(format!("failed to allocate all requested IPs: {}", second.address))
}

/// No address is free (B058). The text is used by STATUS too.
pub(super) fn exhausted(network: &NetworkName, set: &RangeSet, all: &[Reservation]) -> String {
    let here: Vec<_> = all.iter().filter(|one| set.range_of(one.address).is_some()).collect();
    let older = reboot::count_older(here.iter().copied());
    let advice = format!("podwire gc {network} --keep-live");
    let reserved = here.len();
    let stale = if older > 0 {
        format!("{older} of them before this boot, so their containers are gone; free them with: ")
    } else {
        "none of them provably stale; to free those whose container is gone: ".to_owned()
    };
    format!(
        "no IP addresses available in range set: {set} of network {network}: {reserved} reserved, \
         {stale}{advice}"
    )
}
