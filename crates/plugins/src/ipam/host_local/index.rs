//! The index: which addresses an owner holds, without reading every file.
//!
//! One file a network and boot, `<dataDir>/.podwire/<network>/<boot id>`: a
//! table of (number of the owner, address) with open addressing. It is a hint
//! in both directions:
//! - a hit is verified in the reservation file;
//! - a miss counts only while the index is **sealed**: the header holds the
//!   very modification time, to the nanosecond, that we gave the network's
//!   directory after our last change. Whoever else creates or removes a file
//!   there (a Go plugin, a person) makes the kernel set that time to the
//!   current clock tick, which is before or after ours but never equal to it.
//!   Broken seal: the files are read again and the index written anew.
//!
//! So no crash can make it lie: a reservation made without its entry has
//! broken the seal, and an entry without a reservation fails verification.
//! The file's name makes every entry a stamp: the reservation existed in that
//! boot.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use podwire_sys::file::{Durability, write_atomic};
use rustix::fs::{Mode, OFlags};

/// First bytes of the file: a name and the version of this layout.
const MAGIC: &[u8; 8] = b"podwire1";
const HEADER: usize = 64;
const SLOT: usize = 32;
/// Slots of a new index: 8 KiB, for 192 reservations.
const FIRST_CAPACITY: u64 = 256;
/// No index larger than this is believed (2 GiB).
const LARGEST_CAPACITY: u64 = 1 << 26;
/// Slots read at once when looking for a number.
const CLUSTER: usize = 16;

/// The modification time of a directory: seconds and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seal {
    pub(super) seconds: i64,
    pub(super) nanoseconds: u64,
}

/// One entry: an owner's number and an address it holds.
pub(super) type Entry = (u64, IpAddr);

/// An open index.
#[derive(Debug)]
pub(super) struct Index {
    file: File,
    path: PathBuf,
    capacity: u64,
    /// Slots that aren't empty; removed entries count.
    used: u64,
    seal: Seal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Empty,
    Removed,
    Holds(Entry),
}

