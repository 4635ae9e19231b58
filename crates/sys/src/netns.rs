//! Network namespaces: open, enter, create, identify.
//!
//! A namespace is entered by the calling thread only, for the time of a closure
//! ([`NetNs::run`]). There is no way to enter one and forget to leave.

mod cookie;
mod identity;
mod interface;
mod named;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

pub use identity::{Identity, NoIdentity};
pub use named::NamedNetNs;

/// The magic number of nsfs, include/uapi/linux/magic.h.
const NSFS_MAGIC: u64 = 0x6e73_6673;
/// `NS_GET_NSTYPE`, include/uapi/linux/nsfs.h: `_IO(0xb7, 0x3)`.
const NS_GET_NSTYPE: rustix::ioctl::Opcode = 0xb703;

/// Where the calling thread's own namespace is found.
const OWN: &str = "/proc/thread-self/ns/net";

/// Why a path could not be opened as a network namespace.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nothing is at the path: the namespace is gone, or never was.
    #[error("network namespace {} does not exist", path.display())]
    Missing {
        /// The path that was asked for.
        path: PathBuf,
    },
    /// Something else is at the path: a plain file left behind by a namespace
    /// that is no longer mounted, a directory, a namespace of another type.
    #[error("{} is not a network namespace but {found}", path.display())]
    NotANamespace {
        /// The path that was asked for.
        path: PathBuf,
        /// What is there instead.
        found: &'static str,
    },
    /// The kernel refused for another reason: permissions, file descriptors.
    #[error("opening network namespace {}: {source}", path.display())]
    Io {
        /// The path that was asked for.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl OpenError {
    /// Whether the namespace is gone (as opposed to unreadable or something else).
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing { .. })
    }
}

/// An open network namespace; it lives at least as long as this value.
pub struct NetNs {
    fd: OwnedFd,
}

impl NetNs {
    /// Opens the namespace at `path`: `/run/netns/NAME`, `/proc/PID/ns/net`.
    ///
    /// # Errors
    /// [`OpenError`] tells a missing path from one that is something else.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let failed = |errno: Errno| match errno {
            // ESRCH: the process of /proc/PID/ns/net ended during the lookup. Nothing
            // can ever be at a path that is too long.
            Errno::NOENT | Errno::NOTDIR | Errno::SRCH | Errno::NAMETOOLONG => {
                OpenError::Missing { path: path.to_owned() }
            }
            // ENXIO: a socket, or a FIFO or device without its other end.
            Errno::NXIO => {
                OpenError::NotANamespace { path: path.to_owned(), found: "a special file" }
            }
            Errno::LOOP => OpenError::NotANamespace {
                path: path.to_owned(),
                found: "a loop of symbolic links",
            },
            other => OpenError::Io { path: path.to_owned(), source: other.into() },
        };
        // NONBLOCK: the path is outside input and may be a FIFO.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(failed)?;
        match what_is(&fd).map_err(failed)? {
            None => Ok(Self { fd }),
            Some(found) => Err(OpenError::NotANamespace { path: path.to_owned(), found }),
        }
    }

    /// The namespace that the calling thread is in.
    ///
    /// # Errors
    /// When /proc is not mounted or no file descriptor is left.
    pub fn current() -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(Self { fd: rustix::fs::open(OWN, flags, Mode::empty())? })
    }

    /// Another handle to the same namespace.
    ///
    /// # Errors
    /// When no file descriptor is left.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { fd: self.fd.try_clone()? })
    }

    /// Whether both are the same namespace. Sound because both are open: an
    /// inode number is only reused after the last reference is gone.
    ///
    /// # Errors
    /// When the kernel can't describe one of the descriptors.
    pub fn is_same(&self, other: &Self) -> io::Result<bool> {
        let (one, two) = (rustix::fs::fstat(&self.fd)?, rustix::fs::fstat(&other.fd)?);
        Ok(one.st_dev == two.st_dev && one.st_ino == two.st_ino)
    }

    /// The namespace's cookie: unique since boot, never reused (`SO_NETNS_COOKIE`,
    /// Linux 5.14). `None` on older kernels or where the namespace can't be entered.
    pub fn cookie(&self) -> Option<u64> {
        self.run(cookie::of_current).ok().flatten()
    }

    /// Whether an interface of this name (or alternative name) is in it.
    ///
    /// # Errors
    /// When the namespace can't be entered, or the kernel refuses to tell.
    pub fn has_interface(&self, name: &str) -> io::Result<bool> {
        self.run(|| interface::exists_in_current(name))?
    }

    /// Runs `work` with the calling thread inside this namespace and comes back.
    ///
    /// The thread is back in its own namespace when this returns, also when `work`
    /// panics. Sockets opened in `work` keep belonging to this namespace.
    ///
    /// # Errors
    /// When the namespace can't be entered; `work` has not run then. When the way
    /// back fails the process is aborted: going on in a stranger's namespace would
    /// change the wrong machine.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        let home = Self::current()?;
        self.run_from(&home, work)
    }

    /// As [`NetNs::run`], for a caller that already holds its own namespace open:
    /// three system calls in all.
    ///
    /// # Errors
    /// As [`NetNs::run`].
    pub fn run_from<T>(&self, home: &Self, work: impl FnOnce() -> T) -> io::Result<T> {
        // Entering home while still there proves that the way back is allowed: in a
        // user namespace that doesn't own the home network namespace it is not.
        move_into_link_name_space(home.as_fd(), Some(LinkNameSpaceType::Network))?;
        move_into_link_name_space(self.as_fd(), Some(LinkNameSpaceType::Network))?;
        let _back = WayBack { home };
        Ok(work())
    }
}

