//! Reading a file that someone else wrote.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::PathError;
use crate::error::at;

/// Opens the plain file `path` to read it. Symbolic links are followed; FIFOs and
/// devices are refused without blocking.
///
/// # Errors
/// `InvalidInput` for what isn't a plain file, else what the kernel said.
pub fn open_plain(path: &Path) -> Result<File, PathError> {
    open(path).map(|(file, _)| file.into())
}

fn open(path: &Path) -> Result<(OwnedFd, Stat), PathError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(at("reading", path))?;
    let stat = rustix::fs::fstat(&file).map_err(at("reading", path))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        let reason = io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file");
        return Err(PathError::new("reading", path, reason));
    }
    Ok((file, stat))
}

/// Reads all of the plain file `path`, at most `limit` bytes. Symbolic links are
/// followed; FIFOs and devices are refused without blocking.
///
/// # Errors
/// `FileTooLarge` beyond the limit, `InvalidInput` for what isn't a plain file, else
/// what the kernel said.
pub fn read_bounded(path: &Path, limit: usize) -> Result<Vec<u8>, PathError> {
    let (file, stat) = open(path)?;
    let too_large = || {
        let reason = format!("it is larger than {limit} bytes");
        PathError::new("reading", path, io::Error::new(io::ErrorKind::FileTooLarge, reason))
    };
    // Files of /proc say that they have no size, and kernel parameters that are
    // lists of numbers end after the first read, however little it took.
    let expected = usize::try_from(stat.st_size).unwrap_or(usize::MAX);
    if expected > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(if expected == 0 { 4096 } else { expected + 1 });
    loop {
        if bytes.len() > limit {
            return Err(too_large());
        }
        if bytes.capacity() == bytes.len() {
            bytes.reserve(4096);
        }
        match rustix::io::read(&file, rustix::buffer::spare_capacity(&mut bytes)) {
            Ok(0) => return Ok(bytes),
            // There was room for more than a file that tells its size has.
            Ok(_) if bytes.len() == expected => return Ok(bytes),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(PathError::new("reading", path, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_up_to_the_limit_and_not_beyond() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_bounded(&path, 5).unwrap(), b"12345");
        let error = read_bounded(&path, 4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(error.to_string().contains("4 bytes"), "{error}");
        std::fs::write(&path, "").unwrap();
        assert_eq!(read_bounded(&path, 0).unwrap(), b"");
    }

    #[test]
    fn a_file_of_proc_is_read_whole_and_bounded() {
        assert!(!read_bounded(Path::new("/proc/self/status"), 1 << 16).unwrap().is_empty());
        let error = read_bounded(Path::new("/proc/self/status"), 10).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn other_things_are_refused_without_waiting() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
        for path in [fifo.as_path(), directory.path(), Path::new("/dev/zero")] {
            let error = read_bounded(path, 100).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{}", path.display());
        }
    }
}
