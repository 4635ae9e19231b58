//! Locks between processes, with flock(2) on files.
//!
//! The kernel drops such a lock with its last descriptor, so a process that dies
//! leaves none behind. Waiting is bounded, and an error names the holder (B091).

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::PathError;
use crate::error::at;

mod holder;

pub use holder::Holder;
pub(crate) use holder::pid_of;

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_millis(5);
/// The first pause; it doubles from try to try.
const FIRST_PAUSE: Duration = Duration::from_micros(200);
/// For how long at least a lock file may vanish under us before that is an error.
const VANISHING: Duration = Duration::from_secs(1);

/// Who else may hold the lock at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Others that ask for a shared lock.
    Shared,
    /// No one.
    Exclusive,
}

impl fmt::Display for Sharing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Shared => "shared",
            Self::Exclusive => "exclusive",
        })
    }
}

/// Why a lock was not obtained.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Others held it for the whole time that we were ready to wait.
    #[error(
        "waited {waited:.1?} for the {sharing} lock {}, held by {}",
        path.display(), holder::list(holders)
    )]
    TimedOut {
        /// The lock file.
        path: PathBuf,
        /// What was asked for.
        sharing: Sharing,
        /// How long was waited.
        waited: Duration,
        /// Who holds it, as far as /proc/locks tells.
        holders: Vec<Holder>,
    },
    /// The lock file can't be made or opened, or isn't a plain file.
    #[error("lock file: {0}")]
    File(#[from] PathError),
}

impl LockError {
    /// Whether trying again later can help.
    pub fn is_timed_out(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }
}

/// A lock that is held until this value is dropped.
///
/// The descriptor is close-on-exec: a child gets the lock only when it is handed
/// on by [`crate::process::ChildSpec::inherit`].
#[derive(Debug)]
pub struct FileLock {
    fd: OwnedFd,
    path: PathBuf,
    sharing: Sharing,
}

impl FileLock {
    /// Locks `path` together with others that want it shared; waits at most `wait`.
    ///
    /// # Errors
    /// [`LockError::TimedOut`] names the holder; [`LockError::File`] the fault.
    pub fn shared(path: impl AsRef<Path>, wait: Duration) -> Result<Self, LockError> {
        Self::acquire(path.as_ref(), Sharing::Shared, wait)
    }

    /// Locks `path` against everyone else; waits at most `wait`.
    ///
    /// # Errors
    /// [`LockError::TimedOut`] names the holder; [`LockError::File`] the fault.
    pub fn exclusive(path: impl AsRef<Path>, wait: Duration) -> Result<Self, LockError> {
        Self::acquire(path.as_ref(), Sharing::Exclusive, wait)
    }

    /// Locks the file `path`, making it (0600) and missing directories (0700). A
    /// symbolic link at `path` is refused.
    ///
    /// # Errors
    /// [`LockError::TimedOut`] names the holder; [`LockError::File`] the fault.
    pub fn acquire(path: &Path, sharing: Sharing, wait: Duration) -> Result<Self, LockError> {
        Self::acquire_since(Instant::now(), path, sharing, wait)
    }

    /// The same where the waiting began before, for another lock: it ends when `wait`
    /// has passed since `started`, and is told as a whole.
    ///
    /// # Errors
    /// [`LockError::TimedOut`] names the holder; [`LockError::File`] the fault.
    pub fn acquire_since(
        started: Instant,
        path: &Path,
        sharing: Sharing,
        wait: Duration,
    ) -> Result<Self, LockError> {
        loop {
            let fd = open(path)?;
            wait_for(&fd, path, sharing, started, wait)?;
            if is_at(&fd, path)? {
                return Ok(Self { fd, path: path.to_owned(), sharing });
            }
            // Someone removed the file between our open and our lock; a lock on a
            // file without a name keeps no one out.
            if started.elapsed() > wait.max(VANISHING) {
                let operation = "keeping (it is removed again and again)";
                return Err(PathError::new(operation, path, Errno::STALE).into());
            }
        }
    }

