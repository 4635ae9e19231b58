//! Which boot of the machine this is, and since when.

use std::fmt;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::PathError;
use crate::file::read_bounded;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const STATISTICS: &str = "/proc/stat";
/// /proc/stat grows with processors and interrupts; 4 MiB is far beyond both.
const LIMIT: usize = 4 << 20;

/// The kernel's random name of one boot, a UUID.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BootId(String);

impl BootId {
    /// Takes `8-4-4-4-12` hexadecimal digits, with or without a line end.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_end_matches('\n');
        let dashes = [8, 13, 18, 23];
        let fits = text.len() == 36
            && text.bytes().enumerate().all(|(place, byte)| {
                if dashes.contains(&place) { byte == b'-' } else { byte.is_ascii_hexdigit() }
            });
        fits.then(|| Self(text.to_ascii_lowercase()))
    }

    /// The UUID in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BootId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The id of the current boot.
///
/// # Errors
/// When /proc can't be read or holds something else.
pub fn boot_id() -> Result<BootId, PathError> {
    let path = Path::new(BOOT_ID);
    let bytes = read_bounded(path, 4096)?;
    BootId::parse(&String::from_utf8_lossy(&bytes)).ok_or_else(|| unusable(path))
}

/// When the machine was booted, to the second, by the clock as it is set now (`btime`
/// of proc(5)): it moves when the clock is set.
///
/// # Errors
/// When /proc can't be read or holds something else.
pub fn boot_time() -> Result<SystemTime, PathError> {
    let path = Path::new(STATISTICS);
    let bytes = read_bounded(path, LIMIT)?;
    parse_boot_time(&String::from_utf8_lossy(&bytes)).ok_or_else(|| unusable(path))
}

pub(crate) fn parse_boot_time(text: &str) -> Option<SystemTime> {
    let seconds = text.lines().find_map(|line| line.strip_prefix("btime "))?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds.trim().parse().ok()?))
}

fn unusable(path: &Path) -> PathError {
    let reason = io::Error::new(io::ErrorKind::InvalidData, "it does not hold what proc(5) says");
    PathError::new("reading", path, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mount;

    #[test]
    fn the_running_kernel_tells_both() {
        assert_eq!(boot_id().unwrap(), boot_id().unwrap());
        assert!(boot_time().unwrap() < SystemTime::now());
    }

    #[test]
    fn only_a_uuid_is_a_boot_id() {
        let good = "0C5A2B1E-0000-4000-8000-0123456789ab";
        assert_eq!(BootId::parse(&format!("{good}\n")).unwrap().as_str(), good.to_lowercase());
        for bad in ["", "x", &good[1..], &good.replace('-', "0"), "g".repeat(36).as_str()] {
            assert_eq!(BootId::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_faked_boot_id_is_seen_and_a_torn_one_refused() {
        std::thread::scope(|scope| {
            let work = || {
                let directory = tempfile::tempdir().unwrap();
                let fake = directory.path().join("boot_id");
                std::fs::write(&fake, "00000000-1111-2222-3333-444444444444\n").unwrap();
                mount::enter_private_namespace().unwrap();
                mount::bind(&fake, Path::new(BOOT_ID)).unwrap();
                assert_eq!(boot_id().unwrap().as_str(), "00000000-1111-2222-3333-444444444444");
                std::fs::write(&fake, "").unwrap();
                assert!(boot_id().unwrap_err().to_string().contains(BOOT_ID));
                mount::detach(Path::new(BOOT_ID)).unwrap();
            };
            scope.spawn(work).join().unwrap();
        });
    }

    #[test]
    fn the_boot_time_is_read_from_its_line() {
        let text = "cpu 1 2\nctxt 5\nbtime 1700000000\nprocesses 1\n";
        let expected = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        assert_eq!(parse_boot_time(text), Some(expected));
        assert_eq!(parse_boot_time("btime x\n"), None);
        assert_eq!(parse_boot_time(""), None);
    }
}
