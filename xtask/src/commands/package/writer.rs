//! A tree as a compressed archive, the same bytes each time.

use std::io::Write;

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use super::tree::{Entry, Tree};
use crate::Result;

/// The tree below a folder of its own, without its `usr`.
///
/// # Errors
/// A path doesn't fit into an archive.
pub(super) fn archive(tree: &Tree, top: &str, time: u64) -> Result<Vec<u8>> {
    let place = |path: &str| format!("{top}/{}", path.strip_prefix("usr/").unwrap_or(path));
    let mut archive = tarball(tree, time, &place)?;
    // What the tree's root becomes is a folder too.
    archive.insert_folder(top, time);
    archive.finish()
}

/// The tree as `dpkg` wants it: from the root, each path begun with a dot.
///
/// # Errors
/// A path doesn't fit into an archive.
pub(super) fn from_root(tree: &Tree, time: u64) -> Result<Vec<u8>> {
    let mut archive = tarball(tree, time, &|path| format!("./{path}"))?;
    archive.insert_folder(".", time);
    archive.finish()
}

/// Parts of an archive, in the order in which they are unpacked: folders, files,
/// links to files.
struct Tarball {
    folders: Vec<(Header, String)>,
    files: Vec<(Header, String, Vec<u8>)>,
    links: Vec<(Header, String, String)>,
}

fn tarball(tree: &Tree, time: u64, place: &dyn Fn(&str) -> String) -> Result<Tarball> {
    let mut parts = Tarball { folders: Vec::new(), files: Vec::new(), links: Vec::new() };
    for folder in tree.folders() {
        // The root itself has another name, or none.
        if folder != "usr" || place("usr/x").contains("usr/") {
            parts.insert_folder(&place(&folder), time);
        }
    }
    for (path, entry) in &tree.entries {
        match entry {
            Entry::File { mode, bytes } => {
                let mut header = header(EntryType::Regular, *mode, time);
                header.set_size(bytes.len().try_into()?);
                parts.files.push((header, place(path), bytes.clone()));
            }
            Entry::Link { to } => {
                parts.links.push((header(EntryType::Link, 0o755, time), place(path), place(to)));
            }
        }
    }
    Ok(parts)
}

impl Tarball {
    fn insert_folder(&mut self, path: &str, time: u64) {
        self.folders.push((header(EntryType::Directory, 0o755, time), format!("{path}/")));
        self.folders.sort_by(|one, other| one.1.cmp(&other.1));
    }

    fn finish(self) -> Result<Vec<u8>> {
        let mut builder = Builder::new(Vec::new());
        for (mut header, path) in self.folders {
            builder.append_data(&mut header, path, std::io::empty())?;
        }
        for (mut header, path, bytes) in self.files {
            builder.append_data(&mut header, path, bytes.as_slice())?;
        }
        for (mut header, path, to) in self.links {
            builder.append_link(&mut header, path, to)?;
        }
        compress(&builder.into_inner()?)
    }
}

fn header(kind: EntryType, mode: u32, time: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(time);
    header.set_size(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// Compressed, without a name or a time of its own.
fn compress(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