    /// Waits, at most `wait`, until nobody holds `path` against others, and holds
    /// nothing afterwards. No file is made; one that is missing is held by nobody.
    ///
    /// # Errors
    /// [`LockError::TimedOut`] names the holder; [`LockError::File`] the fault.
    pub fn pass(path: &Path, wait: Duration) -> Result<(), LockError> {
        let fd = match open_with(path, OFlags::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(refused(path, error).into()),
        };
        be_plain(&fd, path)?;
        // A file that is removed meanwhile was given up before.
        wait_for(&fd, path, Sharing::Shared, Instant::now(), wait)
    }

    /// Removes the lock file and then gives up the lock. Only for an exclusive lock:
    /// who waits meanwhile notices and takes a new file.
    ///
    /// # Errors
    /// When the file can't be removed; a shared lock is refused with `InvalidInput`.
    /// The lock is given up in any case.
    pub fn remove(self) -> Result<(), PathError> {
        if self.sharing == Sharing::Shared {
            return Err(PathError::new("removing the shared lock", &self.path, Errno::INVAL));
        }
        match rustix::fs::unlink(&self.path) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(PathError::new("removing the lock", &self.path, error)),
        }
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether others may hold it too.
    pub fn sharing(&self) -> Sharing {
        self.sharing
    }
}

impl AsFd for FileLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opens or makes the lock file, never through a symbolic link.
fn open(path: &Path) -> Result<OwnedFd, PathError> {
    let opened = match open_with(path, OFlags::CREATE) {
        Err(Errno::NOENT) => {
            if let Some(directory) = path.parent() {
                crate::file::create_dir_all(directory, 0o700)?;
            }
            open_with(path, OFlags::CREATE)
        }
        other => other,
    };
    let fd = opened.map_err(|errno| refused(path, errno))?;
    be_plain(&fd, path)?;
    Ok(fd)
}

fn open_with(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)
}

/// Why the file can't be opened.
fn refused(path: &Path, errno: Errno) -> PathError {
    match errno {
        Errno::LOOP => PathError::new(
            "opening",
            path,
            io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link; remove it"),
        ),
        other => PathError::new("opening", path, other),
    }
}

/// Refuses what is no plain file.
fn be_plain(fd: &OwnedFd, path: &Path) -> Result<(), PathError> {
    let stat = rustix::fs::fstat(fd).map_err(at("looking at", path))?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
        return Ok(());
    }
    let reason = io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file");
    Err(PathError::new("opening", path, reason))
}

