//! The directory of one network, where each reserved address is a file.
//!
//! Names, contents, modes and the lock are the Go plugin's, which may run on
//! the same directory at the same time. Files that no such plugin writes are
//! left alone.

use std::ffi::CStr;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use podwire_spec::id::NetworkName;
use podwire_sys::lock::{FileLock, LockError};
use podwire_sys::{PathError, file};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;

use super::index::Seal;
use super::reservation::{CONTENT_LIMIT, Owner};

/// How long another process may hold the lock before a call gives up (B091).
const LOCK_WAIT: Duration = Duration::from_secs(8);
/// Mode of directories that the Go plugin also makes.
const SHARED_DIRECTORY: u32 = 0o755;
/// Mode of a reservation.
pub(super) const RESERVATION: u32 = 0o600;

/// One reservation, as it lies in the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reservation {
    pub(super) address: IpAddr,
    pub(super) owner: Owner,
    /// When it was made.
    pub(super) modified: SystemTime,
}

/// The directory of a network's reservations.
#[derive(Debug)]
pub(super) struct Pool {
    network: NetworkName,
    path: PathBuf,
    directory: OwnedFd,
}

impl Pool {
    /// Opens the directory of a network, `None` when there is none.
    pub(super) fn open(data_dir: &Path, network: &NetworkName) -> Result<Option<Self>, PathError> {
        let path = data_dir.join(network.as_str());
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = match rustix::fs::open(&path, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Err(Errno::NOTDIR | Errno::LOOP) => {
                file::refuse_foreign_link(&path)?;
                rustix::fs::open(&path, flags, Mode::empty())
            }
            other => other,
        };
        match opened {
            Ok(directory) => Ok(Some(Self { network: network.clone(), path, directory })),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(PathError::new("opening", path, error)),
        }
    }

    /// The same, making the directory when there is none.
    pub(super) fn open_or_create(
        data_dir: &Path,
        network: &NetworkName,
    ) -> Result<Self, PathError> {
        if let Some(pool) = Self::open(data_dir, network)? {
            return Ok(pool);
        }
        let path = data_dir.join(network.as_str());
        file::create_dir_all(&path, SHARED_DIRECTORY)?;
        Self::open(data_dir, network)?.ok_or_else(|| PathError::new("opening", path, Errno::NOENT))
    }

    /// The network.
    pub(super) fn network(&self) -> &NetworkName {
        &self.network
    }

    /// The directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file of an address, whether it is there or not.
    pub(super) fn path_of(&self, address: IpAddr) -> PathBuf {
        self.path.join(address.to_string())
    }

