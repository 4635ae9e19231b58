//! Kernel parameters below /proc/sys.
//!
//! A key is given by its components, so that an interface named `br.1` needs no
//! quoting: `["net", "ipv4", "conf", "br.1", "forwarding"]`. Keys below `net` are
//! those of the calling thread's network namespace.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::file::read_bounded;

const ROOT: &str = "/proc/sys";
/// Longer than any parameter that we read.
const LIMIT: usize = 64 << 10;

/// Why a kernel parameter was not read or set.
#[derive(Debug, thiserror::Error)]
pub enum SysctlError {
    /// A component is empty, `.`, `..`, or holds a slash or NUL.
    #[error("kernel parameter {key:?} has the unusable component {component:?}")]
    InvalidKey {
        /// The key as `a/b/c`.
        key: String,
        /// The component that was refused.
        component: String,
    },
    /// The kernel has no such parameter: no such interface, a protocol that is
    /// switched off, a module that is not loaded.
    #[error("kernel parameter {key} does not exist")]
    Missing {
        /// The key as `a/b/c`.
        key: String,
    },
    /// The parameter can't be read.
    #[error("reading kernel parameter {key}: {source}")]
    Read {
        /// The key as `a/b/c`.
        key: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The parameter has another value and can't be set.
    #[error(
        "setting kernel parameter {key} to {wanted:?}{}: {source}",
        found.as_ref().map(|found| format!(" (it is {found:?})")).unwrap_or_default()
    )]
    Write {
        /// The key as `a/b/c`.
        key: String,
        /// The value that should be there.
        wanted: String,
        /// The value that is there, if it was read.
        found: Option<String>,
        /// The kernel's answer; `ReadOnlyFilesystem` where /proc/sys is mounted so.
        source: io::Error,
    },
}

impl SysctlError {
    /// Whether the kernel has no such parameter.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing { .. })
    }
}

/// What [`ensure`] had to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ensured {
    /// The value was right already.
    Unchanged,
    /// The value was written.
    Changed {
        /// What was there before.
        previous: String,
    },
}

/// The value without the line end, blanks inside as the kernel gives them.
///
/// # Errors
/// [`SysctlError::Missing`] where the kernel has no such key.
pub fn read(key: &[&str]) -> Result<String, SysctlError> {
    let path = path_of(key)?;
    let bytes = read_bounded(&path, LIMIT).map_err(|error| {
        if error.is_missing() {
            SysctlError::Missing { key: key.join("/") }
        } else {
            SysctlError::Read { key: key.join("/"), source: error.source }
        }
    })?;
    Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
}

/// Writes the value, whatever is there.
///
/// # Errors
/// [`SysctlError::Write`] names the key and the value.
pub fn write(key: &[&str], value: &str) -> Result<(), SysctlError> {
    write_over(key, value, None)
}

/// Writes the value only if another one is there. Nothing is written, and a
/// read-only /proc/sys is fine, when the value is right already.
///
/// # Errors
/// [`SysctlError::Write`] names the key, the value wanted and the value found.
pub fn ensure(key: &[&str], value: &str) -> Result<Ensured, SysctlError> {
    let previous = read(key)?;
    if is_equal(&previous, value) {
        return Ok(Ensured::Unchanged);
    }
    write_over(key, value, Some(&previous))?;
    Ok(Ensured::Changed { previous })
}

/// Writes the value without looking first: for parameters of a new interface,
/// which mostly have another. Where it can't be written, as below a read-only
/// /proc/sys, that is fine when the value is right already.
///
/// # Errors
/// [`SysctlError::Write`] names the key, the value wanted and the value found.
pub fn demand(key: &[&str], value: &str) -> Result<(), SysctlError> {
    match write(key, value) {
        Err(SysctlError::Write { key: name, wanted, source, .. }) => match read(key) {
            Ok(found) if is_equal(&found, value) => Ok(()),
            found => Err(SysctlError::Write { key: name, wanted, found: found.ok(), source }),
        },
        done => done,
    }
}

/// Equal but for the blanks between several numbers.
fn is_equal(one: &str, two: &str) -> bool {
    one.split_ascii_whitespace().eq(two.split_ascii_whitespace())
}