/// Tries until the lock is ours or `wait` has passed since `started`.
pub(crate) fn wait_for(
    fd: &OwnedFd,
    path: &Path,
    sharing: Sharing,
    started: Instant,
    wait: Duration,
) -> Result<(), LockError> {
    let operation = match sharing {
        Sharing::Shared => FlockOperation::NonBlockingLockShared,
        Sharing::Exclusive => FlockOperation::NonBlockingLockExclusive,
    };
    let mut pause = FIRST_PAUSE;
    loop {
        match rustix::fs::flock(fd, operation) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => continue,
            Err(Errno::WOULDBLOCK) => {}
            Err(error) => return Err(PathError::new("locking", path, error).into()),
        }
        let waited = started.elapsed();
        let Some(left) = wait.checked_sub(waited).filter(|left| !left.is_zero()) else {
            let holders = holder::of(fd);
            return Err(LockError::TimedOut { path: path.to_owned(), sharing, waited, holders });
        };
        // flock has no timeout of its own, and an alarm signal would be process-wide.
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Whether the locked file is still the one at `path`.
fn is_at(fd: &OwnedFd, path: &Path) -> Result<bool, PathError> {
    let ours = rustix::fs::fstat(fd).map_err(at("looking at", path))?;
    match rustix::fs::lstat(path) {
        Ok(there) => Ok(ours.st_dev == there.st_dev && ours.st_ino == there.st_ino),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(PathError::new("looking at", path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(30);

    /// B091
    #[test]
    fn a_held_lock_times_out_and_names_the_holder() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let held = FileLock::exclusive(&path, SOON).unwrap();
        assert_eq!(held.sharing(), Sharing::Exclusive);
        let error = FileLock::exclusive(&path, SOON).unwrap_err();
        assert!(error.is_timed_out());
        let text = error.to_string();
        assert!(text.contains(&path.display().to_string()), "{text}");
        assert!(text.contains(&format!("pid {}", std::process::id())), "{text}");
        let LockError::TimedOut { waited, holders, .. } = error else { panic!("{text}") };
        assert!(waited >= SOON);
        assert!(holders[0].command.is_some());
    }

    #[test]
    fn shared_locks_share_and_exclude_an_exclusive_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let one = FileLock::shared(&path, SOON).unwrap();
        let two = FileLock::shared(&path, SOON).unwrap();
        assert!(FileLock::exclusive(&path, SOON).unwrap_err().is_timed_out());
        drop((one, two));
        FileLock::exclusive(&path, SOON).unwrap();
    }

    /// B091: no stale lock after the holder was killed.
    #[test]
    fn b091_the_lock_of_a_killed_process_is_free_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let mut holder = std::process::Command::new("flock")
            .arg(&path)
            .args(["sh", "-c", "echo held; exec cat"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = std::io::BufReader::new(holder.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        assert!(FileLock::exclusive(&path, SOON).unwrap_err().is_timed_out());
        holder.kill().unwrap();
        // flock's child `cat` inherited the lock and ends with its input.
        drop(holder.stdin.take());
        holder.wait().unwrap();
        FileLock::exclusive(&path, Duration::from_secs(5)).unwrap();
    }

    #[test]
    fn a_waiter_gets_the_lock_when_it_is_freed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let held = FileLock::exclusive(&path, SOON).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| FileLock::exclusive(&path, Duration::from_secs(10)));
            drop(held);
            waiter.join().unwrap().unwrap();
        });
    }

    #[test]
    fn who_passes_waits_for_a_holder_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        FileLock::pass(&path, SOON).unwrap();
        assert!(!path.exists());
        let shared = FileLock::shared(&path, SOON).unwrap();
        FileLock::pass(&path, SOON).unwrap();
        drop(shared);
        let held = FileLock::exclusive(&path, SOON).unwrap();
        let text = FileLock::pass(&path, SOON).unwrap_err().to_string();
        assert!(text.contains(&format!("pid {}", std::process::id())), "{text}");
        std::thread::scope(|scope| {
            let passing = scope.spawn(|| FileLock::pass(&path, Duration::from_secs(10)));
            held.remove().unwrap();
            passing.join().unwrap().unwrap();
        });
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        let text = FileLock::pass(&path, SOON).unwrap_err().to_string();
        assert!(text.contains("symbolic link"), "{text}");
    }

    #[test]
    fn a_symbolic_link_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (target, path) = (directory.path().join("target"), directory.path().join("lock"));
        std::fs::write(&target, "").unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        let text = FileLock::exclusive(&path, SOON).unwrap_err().to_string();
        assert!(text.contains("symbolic link"), "{text}");
        let text = FileLock::exclusive(directory.path(), SOON).unwrap_err().to_string();
        assert!(text.contains(&directory.path().display().to_string()), "{text}");
    }

    #[test]
    fn directories_are_made_for_the_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b/lock");
        FileLock::exclusive(&path, SOON).unwrap();
        let mode = std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn removing_a_lock_file_keeps_the_exclusion() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let inside = std::sync::atomic::AtomicU32::new(0);
        let turn = || {
            for _ in 0..200 {
                let lock = FileLock::exclusive(&path, Duration::from_secs(20)).unwrap();
                let before = inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                assert_eq!(before, 0, "two holders at once");
                inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                lock.remove().unwrap();
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(turn))));
        assert!(!path.exists());
        let shared = FileLock::shared(&path, SOON).unwrap();
        assert!(shared.remove().is_err());
        assert!(path.exists());
    }

    #[test]
    fn a_removed_lock_file_does_not_count_as_locked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let first = FileLock::exclusive(&path, SOON).unwrap();
        std::fs::remove_file(&path).unwrap();
        let second = FileLock::exclusive(&path, SOON).unwrap();
        assert!(!is_at(&first.fd, &path).unwrap());
        assert!(is_at(&second.fd, &path).unwrap());
    }
}
