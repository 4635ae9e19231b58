//! A Debian package: an `ar` archive of two compressed archives (deb(5)).

use std::fmt::Write as _;

use super::tree::{Entry, Tree};
use super::writer::from_root;
use crate::Result;

/// Debian's word for a machine.
///
/// # Errors
/// It isn't one that Podwire is built for.
pub(super) fn architecture(machine: &str) -> Result<&'static str> {
    match machine {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => Err(format!("no package for {other}").into()),
    }
}

/// The package of a tree.
///
/// # Errors
/// A path doesn't fit.
pub(super) fn package(tree: &Tree, version: &str, machine: &str, time: u64) -> Result<Vec<u8>> {
    let mut control = Tree::default();
    control.file("control", 0o644, about(tree, version, machine).into_bytes());
    let mut archive = Vec::from(b"!<arch>\n");
    for (name, bytes) in [
        ("debian-binary", Vec::from(b"2.0\n")),
        ("control.tar.gz", from_root(&control, time)?),
        ("data.tar.gz", from_root(tree, time)?),
    ] {
        // ar(5): name, time, owner, group, mode, size, each with its width.
        let head =
            format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, "100644", bytes.len());
        archive.extend(head.bytes());
        archive.extend(&bytes);
        if bytes.len() % 2 == 1 {
            archive.push(b'\n');
        }
    }
    Ok(archive)
}

/// The control file.
fn about(tree: &Tree, version: &str, machine: &str) -> String {
    let bytes: usize = tree
        .entries
        .values()
        .map(|entry| match entry {
            Entry::File { bytes, .. } => bytes.len(),
            Entry::Link { .. } => 0,
        })
        .sum();
    let mut text = String::new();
    for (key, value) in [
        ("Package", "podwire"),
        ("Version", version),
        ("Architecture", machine),
        ("Maintainer", "Podwire maintainers <podwire@localhost>"),
        ("Installed-Size", &bytes.div_ceil(1024).to_string()),
        ("Suggests", "iptables"),
        ("Section", "net"),
        ("Priority", "optional"),
        ("Description", "Container Network Interface: plugins, runtime and tool"),
    ] {
        // Writing to a String can't fail.
        let _ = writeln!(text, "{key}: {value}");
    }
    text.push_str(
        " The plugins that wire a container to a network, in /usr/lib/podwire/cni, and the\n \
         podwire command to attach, check and clean up. `podwire migrate` brings the plugins\n \
         to where a runtime looks for them.\n",
    );
    text
}