    /// Takes the lock that the Go plugin takes too. `None` on a file system
    /// that can't be written, where nobody changes anything.
    pub(super) fn lock(&self) -> Result<Option<FileLock>, LockError> {
        match FileLock::exclusive(self.path.join("lock"), LOCK_WAIT) {
            Ok(lock) => Ok(Some(lock)),
            Err(LockError::File(error)) if error.errno() == Some(Errno::ROFS.raw_os_error()) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// When the directory was last changed.
    pub(super) fn changed(&self) -> Result<Seal, PathError> {
        let stat =
            rustix::fs::fstat(&self.directory).map_err(|error| self.error("reading", error))?;
        Ok(Seal { seconds: stat.st_mtime, nanoseconds: nanoseconds(&stat) })
    }

    /// Marks the directory with a time of change that nobody else gives it,
    /// and says which; `None` where the file system can't keep one exactly.
    ///
    /// It is the current time with all its nanoseconds, so it lies between
    /// two ticks of the clock that the kernel stamps changes with.
    pub(super) fn mark(&self) -> Option<Seal> {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let unchanged = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
        let times = Timestamps { last_access: unchanged, last_modification: now };
        rustix::fs::futimens(&self.directory, &times).ok()?;
        let mark = Seal { seconds: now.tv_sec, nanoseconds: now.tv_nsec.try_into().ok()? };
        (self.changed().ok()? == mark).then_some(mark)
    }

    /// Reads the reservation of an address; `None` when it is free.
    pub(super) fn read(&self, address: IpAddr) -> Result<Option<Reservation>, PathError> {
        let Some((content, stat)) = self.content(&address.to_string())? else { return Ok(None) };
        let owner = Owner::parse(&content);
        Ok(Some(Reservation { address, owner, modified: modified(&stat) }))
    }

    /// Frees an address; it may be free already.
    pub(super) fn free(&self, address: IpAddr) -> Result<(), PathError> {
        match rustix::fs::unlinkat(&self.directory, address.to_string(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(PathError::new("removing", self.path_of(address), error)),
        }
    }

    /// All addresses that a file is named after, in no order.
    pub(super) fn addresses(&self) -> Result<Vec<IpAddr>, PathError> {
        self.named(&[FileType::RegularFile, FileType::Unknown])
    }

    /// All addresses that a symbolic link is named after, in no order. It is
    /// no reservation, but none can be made while it is there.
    pub(super) fn symbolic_links(&self) -> Result<Vec<IpAddr>, PathError> {
        self.named(&[FileType::Symlink])
    }

    fn named(&self, kinds: &[FileType]) -> Result<Vec<IpAddr>, PathError> {
        let listing =
            Dir::read_from(&self.directory).map_err(|error| self.error("listing", error))?;
        let mut found = Vec::new();
        for entry in listing {
            let entry = entry.map_err(|error| self.error("listing", error))?;
            let is_wanted = kinds.contains(&entry.file_type());
            found.extend(address_of(entry.file_name()).filter(|_| is_wanted));
        }
        Ok(found)
    }

    /// All reservations, each file read.
    pub(super) fn reservations(&self) -> Result<Vec<Reservation>, PathError> {
        let addresses = self.addresses()?;
        let mut found = Vec::with_capacity(addresses.len());
        for address in addresses {
            found.extend(self.read(address)?);
        }
        Ok(found)
    }

    /// The address handed out last from a set; a hint.
    pub(super) fn last_reserved(&self, set: usize) -> Option<IpAddr> {
        let (content, _) = self.content(&last_reserved_name(set)).ok()??;
        podwire_spec::address::parse_ip(std::str::from_utf8(&content).ok()?.trim())
    }

    /// Remembers the address handed out last from a set. Written in place, as
    /// it is a hint: losing it costs a search, not an address. Not truncated
    /// first either: ext4 would write a file that was empty to the disk at
    /// once.
    ///
    /// What lies there and is no plain file, or has a second name, is taken out
    /// of the way: it leads to something that isn't ours to write.
    pub(super) fn set_last_reserved(&self, set: usize, address: IpAddr) -> Result<(), PathError> {
        let name = last_reserved_name(set);
        let failed = |error: Errno| PathError::new("writing", self.path.join(&name), error);
        let flags = OFlags::WRONLY | OFlags::CREATE;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mode = Mode::from_raw_mode(RESERVATION);
        let open = || -> Result<Option<OwnedFd>, Errno> {
            let file = match rustix::fs::openat(&self.directory, name.as_str(), flags, mode) {
                // A link; a FIFO or socket.
                Err(Errno::LOOP | Errno::NXIO) => return Ok(None),
                other => other?,
            };
            let stat = rustix::fs::fstat(&file)?;
            let is_plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            Ok((is_plain && stat.st_nlink == 1).then_some(file))
        };
        let file = match open().map_err(failed)? {
            Some(file) => file,
            None => {
                rustix::fs::unlinkat(&self.directory, name.as_str(), AtFlags::empty())
                    .map_err(failed)?;
                open().map_err(failed)?.ok_or_else(|| failed(Errno::EXIST))?
            }
        };
        let text = address.to_string();
        rustix::io::write(&file, text.as_bytes()).map_err(failed)?;
        let length = text.len() as u64;
        let stat = rustix::fs::fstat(&file).map_err(failed)?;
        if u64::try_from(stat.st_size).is_ok_and(|size| size > length) {
            rustix::fs::ftruncate(&file, length).map_err(failed)?;
        }
        Ok(())
    }

    /// The bounded content of a plain file; `None` when it isn't there.
    fn content(&self, name: &str) -> Result<Option<(Vec<u8>, Stat)>, PathError> {
        let failed = |error: Errno| PathError::new("reading", self.path.join(name), error);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = match rustix::fs::openat(&self.directory, name, flags, Mode::empty()) {
            Ok(file) => file,
            // A link, a socket: nothing that a plugin reserves with.
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let stat = rustix::fs::fstat(&file).map_err(failed)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(None);
        }
        let expected = usize::try_from(stat.st_size).unwrap_or(usize::MAX).min(CONTENT_LIMIT);
        let mut content = Vec::with_capacity(expected);
        while content.len() < expected {
            let spare = rustix::buffer::spare_capacity(&mut content);
            match rustix::io::read(&file, spare) {
                Ok(0) => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(Some((content, stat)))
    }

    fn error(&self, operation: &'static str, error: Errno) -> PathError {
        PathError::new(operation, &self.path, error)
    }
}

fn last_reserved_name(set: usize) -> String {
    format!("last_reserved_ip.{set}")
}

/// The address a file is named after, if it is spelled as a plugin spells it.
fn address_of(name: &CStr) -> Option<IpAddr> {
    let name = name.to_str().ok()?;
    let address: IpAddr = name.parse().ok()?;
    (address.to_string() == name).then_some(address)
}

/// The part of the time of change below a second.
fn nanoseconds(stat: &Stat) -> u64 {
    #[allow(clippy::unnecessary_fallible_conversions, clippy::useless_conversion)]
    // Signed where rustix goes through libc, as for valgrind (docs/performance.md).
    u64::try_from(stat.st_mtime_nsec).unwrap_or_default()
}

fn modified(stat: &Stat) -> SystemTime {
    let nanoseconds = Duration::from_nanos(nanoseconds(stat));
    let seconds = Duration::from_secs(stat.st_mtime.unsigned_abs());
    let time = if stat.st_mtime < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(seconds)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(seconds)
    };
    time.and_then(|time| time.checked_add(nanoseconds)).unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use podwire_sys::file::{Linked, Unnamed};

    fn pool() -> (tempfile::TempDir, Pool) {
        let directory = tempfile::tempdir().unwrap();
        let network = NetworkName::parse("n1").unwrap();
        assert!(Pool::open(directory.path(), &network).unwrap().is_none());
        let pool = Pool::open_or_create(directory.path(), &network).unwrap();
        (directory, pool)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_reservation_is_made_once_read_and_freed() {
        let (_directory, pool) = pool();
        let owner = Owner::attachment("c1", "eth0");
        let content = owner.content();
        let prepared = Unnamed::write(pool.path(), content.as_bytes(), RESERVATION).unwrap();
        let address = ip("fd00::2");
        assert_eq!(pool.read(address).unwrap(), None);
        assert_eq!(prepared.link(&address.to_string()).unwrap(), Linked::Created);
        assert_eq!(prepared.link(&address.to_string()).unwrap(), Linked::AlreadyExists);
        assert_eq!(pool.read(address).unwrap().unwrap().owner, owner);
        assert_eq!(std::fs::read(pool.path_of(address)).unwrap(), b"c1\r\neth0");
        pool.free(address).unwrap();
        pool.free(address).unwrap();
        assert!(pool.addresses().unwrap().is_empty());
    }

    #[test]
    fn only_plain_files_named_as_addresses_are_reservations() {
        let (_directory, pool) = pool();
        for name in ["lock", "last_reserved_ip.0", "010.1.0.1", "FD00::1", "10.1.0.1.bak"] {
            std::fs::write(pool.path.join(name), "c1\r\neth0").unwrap();
        }
        std::fs::create_dir(pool.path.join("10.1.0.4")).unwrap();
        std::os::unix::fs::symlink("lock", pool.path.join("10.1.0.5")).unwrap();
        std::fs::write(pool.path.join("10.1.0.3"), "c1\r\neth0").unwrap();
        assert_eq!(pool.addresses().unwrap(), [ip("10.1.0.3")]);
        assert_eq!(pool.reservations().unwrap().len(), 1);
        assert_eq!(pool.read(ip("10.1.0.4")).unwrap(), None);
        assert_eq!(pool.read(ip("10.1.0.5")).unwrap(), None);
    }

    #[test]
    fn the_last_address_is_remembered_a_set() {
        let (_directory, pool) = pool();
        assert_eq!(pool.last_reserved(0), None);
        pool.set_last_reserved(0, ip("10.1.0.100")).unwrap();
        pool.set_last_reserved(0, ip("10.1.0.2")).unwrap();
        pool.set_last_reserved(1, ip("fd00::9")).unwrap();
        assert_eq!(pool.last_reserved(0), Some(ip("10.1.0.2")));
        assert_eq!(std::fs::read(pool.path.join("last_reserved_ip.1")).unwrap(), b"fd00::9");
        for obstacle in ["symbolic link", "second name", "FIFO"] {
            let path = pool.path.join("last_reserved_ip.0");
            let victim = pool.path.join("victim");
            std::fs::write(&victim, "untouched").unwrap();
            std::fs::remove_file(&path).unwrap();
            match obstacle {
                "symbolic link" => std::os::unix::fs::symlink(&victim, &path).unwrap(),
                "second name" => std::fs::hard_link(&victim, &path).unwrap(),
                _ => {
                    let mode = Mode::RUSR | Mode::WUSR;
                    rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, mode, 0).unwrap();
                }
            }
            pool.set_last_reserved(0, ip("10.1.0.7")).unwrap();
            assert_eq!(pool.last_reserved(0), Some(ip("10.1.0.7")), "{obstacle}");
            assert_eq!(std::fs::read(&victim).unwrap(), b"untouched", "{obstacle}");
        }
        std::fs::write(pool.path.join("last_reserved_ip.0"), "").unwrap();
        assert_eq!(pool.last_reserved(0), None);
    }

    #[test]
    fn a_mark_is_never_what_the_kernel_gives_afterwards() {
        let (_directory, pool) = pool();
        for number in 0..500_u32 {
            let mark = pool.mark().unwrap();
            assert_eq!(pool.changed().unwrap(), mark);
            std::fs::write(pool.path.join(number.to_string()), "").unwrap();
            assert_ne!(pool.changed().unwrap(), mark);
        }
    }
}
