//! Who holds a port, and whether that container still is there.

use std::collections::BTreeSet;
use std::net::IpAddr;

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{Batch, Element, IpVersion, NftSocket};
use podwire_resources::nft::{owner_of, owners};
use podwire_resources::{Kernel, refused};
use podwire_spec::{Error, ErrorCode};

use super::departure::Departure;
use super::forwarding::{Entry, Forwarding, Held};
use super::heirs;
use super::layout;

/// The code of the error that names a port's live holder: the first of this
/// plugin's own.
const PORT_TAKEN: ErrorCode = ErrorCode::Plugin(101);

/// What is written down about an element's owner; `None` if nothing is.
pub(super) fn of(
    socket: &mut NftSocket,
    version: IpVersion,
    element: &Element,
) -> Result<Option<Held>, NetlinkError> {
    let Some(owner) = owner_of(&element.userdata) else { return Ok(None) };
    let record = owners::read(socket, layout::table(version), &owner)?;
    Ok(record.map(|record| Held::read(&record, &owner)))
}

/// Looks at who holds the keys that are wanted, and adds the removal of what
/// dead ones hold to the batch. Returns what is left to be made: ports that
/// another attachment of the same container holds stay with that, since
/// runtimes hand all mappings to every network of a container, and it is written
/// down there who wants them next.
///
/// # Errors
/// A live holder is named.
pub(super) fn resolve(
    kernel: &mut Kernel,
    batch: &mut Batch,
    departure: &mut Departure,
    forwarding: &Forwarding,
    entries: Vec<Entry>,
) -> Result<Vec<Entry>, Error> {
    let id = layout::table(forwarding.version);
    let mut wanted = Vec::with_capacity(entries.len());
    let mut holders = BTreeSet::new();
    for entry in entries {
        let set = id.set(&entry.map);
        let Some(found) = kernel.nft()?.element(set, &entry.element).map_err(refused)? else {
            wanted.push(entry);
            continue;
        };
        let owner = owner_of(&found.userdata);
        if owner == Some(forwarding.owner) {
            // Its removal is in the batch, if its record told of it.
            let told = of(kernel.nft()?, forwarding.version, &found).map_err(refused)?;
            let told = told.is_some_and(|held| {
                held.keys().iter().any(|(map, key)| *map == entry.map && key.key == found.key)
            });
            if !told {
                departure.element(batch, &entry.map, &found);
            }
            wanted.push(entry);
            continue;
        }
        let held = of(kernel.nft()?, forwarding.version, &found).map_err(refused)?;
        // The key of the others begins with the container's address, which is
        // ours now whoever had it before.
        if let (Some(held), true) = (&held, entry.is_port) {
            if forwarding.is_same_container(held) {
                log::info!("{} stays with {}", entry.what, held.name);
                holders.extend(owner);
                continue;
            }
            if is_alive(kernel, forwarding, held)? {
                return Err(taken(&entry.what, &held.name, held.address));
            }
            log::warn!("{} is taken over from {}, which is gone", entry.what, held.name);
        }
        departure.element(batch, &entry.map, &found);
        wanted.push(entry);
    }
    for holder in holders {
        let record = owners::read(kernel.nft()?, id, &holder).map_err(refused)?;
        if let Some(record) = record {
            heirs::enter(batch, forwarding.version, &holder, &record, [&forwarding.owner]);
        }
    }
    Ok(wanted)
}

/// A holder is dead when the host's end of its interface is gone, or when its
/// address is ours by now. One whose interface has no end on the host can't
/// be proven dead.
fn is_alive(kernel: &mut Kernel, forwarding: &Forwarding, held: &Held) -> Result<bool, Error> {
    if held.address == Some(forwarding.address) {
        return Ok(false);
    }
    let Some(link) = held.link else { return Ok(true) };
    Ok(kernel.host()?.link_by_index(link).map_err(refused)?.is_some())
}

/// The error that names a port's live holder.
pub(super) fn taken(port: &str, holder: &str, address: Option<IpAddr>) -> Error {
    let address = address.map(|address| format!(" ({address})")).unwrap_or_default();
    Error::new(
        PORT_TAKEN,
        format!("{port} of this host is already mapped to {holder}{address}, which is still there"),
    )
    .with_details(
        "detach that container (DEL, with the network/container/interface named here), or map \
         another hostPort",
    )
}
