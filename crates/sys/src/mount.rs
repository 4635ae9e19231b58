//! Mounts: what is mounted where, and the few changes that we make.

use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::PathError;
use crate::error::at;

/// The calling thread's mount table, proc(5).
const TABLE: &str = "/proc/thread-self/mountinfo";
/// A mount table longer than this (16 MiB, about 100,000 mounts) is not read.
const TABLE_LIMIT: usize = 16 << 20;

/// One line of the mount table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The kernel's number of this mount.
    pub id: u64,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Whether mounts below it appear in other mount namespaces.
    pub shared: bool,
    /// The type of its file system: `tmpfs`, `nsfs`.
    pub file_system: String,
}

/// Every mount of the calling thread's mount namespace, in the kernel's order.
///
/// # Errors
/// When /proc can't be read.
pub fn all() -> Result<Vec<Mount>, PathError> {
    let bytes = crate::file::read_bounded(Path::new(TABLE), TABLE_LIMIT)?;
    Ok(bytes.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

/// The mount that `path` lies in.
///
/// # Errors
/// When the path does not exist or /proc can't be read.
pub fn of(path: &Path) -> Result<Mount, PathError> {
    let found = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID)
        .map_err(at("looking at", path))?;
    all()?
        .into_iter()
        .find(|mount| mount.id == found.stx_mnt_id)
        .ok_or_else(|| PathError::new("finding the mount of", path, Errno::NOENT))
}

/// Makes mounts below `path`, which must be a mount point, appear everywhere.
///
/// # Errors
/// What the kernel said.
pub fn make_shared(path: &Path) -> Result<(), PathError> {
    rustix::mount::mount_change(path, MountPropagationFlags::SHARED)
        .map_err(at("sharing the mount", path))
}

/// Gives the calling thread a mount namespace of its own from which no mount
/// reaches the one it came from. Threads and children started later share it.
///
/// # Errors
/// When the privilege is missing.
pub fn enter_private_namespace() -> Result<(), PathError> {
    let root = Path::new("/");
    // SAFETY: unsharing mounts (and with them the thread's root and working
    // directory) leaves the file descriptor table and all memory alone.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }
        .map_err(at("making a mount namespace at", root))?;
    rustix::mount::mount_change(root, MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(at("making private the mount", root))
}

/// Mounts an empty tmpfs with `mode` over the existing directory `target`.
///
/// # Errors
/// What the kernel said.
pub fn tmpfs(target: &Path, mode: u32) -> Result<(), PathError> {
    tmpfs_with(target, &format!("mode={mode:o}"))
}

/// As [`tmpfs`], with the options of tmpfs(5): `size=16k,mode=755`.
///
/// # Errors
/// What the kernel said.
pub fn tmpfs_with(target: &Path, options: &str) -> Result<(), PathError> {
    let options = std::ffi::CString::new(options)
        .map_err(|_| PathError::new("mounting a tmpfs on", target, Errno::INVAL))?;
    rustix::mount::mount("tmpfs", target, "tmpfs", MountFlags::NOSUID, options.as_c_str())
        .map_err(at("mounting a tmpfs on", target))
}

/// Mounts the calling thread's view of `/sys`, with the links of its own network
/// namespace, over the existing directory `target`.
///
/// # Errors
/// What the kernel said; `PermissionDenied` in a user namespace that doesn't own
/// the network namespace.
pub fn sysfs(target: &Path) -> Result<(), PathError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount("sysfs", target, "sysfs", flags, None)
        .map_err(at("mounting sysfs on", target))
}

/// Makes `source`, a file or directory, appear at the existing `target` too.
///
/// # Errors
/// What the kernel said.
pub fn bind(source: &Path, target: &Path) -> Result<(), PathError> {
    rustix::mount::mount_bind(source, target).map_err(at("bind mounting on", target))
}

/// Makes the mount at `target` read-only or writable again.
///
/// # Errors
/// What the kernel said.
pub fn set_read_only(target: &Path, read_only: bool) -> Result<(), PathError> {
    let mut flags = MountFlags::BIND;
    flags.set(MountFlags::RDONLY, read_only);
    rustix::mount::mount_remount(target, flags, "").map_err(at("remounting", target))
}

/// Takes off the topmost mount at `target`; it goes when no one uses it any more.
/// Something that isn't a mount, or isn't there, is fine.
///
/// # Errors
/// What the kernel said.
pub fn detach(target: &Path) -> Result<(), PathError> {
    match rustix::mount::unmount(target, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        Ok(()) | Err(Errno::INVAL | Errno::NOENT | Errno::NOTDIR) => Ok(()),
        Err(error) => Err(PathError::new("unmounting", target, error)),
    }
}

/// One line: `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw`.
pub(crate) fn parse(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let mount_point = unescape(fields.nth(3)?);
    let _options = fields.next()?;
    let mut shared = false;
    for optional in fields.by_ref() {
        if optional == b"-" {
            break;
        }
        shared |= optional.starts_with(b"shared:");
    }
    let file_system = String::from_utf8_lossy(fields.next()?).into_owned();
    Some(Mount { id, mount_point, shared, file_system })
}

/// Undoes the kernel's `\040` for a blank, and so on.
fn unescape(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        let octal = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if *first == b'\\' => {
                bytes.push(byte);
                rest = tail.get(3..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_line_with_blanks_and_propagation() {
        let line = br"36 35 98:0 / /mnt\040two rw,noatime shared:7 master:1 - ext3 /dev/root rw";
        let mount = parse(line).unwrap();
        assert_eq!(mount.id, 36);
        assert_eq!(mount.mount_point, Path::new("/mnt two"));
        assert!(mount.shared);
        assert_eq!(mount.file_system, "ext3");
        assert!(!parse(b"1 2 0:1 / / rw - proc proc rw").unwrap().shared);
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"1 2 3"), None);
    }

    #[test]
    fn the_mount_of_proc_is_proc() {
        assert_eq!(of(Path::new("/proc/self")).unwrap().file_system, "proc");
        assert!(of(Path::new("/nowhere/at/all")).unwrap_err().is_missing());
    }

    #[test]
    fn a_tmpfs_hides_and_a_detach_shows_again() {
        std::thread::scope(|scope| {
            let work = || {
                let directory = tempfile::tempdir().unwrap();
                let (path, file) = (directory.path(), directory.path().join("file"));
                std::fs::write(&file, "below").unwrap();
                enter_private_namespace().unwrap();
                tmpfs(path, 0o700).unwrap();
                assert!(!file.exists());
                set_read_only(path, true).unwrap();
                let refused = std::fs::write(&file, "above").unwrap_err();
                assert_eq!(refused.raw_os_error(), Some(libc::EROFS));
                set_read_only(path, false).unwrap();
                std::fs::write(&file, "above").unwrap();
                detach(path).unwrap();
                assert_eq!(std::fs::read_to_string(&file).unwrap(), "below");
                detach(path).unwrap();
            };
            scope.spawn(work).join().unwrap();
        });
    }
}