impl Index {
    /// Opens an index; `None` when there is none that can be used.
    pub(super) fn open(path: &Path) -> Option<Self> {
        // Written to in place: what lies there under a second name, or leads
        // elsewhere, is another's file, and a new index takes its place.
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || metadata.nlink() != 1 {
            return None;
        }
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, 0).ok()?;
        let word = |at: usize| -> Option<[u8; 8]> { header.get(at..at + 8)?.try_into().ok() };
        let (capacity, used) = (u64::from_le_bytes(word(8)?), u64::from_le_bytes(word(16)?));
        let seal = Seal {
            seconds: i64::from_le_bytes(word(24)?),
            nanoseconds: u64::from_le_bytes(word(32)?),
        };
        let sound = header.starts_with(MAGIC)
            && capacity.is_power_of_two()
            && capacity <= LARGEST_CAPACITY
            && used < capacity
            && metadata.len() == offset(capacity);
        sound.then(|| Self { file, path: path.to_owned(), capacity, used, seal })
    }

    /// Writes an index with these entries, in place of the one that is there.
    /// It is not sealed.
    pub(super) fn create(path: &Path, entries: &[Entry]) -> io::Result<Self> {
        let count = entries.len() as u64;
        // At most three quarters full, with room for as many again.
        let capacity = (count * 2).next_power_of_two().max(FIRST_CAPACITY);
        let mut slots = vec![Slot::Empty; usize::try_from(capacity).map_err(io::Error::other)?];
        for entry in entries {
            let mut at = entry.0 & (capacity - 1);
            loop {
                let slot = usize::try_from(at).ok().and_then(|at| slots.get_mut(at));
                let Some(slot) = slot else { return Err(io::Error::other("no free slot")) };
                if *slot == Slot::Empty {
                    *slot = Slot::Holds(*entry);
                    break;
                }
                at = (at + 1) & (capacity - 1);
            }
        }
        let mut bytes = header(capacity, count, None).to_vec();
        bytes.extend(slots.into_iter().flat_map(encode));
        write_atomic(path, &bytes, 0o600, Durability::Volatile)?;
        Self::open(path).ok_or_else(|| io::Error::other("the index can't be read back"))
    }

    /// The modification time the directory had when all was in the index.
    pub(super) fn seal(&self) -> Seal {
        self.seal
    }

    /// Seals the index: everything in the directory is in it.
    pub(super) fn set_seal(&mut self, seal: Seal) -> io::Result<()> {
        self.seal = seal;
        self.file.write_all_at(&header(self.capacity, self.used, Some(seal)), 0)
    }

    /// The addresses of an owner's number.
    pub(super) fn lookup(&self, number: u64) -> io::Result<Vec<IpAddr>> {
        let mut found = Vec::new();
        self.probe(number, |_, slot| {
            if let Slot::Holds((holder, address)) = slot
                && holder == number
            {
                found.push(address);
            }
            false
        })?;
        Ok(found)
    }

    /// Adds an entry.
    pub(super) fn insert(&mut self, entry: Entry) -> io::Result<()> {
        if (self.used + 1) * 4 > self.capacity * 3 {
            let entries = self.entries()?;
            *self = Self::create(&self.path, &entries)?;
        }
        let mut free = None;
        let mut present = false;
        let end = self.probe(entry.0, |at, slot| {
            match slot {
                Slot::Removed if free.is_none() => free = Some(at),
                Slot::Holds(holds) if holds == entry => present = true,
                _ => {}
            }
            present
        })?;
        if present {
            return Ok(());
        }
        let at = free.or(end).ok_or_else(|| io::Error::other("no free slot"))?;
        self.used += u64::from(free.is_none());
        self.file.write_all_at(&encode(Slot::Holds(entry)), offset(at))
    }

    /// Removes an entry, if it is there.
    pub(super) fn remove(&mut self, entry: Entry) -> io::Result<()> {
        let mut place = None;
        self.probe(entry.0, |at, slot| {
            if slot == Slot::Holds(entry) {
                place = Some(at);
            }
            place.is_some()
        })?;
        match place {
            Some(at) => self.file.write_all_at(&encode(Slot::Removed), offset(at)),
            None => Ok(()),
        }
    }

    /// All entries.
    pub(super) fn entries(&self) -> io::Result<Vec<Entry>> {
        let size = usize::try_from(self.capacity).map_err(io::Error::other)? * SLOT;
        let mut bytes = vec![0; size];
        self.file.read_exact_at(&mut bytes, HEADER as u64)?;
        Ok(bytes
            .chunks_exact(SLOT)
            .filter_map(|bytes| match decode(bytes) {
                Slot::Holds(entry) => Some(entry),
                _ => None,
            })
            .collect())
    }

    /// Visits the slots where a number may be, until `stop` says so or an
    /// empty one ends them, whose place is returned.
    fn probe(
        &self,
        number: u64,
        mut stop: impl FnMut(u64, Slot) -> bool,
    ) -> io::Result<Option<u64>> {
        let mut at = number & (self.capacity - 1);
        let mut left = self.capacity;
        while left > 0 {
            let count = (CLUSTER as u64).min(self.capacity - at).min(left);
            let mut bytes = [0; CLUSTER * SLOT];
            let wanted = bytes.get_mut(..usize::try_from(count).unwrap_or(0) * SLOT);
            let Some(wanted) = wanted else { return Ok(None) };
            self.file.read_exact_at(wanted, offset(at))?;
            for (place, bytes) in (at..).zip(wanted.chunks_exact(SLOT)) {
                match decode(bytes) {
                    Slot::Empty => return Ok(Some(place)),
                    slot if stop(place, slot) => return Ok(None),
                    _ => {}
                }
            }
            left -= count;
            at = (at + count) & (self.capacity - 1);
        }
        Ok(None)
    }
}

/// Where a slot stands in the file; that of the number of slots is the end.
fn offset(slot: u64) -> u64 {
    HEADER as u64 + slot * SLOT as u64
}

fn header(capacity: u64, used: u64, seal: Option<Seal>) -> [u8; HEADER] {
    // No directory was last changed then.
    let seal = seal.unwrap_or(Seal { seconds: i64::MIN, nanoseconds: u64::MAX });
    let mut header = [0; HEADER];
    let words = [
        *MAGIC,
        capacity.to_le_bytes(),
        used.to_le_bytes(),
        seal.seconds.to_le_bytes(),
        seal.nanoseconds.to_le_bytes(),
    ];
    for (to, from) in header.iter_mut().zip(words.iter().flatten()) {
        *to = *from;
    }
    header
}

/// A slot: kind, 7 bytes unused, number, address.
fn encode(slot: Slot) -> [u8; SLOT] {
    let (kind, number, address) = match slot {
        Slot::Empty => (0, 0, 0),
        Slot::Holds((number, IpAddr::V4(address))) => (4, number, u128::from(u32::from(address))),
        Slot::Holds((number, IpAddr::V6(address))) => (6, number, u128::from(address)),
        Slot::Removed => (1, 0, 0),
    };
    let mut bytes = [0; SLOT];
    let fields = [kind, 0, 0, 0, 0, 0, 0, 0]
        .into_iter()
        .chain(number.to_le_bytes())
        .chain(address.to_le_bytes());
    for (to, from) in bytes.iter_mut().zip(fields) {
        *to = from;
    }
    bytes
}

