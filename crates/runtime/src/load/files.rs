//! The files of a configuration directory: which there are, and their bytes.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use podwire_sys::file::read_bounded;
use serde::de::IgnoredAny;

use super::Problem;

/// The largest configuration file that is read, in bytes. The largest seen in
/// the field is some kilobytes.
const SIZE_LIMIT: usize = 1 << 20;

/// How fresh a cut-off file must be to count as one being written.
const FRESH: Duration = Duration::from_secs(2);

/// What the ending of a file's name says it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `.conflist`: a network with a list of plugins.
    List,
    /// `.conf` or `.json`: one plugin, a network by itself.
    Single,
}

impl Kind {
    /// The kind of a file by its ending, exact and case-sensitive.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        match name.rsplit_once('.')?.1 {
            "conflist" => Some(Self::List),
            "conf" | "json" => Some(Self::Single),
            _ => None,
        }
    }
}

/// The entries of `directory` whose name has one of the endings `wanted`
/// picks, sorted by the bytes of the name. A directory that isn't there has
/// none.
pub(super) fn entries(
    directory: &Path,
    wanted: impl Fn(&Path) -> bool,
) -> Result<Vec<PathBuf>, Problem> {
    let listing = match std::fs::read_dir(directory) {
        Ok(listing) => listing,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Problem::io(directory, &error)),
    };
    let mut paths = Vec::new();
    for entry in listing {
        let path = entry.map_err(|error| Problem::io(directory, &error))?.path();
        if wanted(&path) {
            paths.push(path);
        }
    }
    paths.sort_by(|left, right| left.as_os_str().cmp(right.as_os_str()));
    Ok(paths)
}

/// The bytes of a configuration file. Links are followed; what isn't a regular
/// file is never opened, since a pipe would block.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Problem> {
    let metadata = std::fs::metadata(path).map_err(|error| Problem::io(path, &error))?;
    if metadata.is_dir() {
        return Err(Problem::new(path, "it is a directory, not a file"));
    }
    if !metadata.is_file() {
        return Err(Problem::new(path, "it is not a regular file"));
    }
    read_bounded(path, SIZE_LIMIT).map_err(|error| Problem::io(path, &error.source))
}

/// Whether bytes that were refused may be whole in a moment: they end in the
/// middle, and their file was written to just now.
pub(super) fn is_being_written(path: &Path, bytes: &[u8]) -> bool {
    let cut_off = bytes.iter().all(u8::is_ascii_whitespace)
        || serde_json::from_slice::<IgnoredAny>(bytes).is_err_and(|error| error.is_eof());
    cut_off
        && std::fs::metadata(path).and_then(|metadata| metadata.modified()).is_ok_and(|modified| {
            match SystemTime::now().duration_since(modified) {
                Ok(age) => age <= FRESH,
                // A little ahead of the clock: fresh; far ahead: a wrong clock.
                Err(ahead) => ahead.duration() <= FRESH,
            }
        })
}
