//! The archive that a kernel unpacks as its first file system: `cpio` in the
//! `newc` format (Linux, Documentation/driver-api/early-userspace/buffer-format.rst).

use std::fmt::Write as _;
use std::io::Write;

use crate::Result;

/// A directory (`S_IFDIR`, include/uapi/linux/stat.h).
const DIRECTORY: u32 = 0o040_000;
/// A regular file (`S_IFREG`).
const REGULAR: u32 = 0o100_000;
/// A symbolic link (`S_IFLNK`).
const SYMLINK: u32 = 0o120_000;

/// Writes an archive. Everything in it belongs to root; parents must be added
/// before what is in them.
pub(super) struct Archive<W> {
    output: W,
    /// Bytes written so far, for padding.
    written: usize,
    /// Inode numbers must differ, or names would be taken for hard links.
    inode: u32,
}

impl<W: Write> Archive<W> {
    pub(super) fn new(output: W) -> Self {
        Self { output, written: 0, inode: 0 }
    }

    /// Adds a directory; `path` has no leading slash.
    pub(super) fn directory(&mut self, path: &str) -> Result<()> {
        self.entry(path, DIRECTORY | 0o755, &[])
    }

    /// Adds a file; `permissions` are the lowest nine bits of a mode.
    pub(super) fn file(&mut self, path: &str, permissions: u32, content: &[u8]) -> Result<()> {
        self.entry(path, REGULAR | permissions, content)
    }

    /// Adds a symbolic link.
    pub(super) fn symlink(&mut self, path: &str, target: &str) -> Result<()> {
        self.entry(path, SYMLINK | 0o777, target.as_bytes())
    }

    /// Writes the end and returns the output.
    pub(super) fn finish(mut self) -> Result<W> {
        self.entry("TRAILER!!!", 0, &[])?;
        self.output.flush()?;
        Ok(self.output)
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) -> Result<()> {
        self.inode += 1;
        let links = if mode & DIRECTORY == DIRECTORY { 2 } else { 1 };
        let size = u32::try_from(content.len()).map_err(|_| format!("{path} is too large"))?;
        let name_size = u32::try_from(path.len() + 1)?;
        // ino mode uid gid nlink mtime filesize devmajor devminor rdevmajor
        // rdevminor namesize check
        let fields = [self.inode, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0];
        let mut header = String::from("070701");
        for field in fields {
            let _ = write!(header, "{field:08x}");
        }
        self.put(header.as_bytes())?;
        self.put(path.as_bytes())?;
        self.put(&[0])?;
        self.pad()?;
        self.put(content)?;
        self.pad()
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.write_all(bytes)?;
        self.written += bytes.len();
        Ok(())
    }

    fn pad(&mut self) -> Result<()> {
        while !self.written.is_multiple_of(4) {
            self.put(&[0])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Archive;

    #[test]
    fn another_cpio_lists_what_was_added() {
        let mut archive = Archive::new(Vec::new());
        archive.directory("a").unwrap();
        archive.file("a/odd", 0o755, b"12345").unwrap();
        archive.symlink("b", "a/odd").unwrap();
        let bytes = archive.finish().unwrap();
        assert!(bytes.len().is_multiple_of(4));

        let folder = std::env::temp_dir().join(format!("xtask-cpio-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("archive");
        std::fs::write(&file, bytes).unwrap();
        let unpacked = std::process::Command::new("busybox")
            .args(["cpio", "-i", "-d", "-F"])
            .arg(&file)
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(unpacked.status.success(), "{unpacked:?}");
        assert_eq!(std::fs::read(folder.join("b")).unwrap(), b"12345");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
