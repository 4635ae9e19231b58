//! A directory for one input, in memory where the machine has such a place.

use std::path::{Path, PathBuf};

/// Removed with all that is in it when dropped.
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// An empty directory; one a process and purpose, as inputs come in turn.
    pub(crate) fn new(purpose: &str) -> Self {
        let memory = Path::new("/dev/shm");
        let above = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let thread = format!("{:?}", std::thread::current().id());
        let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
        let path = above.join(format!("podwire-fuzz-{purpose}-{}-{thread}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file below it, and makes the directories above that.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// The parts of an input, which lines of `%%` part.
pub(crate) fn parts(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    const MARK: &[u8] = b"\n%%\n";
    let mut rest = Some(data);
    std::iter::from_fn(move || {
        let whole = rest?;
        match whole.windows(MARK.len()).position(|window| window == MARK) {
            Some(at) => {
                rest = whole.get(at + MARK.len()..);
                whole.get(..at)
            }
            None => rest.take(),
        }
    })
}