impl AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<NetNs> for OwnedFd {
    fn from(namespace: NetNs) -> Self {
        namespace.fd
    }
}

impl fmt::Debug for NetNs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inode = rustix::fs::fstat(&self.fd).map_or(0, |stat| stat.st_ino);
        write!(formatter, "NetNs(net:[{inode}])")
    }
}

/// Returns to the home namespace when dropped, so that a panic can't skip it.
struct WayBack<'a> {
    home: &'a NetNs,
}

impl Drop for WayBack<'_> {
    fn drop(&mut self) {
        let back = move_into_link_name_space(self.home.as_fd(), Some(LinkNameSpaceType::Network));
        if back.is_err() {
            let text = b"podwire: can't return to the own network namespace; stopping\n";
            // SAFETY: file descriptor 2 is only borrowed for this write; if it is
            // closed the write fails, which is ignored because the process ends.
            let stderr = unsafe { BorrowedFd::borrow_raw(2) };
            let _ = rustix::io::write(stderr, text);
            std::process::abort();
        }
    }
}

/// `None` if `fd` is a network namespace, else what it is.
fn what_is(fd: &OwnedFd) -> Result<Option<&'static str>, Errno> {
    let file_system = rustix::fs::fstatfs(fd)?.f_type;
    if u64::try_from(file_system) != Ok(NSFS_MAGIC) {
        let mode = rustix::fs::fstat(fd)?.st_mode;
        return Ok(Some(match rustix::fs::FileType::from_raw_mode(mode) {
            rustix::fs::FileType::RegularFile => "a plain file",
            rustix::fs::FileType::Directory => "a directory",
            _ => "a special file",
        }));
    }
    // SAFETY: NS_GET_NSTYPE takes no argument and touches no memory of ours; the
    // opcode and its value output are those of include/uapi/linux/nsfs.h.
    let kind = unsafe { rustix::ioctl::ioctl(fd, NamespaceType) }?;
    Ok((kind != libc::CLONE_NEWNET).then_some("a namespace of another type"))
}

/// The ioctl whose return value is a `CLONE_NEW*` constant.
struct NamespaceType;

// SAFETY: the opcode takes no pointer, and the output is the return value itself.
unsafe impl rustix::ioctl::Ioctl for NamespaceType {
    type Output = libc::c_int;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> rustix::ioctl::Opcode {
        NS_GET_NSTYPE
    }

    fn as_ptr(&mut self) -> *mut libc::c_void {
        std::ptr::null_mut()
    }

    unsafe fn output_from_ptr(
        output: rustix::ioctl::IoctlOutput,
        _: *mut libc::c_void,
    ) -> rustix::io::Result<Self::Output> {
        Ok(output)
    }
}

#[cfg(test)]
mod tests;
