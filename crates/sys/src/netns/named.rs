//! Namespaces that live by a bind mount at a path, as `ip netns` makes them.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::{NetNs, OWN};
use crate::error::at;
use crate::lock::{self, Sharing};
use crate::{PathError, file, mount};

/// At most this many mounts stacked at one path are taken off by a removal.
const STACKED_MOUNTS: usize = 16;

/// How long another process may hold the directory's lock.
const LOCK_WAIT: Duration = Duration::from_secs(8);

/// A new network namespace bound to a path. Dropping this value leaves it there;
/// it goes by [`NamedNetNs::remove`].
#[derive(Debug)]
pub struct NamedNetNs {
    path: PathBuf,
}

impl NamedNetNs {
    /// Makes a fresh network namespace at `path` (usually `/run/netns/NAME`).
    ///
    /// Missing parent directories are made with mode 0755. As with `ip netns`, the
    /// directory becomes a shared mount if it isn't one, so that a namespace that
    /// is removed here goes in every other mount namespace too. On failure nothing
    /// is left at the path.
    ///
    /// # Errors
    /// `AlreadyExists` when something is at the path; else what the kernel said.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, PathError> {
        let path = path.as_ref();
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        file::create_dir_all(directory, 0o755)?;
        share(directory)?;
        let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).map_err(at("creating", path))?;
        match bind_fresh(path) {
            Ok(()) => Ok(Self { path: path.to_owned() }),
            Err(error) => {
                // The first error is the one to report.
                let _ = rustix::fs::unlink(path);
                Err(error)
            }
        }
    }

    /// Where the namespace is mounted.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the namespace off `path`. Its interfaces go when the last process in
    /// it and the last open descriptor of it are gone. A missing path is fine.
    ///
    /// # Errors
    /// What the kernel said to the unmount or the unlink.
    pub fn remove(path: impl AsRef<Path>) -> Result<(), PathError> {
        let path = path.as_ref();
        for _ in 0..STACKED_MOUNTS {
            match rustix::mount::unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
                Ok(()) => {}
                // EINVAL: not, or no longer, a mount point.
                Err(Errno::INVAL | Errno::NOENT | Errno::NOTDIR) => break,
                Err(error) => return Err(PathError::new("unmounting", path, error)),
            }
        }
        match rustix::fs::unlink(path) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
            Err(error) => Err(PathError::new("removing", path, error)),
        }
    }
}

impl NetNs {
    /// Makes a network namespace without a name: it goes with this value and the
    /// sockets opened in it. For trying what the kernel can do.
    ///
    /// # Errors
    /// What the kernel said; `PermissionDenied` without `CAP_SYS_ADMIN`.
    pub fn anonymous() -> io::Result<Self> {
        let work = || {
            // SAFETY: only the network namespace is unshared, and only for this
            // thread, which ends right after; descriptors and memory stay as they are.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            Self::current()
        };
        std::thread::scope(|scope| {
            let thread =
                std::thread::Builder::new().name("netns".to_owned()).spawn_scoped(scope, work)?;
            thread.join().unwrap_or_else(|_| Err(Errno::IO.into()))
        })
    }
}

/// Binds a namespace that no one else is in to the existing file `path`. Done on a
/// thread of its own, which ends with the only other reference.
fn bind_fresh(path: &Path) -> Result<(), PathError> {
    let work = || {
        // SAFETY: only the network namespace is unshared, and only for this thread,
        // which ends right after; file descriptors and memory stay as they are.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }
            .map_err(at("making a network namespace for", path))?;
        rustix::mount::mount_bind(OWN, path).map_err(at("binding a network namespace to", path))
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("netns".to_owned())
            .spawn_scoped(scope, work)
            .map_err(at("starting a thread for", path))?;
        thread.join().unwrap_or_else(|_| {
            Err(PathError::new("binding a network namespace to", path, Errno::IO))
        })
    })
}

/// Makes `directory` part of a shared mount, unless it is already.
fn share(directory: &Path) -> Result<(), PathError> {
    // Two processes at once must not mount over each other.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let handle =
        rustix::fs::open(directory, flags, Mode::empty()).map_err(at("opening", directory))?;
    // Everybody can open the directory, and so lock it: the wait is bounded.
    lock::wait_for(&handle, directory, Sharing::Exclusive, Instant::now(), LOCK_WAIT).map_err(
        |error| {
            let reason = io::Error::new(io::ErrorKind::TimedOut, error.to_string());
            PathError::new("locking", directory, reason)
        },
    )?;
    let found = mount::of(directory)?;
    if found.shared {
        return Ok(());
    }
    let absolute = std::fs::canonicalize(directory).map_err(at("resolving", directory))?;
    if found.mount_point != absolute {
        rustix::mount::mount_bind_recursive(&absolute, &absolute)
            .map_err(at("making a mount point of", &absolute))?;
    }
    mount::make_shared(&absolute)
}
