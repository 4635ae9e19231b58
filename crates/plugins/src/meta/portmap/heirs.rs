//! Ports that several attachments of one container want.
//!
//! Runtimes hand all mappings of a container to each of its networks. The first
//! attachment holds the ports, and its record names those that came later, its
//! heirs. When it leaves, the first heir that is still there takes its ports in the
//! same transaction: no connection meets a host that has forgotten the port.

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{Batch, Element, IpVersion, NftSocket};
use podwire_plugin::OwnerMark;
use podwire_resources::nft::owners::{self, Record};

use super::forwarding::{Held, heir_word, record_entries};
use super::layout::{self, HAIRPINS};

/// An attachment with what is written down about it.
struct Heir {
    mark: OwnerMark,
    record: Record,
    held: Held,
}

/// Adds to a batch that the holder's record names these heirs too. The batch must
/// require the generation that was current before anything was looked up.
pub(super) fn enter<'a>(
    batch: &mut Batch,
    version: IpVersion,
    holder: &OwnerMark,
    record: &Record,
    heirs: impl IntoIterator<Item = &'a OwnerMark>,
) {
    let mut words = record.words.clone();
    for heir in heirs {
        let word = heir_word(heir);
        if !words.contains(&word) {
            words.push(word);
        }
    }
    if words.len() == record.words.len() {
        return;
    }
    let set = layout::table(version).set(owners::NAME);
    batch.delete_elements(set, &record.entries);
    batch.create_elements(set, &record_entries(holder, &words, Held::read(record, holder).scope));
}

/// Adds to a batch that the heirs take over what it deletes of the holder's: of these
/// maps and keys those that are ports.
pub(super) fn hand_over(
    socket: &mut NftSocket,
    batch: &mut Batch,
    version: IpVersion,
    holder: &Held,
    leaving: &[(String, Element)],
) -> Result<(), NetlinkError> {
    let id = layout::table(version);
    let mut heirs = Vec::with_capacity(holder.heirs.len());
    for mark in &holder.heirs {
        if let Some(record) = owners::read(socket, id, mark)? {
            let held = Held::read(&record, mark);
            if held.is_same_container(holder) {
                heirs.push(Heir { mark: *mark, record, held });
            }
        }
    }
    let mut left: Vec<_> = leaving.iter().filter(|(map, _)| map != HAIRPINS).collect();
    let mut rest = heirs.as_slice();
    while let Some((heir, later)) = rest.split_first() {
        rest = later;
        let mut taken = false;
        for (map, element) in heir.held.ports(&heir.mark) {
            let before = left.len();
            left.retain(|(other, key)| *other != map || key.key != element.key);
            if left.len() < before {
                taken = true;
                batch.create_elements(id.set(&map), [&element]);
            }
        }
        if taken {
            log::info!("host ports of {} go on to {}", holder.name, heir.held.name);
            let marks = later.iter().map(|later| &later.mark);
            enter(batch, version, &heir.mark, &heir.record, marks);
        }
    }
    Ok(())
}