/// A damaged slot reads as removed: it ends no probe and holds nothing.
fn decode(bytes: &[u8]) -> Slot {
    let number = bytes.get(8..16).and_then(|part| part.try_into().ok()).map(u64::from_le_bytes);
    let address = bytes.get(16..32).and_then(|part| part.try_into().ok()).map(u128::from_le_bytes);
    let (Some(number), Some(address)) = (number, address) else { return Slot::Removed };
    let address = match bytes.first() {
        Some(0) => return Slot::Empty,
        Some(4) => u32::try_from(address).ok().map(|address| Ipv4Addr::from(address).into()),
        Some(6) => Some(Ipv6Addr::from(address).into()),
        _ => None,
    };
    address.map_or(Slot::Removed, |address| Slot::Holds((number, address)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64, last: u32) -> Entry {
        (number, IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + last)))
    }

    fn fresh(entries: &[Entry]) -> (tempfile::TempDir, Index) {
        let directory = tempfile::tempdir().unwrap();
        let index = Index::create(&directory.path().join("index"), entries).unwrap();
        (directory, index)
    }

    #[test]
    fn entries_are_found_removed_and_survive_reopening() {
        let (_directory, mut index) = fresh(&[entry(7, 1)]);
        let v6 = (7 + FIRST_CAPACITY, "fd00::1".parse().unwrap());
        index.insert(entry(7, 2)).unwrap();
        index.insert(v6).unwrap();
        index.insert(entry(7, 2)).unwrap();
        let seal = Seal { seconds: -3, nanoseconds: 999_999_999 };
        assert_ne!(index.seal(), seal);
        index.set_seal(seal).unwrap();
        let mut index = Index::open(&index.path).unwrap();
        assert_eq!(index.seal(), seal);
        assert_eq!(index.lookup(7).unwrap(), [entry(7, 1).1, entry(7, 2).1]);
        assert_eq!(index.lookup(v6.0).unwrap(), [v6.1], "same place, other number");
        assert_eq!(index.lookup(8).unwrap(), [] as [IpAddr; 0]);
        index.remove(entry(7, 1)).unwrap();
        index.remove(entry(9, 9)).unwrap();
        assert_eq!(index.lookup(7).unwrap(), [entry(7, 2).1]);
        assert_eq!(index.lookup(v6.0).unwrap(), [v6.1], "a removed slot ends no probe");
        index.insert(entry(7, 3)).unwrap();
        assert_eq!(index.used, 3, "the removed slot is used again");
    }

    #[test]
    fn it_grows_and_probes_go_round_the_end() {
        let (_directory, mut index) = fresh(&[]);
        let last = FIRST_CAPACITY - 1;
        for number in 0..1000 {
            index.insert(entry(last, number)).unwrap();
        }
        assert!(index.capacity >= 1024);
        assert_eq!(index.lookup(last).unwrap().len(), 1000);
        assert_eq!(index.entries().unwrap().len(), 1000);
        for number in 0..1000 {
            index.remove(entry(last, number)).unwrap();
        }
        assert!(index.lookup(last).unwrap().is_empty());
    }

    #[test]
    fn churn_does_not_fill_it() {
        let (_directory, mut index) = fresh(&[]);
        for number in 0..2000 {
            index.insert(entry(u64::from(number) * 977, number)).unwrap();
            index.remove(entry(u64::from(number) * 977, number)).unwrap();
        }
        assert_eq!(index.capacity, FIRST_CAPACITY);
    }

    #[test]
    fn what_is_no_index_is_none() {
        let (directory, index) = fresh(&[entry(1, 1)]);
        let whole = std::fs::read(&index.path).unwrap();
        let path = directory.path().join("other");
        assert!(Index::open(&path).is_none());
        let mut huge = whole.clone();
        huge[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        let mut full = whole.clone();
        full[16..24].copy_from_slice(&FIRST_CAPACITY.to_le_bytes());
        for bytes in
            [&b""[..], &whole[..HEADER], &whole[1..], &whole[..whole.len() - 1], &huge, &full]
        {
            std::fs::write(&path, bytes).unwrap();
            assert!(Index::open(&path).is_none());
        }
        std::fs::hard_link(&index.path, directory.path().join("second name")).unwrap();
        assert!(Index::open(&index.path).is_none(), "another's file");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(directory.path().join("second name"), &path).unwrap();
        assert!(Index::open(&path).is_none(), "a symbolic link");
        std::fs::remove_file(&path).unwrap();
        let mut damaged = whole.clone();
        damaged[HEADER..].fill(0xff);
        std::fs::write(&path, &damaged).unwrap();
        let mut index = Index::open(&path).unwrap();
        assert!(index.lookup(5).unwrap().is_empty());
        index.insert(entry(5, 5)).unwrap();
        assert_eq!(index.lookup(5).unwrap(), [entry(5, 5).1]);
    }
}