fn write_over(key: &[&str], value: &str, found: Option<&str>) -> Result<(), SysctlError> {
    let path = path_of(key)?;
    match write_once(&path, value) {
        Ok(()) => Ok(()),
        Err(error) if crate::error::is_missing(&error) => {
            Err(SysctlError::Missing { key: key.join("/") })
        }
        Err(source) => Err(SysctlError::Write {
            key: key.join("/"),
            wanted: value.to_owned(),
            found: found.map(str::to_owned),
            source,
        }),
    }
}

/// The kernel takes a value only as a whole, in one write from offset 0.
fn write_once(path: &Path, value: &str) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    let written = rustix::io::retry_on_intr(|| rustix::io::write(&file, value.as_bytes()))?;
    if written < value.len() {
        return Err(io::Error::new(io::ErrorKind::WriteZero, "the kernel took only a part of it"));
    }
    Ok(())
}

fn path_of(key: &[&str]) -> Result<PathBuf, SysctlError> {
    let mut path = PathBuf::from(ROOT);
    let usable =
        |component: &str| !matches!(component, "" | "." | "..") && !component.contains(['/', '\0']);
    match key.iter().find(|component| !usable(component)) {
        Some(component) => {
            Err(SysctlError::InvalidKey { key: key.join("/"), component: (*component).to_owned() })
        }
        None if key.is_empty() => {
            Err(SysctlError::InvalidKey { key: String::new(), component: String::new() })
        }
        None => {
            path.extend(key);
            Ok(path)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mount;

    const FORWARD: &[&str] = &["net", "ipv4", "ip_forward"];

    /// A network and a mount namespace of the thread's own.
    fn isolated(work: impl FnOnce() + Send) {
        std::thread::scope(|scope| {
            let all = || {
                mount::enter_private_namespace().unwrap();
                // SAFETY: only this thread's network namespace changes; it ends after the test.
                unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }
                    .unwrap();
                work();
            };
            scope.spawn(all).join().unwrap();
        });
    }

    #[test]
    fn writes_only_what_differs() {
        isolated(|| {
            write(FORWARD, "0").unwrap();
            let changed = Ensured::Changed { previous: "0".to_owned() };
            assert_eq!(ensure(FORWARD, "1").unwrap(), changed);
            assert_eq!(read(FORWARD).unwrap(), "1");
            assert_eq!(ensure(FORWARD, "1").unwrap(), Ensured::Unchanged);
        });
    }

    #[test]
    fn read_only_with_the_right_value_is_fine_and_else_says_all() {
        isolated(|| {
            write(FORWARD, "1").unwrap();
            let root = Path::new(ROOT);
            mount::bind(root, root).unwrap();
            mount::set_read_only(root, true).unwrap();
            assert_eq!(ensure(FORWARD, "1").unwrap(), Ensured::Unchanged);
            let text = ensure(FORWARD, "0").unwrap_err().to_string();
            for part in ["net/ipv4/ip_forward", "\"0\"", "\"1\"", "Read-only"] {
                assert!(text.contains(part), "{text}");
            }
        });
    }

    #[test]
    fn a_list_is_read_whole() {
        isolated(|| {
            let key = ["net", "ipv4", "ip_local_port_range"];
            write(&key, "20000 30000").unwrap();
            assert_eq!(read(&key).unwrap(), "20000\t30000");
            assert_eq!(ensure(&key, "20000 30000").unwrap(), Ensured::Unchanged);
        });
    }

    #[test]
    fn a_refused_value_is_named() {
        isolated(|| {
            let text = write(FORWARD, "many").unwrap_err().to_string();
            assert!(text.contains("\"many\"") && text.contains("Invalid argument"), "{text}");
        });
    }

    #[test]
    fn an_unknown_key_is_missing() {
        let key = ["net", "ipv4", "conf", "br.1", "forwarding"];
        assert!(read(&key).unwrap_err().is_missing());
        assert!(ensure(&key, "1").unwrap_err().is_missing());
        assert!(write(&key, "1").unwrap_err().is_missing());
    }

    #[test]
    fn components_can_not_leave_the_tree() {
        for component in ["", ".", "..", "a/b", "/etc", "a\0b"] {
            let error = read(&["net", component, "x"]).unwrap_err();
            assert!(matches!(error, SysctlError::InvalidKey { .. }), "{component:?}");
        }
        assert!(matches!(read(&[]), Err(SysctlError::InvalidKey { .. })));
    }

    #[test]
    fn blanks_between_numbers_do_not_count() {
        assert!(is_equal("4096\t131072\t6291456", "4096 131072 6291456"));
        assert!(!is_equal("1 2", "1 2 3"));
    }
}
