//! One address of each range set for an attachment, or none at all.

use std::collections::HashSet;
use std::net::IpAddr;

use ipnet::IpNet;
use podwire_spec::Error;
use podwire_sys::PathError;
use podwire_sys::file::{Linked, Unnamed};

use super::config::Requested;
use super::errors;
use super::ledger::Ledger;
use super::pool::Reservation;
use super::range::RangeSet;
use super::reservation::Owner;

/// How many taken addresses are stepped over one by one before the directory
/// is listed: a try is one call, a listing costs as much as some hundreds.
const TRIES_BEFORE_LISTING: u32 = 64;

/// An address that was handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Allocation {
    /// The address with the prefix of its subnet.
    pub(super) address: IpNet,
    pub(super) gateway: Option<IpAddr>,
}

/// Reserves one address of each set: the one requested of it, or else the
/// next that is free after the one handed out last.
///
/// # Errors
/// Then nothing that this call reserved stays, and nothing else was touched.
pub(super) fn allocate(
    ledger: &mut Ledger,
    sets: &[RangeSet],
    owner: &Owner,
    requested: &[Requested],
) -> Result<Vec<Allocation>, Error> {
    refuse_second(ledger, sets, owner)?;
    let wishes = assign(sets, requested)?;
    let mut made = Vec::new();
    for (at, (set, wish)) in sets.iter().zip(wishes).enumerate() {
        let outcome = match wish {
            Some(wish) => exactly(ledger, wish, owner),
            None => any(ledger, at, set, owner),
        };
        match outcome.and_then(|address| allocation(set, address)) {
            Ok(allocation) => made.push(allocation),
            Err(error) => {
                take_back(ledger, &made, owner);
                return Err(error);
            }
        }
        if let Some(last) = made.last()
            && let Err(error) = ledger.pool().set_last_reserved(at, last.address.addr())
        {
            // The address is reserved; only the next search begins elsewhere.
            log::warn!("could not remember the address handed out last: {error}");
        }
    }
    Ok(made)
}

fn allocation(set: &RangeSet, address: IpAddr) -> Result<Allocation, Error> {
    let range = set.range_of(address);
    range
        .and_then(|range| {
            let address = IpNet::new(address, range.subnet.prefix_len()).ok()?;
            Some(Allocation { address, gateway: range.gateway })
        })
        .ok_or_else(|| Error::internal(format!("{address} is not in range set {set}")))
}

fn take_back(ledger: &mut Ledger, made: &[Allocation], owner: &Owner) {
    for allocation in made {
        let address = allocation.address.addr();
        if let Err(error) = release_one(ledger, address, owner) {
            log::warn!("could not take back {address}: {error}");
        }
    }
}

/// Frees one address if this owner still holds it.
pub(super) fn release_one(
    ledger: &mut Ledger,
    address: IpAddr,
    owner: &Owner,
) -> Result<(), PathError> {
    match ledger.pool().read(address)? {
        Some(reservation) if reservation.owner == *owner => ledger.free(&reservation),
        _ => Ok(()),
    }
}

/// One attachment has one address of each set, requested or not (B059).
fn refuse_second(ledger: &Ledger, sets: &[RangeSet], owner: &Owner) -> Result<(), Error> {
    let mut owners = vec![owner.clone()];
    owners.extend(owner.container().map(|container| Owner::Container(container.to_owned())));
    for owner in owners {
        let held = ledger.held_by(&owner).map_err(|error| failed(ledger, &error))?;
        let here = |one: &&Reservation| sets.iter().any(|set| set.range_of(one.address).is_some());
        if let Some(held) = held.iter().find(here) {
            return Err(errors::duplicate(ledger.pool(), held));
        }
    }
    Ok(())
}

/// Which requested address each set is to give.
fn assign<'r>(
    sets: &[RangeSet],
    requested: &'r [Requested],
) -> Result<Vec<Option<&'r Requested>>, Error> {
    let mut wishes: Vec<Option<&Requested>> = vec![None; sets.len()];
    for wish in requested {
        let mut places = sets.iter().zip(&mut wishes);
        let Some((set, place)) = places.find(|(set, _)| set.hands_out(wish.address)) else {
            return Err(errors::not_allocatable(sets, wish));
        };
        if let Some(first) = place {
            return Err(errors::second_request(set, first.address, wish));
        }
        *place = Some(wish);
    }
    Ok(wishes)
}

/// Reserves the requested address.
fn exactly(ledger: &mut Ledger, wish: &Requested, owner: &Owner) -> Result<IpAddr, Error> {
    let linked = reserve_first(ledger, std::iter::once(wish.address), owner)
        .map_err(|error| failed(ledger, &error))?;
    if let Some(address) = linked {
        return Ok(address);
    }
    let holder = ledger.pool().read(wish.address).ok().flatten();
    Err(errors::held(ledger.pool(), wish, holder.as_ref()))
}

/// Reserves any address of a set.
fn any(ledger: &mut Ledger, at: usize, set: &RangeSet, owner: &Owner) -> Result<IpAddr, Error> {
    let last = ledger.pool().last_reserved(at);
    let attempt = |ledger: &mut Ledger| {
        reserve_first(ledger, set.candidates(last), owner).map_err(|error| failed(ledger, &error))
    };
    if let Some(address) = attempt(ledger)? {
        return Ok(address);
    }
    let all = ledger.all().map_err(|error| failed(ledger, &error))?;
    // Files without a readable owner were left by a crash. No one is writing
    // them, for we hold the lock (B002).
    let orphans = all.iter().filter(|one| one.owner == Owner::Unreadable);
    let mut orphans = orphans.filter(|one| set.hands_out(one.address)).peekable();
    if orphans.peek().is_some() {
        for orphan in orphans {
            ledger.free(orphan).map_err(|error| failed(ledger, &error))?;
            log::info!("freed {}: its reservation names no owner", orphan.address);
        }
        if let Some(address) = attempt(ledger)? {
            return Ok(address);
        }
    }
    Err(Error::internal(errors::exhausted(ledger.pool().network(), set, &all)))
}

/// Reserves the first of the candidates that is free.
fn reserve_first(
    ledger: &mut Ledger,
    candidates: impl Iterator<Item = IpAddr>,
    owner: &Owner,
) -> Result<Option<IpAddr>, PathError> {
    let (directory, content) = (ledger.pool().path().to_owned(), owner.content());
    let prepared = Unnamed::write(&directory, content.as_bytes(), super::pool::RESERVATION)?;
    let mut tries = 0;
    let mut taken: HashSet<IpAddr> = HashSet::new();
    for candidate in candidates {
        if taken.contains(&candidate) {
            continue;
        }
        if ledger.reserve(&prepared, candidate, owner)? == Linked::Created {
            return Ok(Some(candidate));
        }
        tries += 1;
        if tries == TRIES_BEFORE_LISTING {
            taken = ledger.pool().addresses()?.into_iter().collect();
        }
    }
    Ok(None)
}

fn failed(ledger: &Ledger, error: &PathError) -> Error {
    errors::path(ledger.pool().network(), error)
}

#[cfg(test)]
#[path = "allocate_tests.rs"]
mod tests;
