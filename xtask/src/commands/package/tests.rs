use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use super::tree::{Entry, Tree};
use super::{deb, writer};

const TIME: u64 = 1_700_000_000;

fn tree() -> Tree {
    let mut tree = Tree::default();
    tree.file("usr/bin/podwire", 0o755, b"program".to_vec());
    tree.plugins(vec![7; 100_001], ["portmap", "bridge"].into_iter());
    tree.file("usr/share/doc/podwire/copyright", 0o644, b"text".to_vec());
    tree
}

fn unpack(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
}

#[track_caller]
fn is_whole(folder: &Path, root: &str) {
    let path = |name: &str| folder.join(root).join(name);
    let of = |name: &str| std::fs::metadata(path(name)).unwrap();
    for name in ["bridge", "portmap"] {
        let link = of(&format!("lib/podwire/cni/{name}"));
        assert_eq!(link.ino(), of("lib/podwire/cni/podwire-cni").ino(), "{name} is no link");
        assert_eq!((link.nlink(), link.len()), (3, 100_001));
        assert_eq!(link.mode() & 0o7777, 0o755);
    }
    let text = of("share/doc/podwire/copyright");
    assert_eq!((text.mode() & 0o7777, text.mtime()), (0o644, i64::try_from(TIME).unwrap()));
    assert_eq!(std::fs::read(path("bin/podwire")).unwrap(), b"program");
}

#[test]
fn the_archive_is_the_same_each_time_and_keeps_its_links() {
    let bytes = writer::archive(&tree(), "podwire-1", TIME).unwrap();
    assert!(bytes == writer::archive(&tree(), "podwire-1", TIME).unwrap());
    assert!(bytes != writer::archive(&tree(), "podwire-1", TIME + 1).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.tar.gz");
    std::fs::write(&file, &bytes).unwrap();
    let (file, to) = (file.to_str().unwrap(), folder.path().to_str().unwrap());
    unpack("tar", &["-xzf", file, "-C", to]);
    is_whole(folder.path(), "podwire-1");
}

#[test]
fn the_debian_package_is_the_same_each_time_and_dpkg_takes_it() {
    let package = || deb::package(&tree(), "0.1.0", "amd64", TIME).unwrap();
    let bytes = package();
    assert!(bytes == package());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.deb");
    std::fs::write(&file, &bytes).unwrap();
    let (file, to) = (file.to_str().unwrap(), folder.path().join("root"));
    unpack("dpkg-deb", &["-x", file, to.to_str().unwrap()]);
    is_whole(folder.path(), "root/usr");
    let output =
        Command::new("dpkg-deb").args(["-f", file, "Package", "Version"]).output().unwrap();
    let fields = String::from_utf8(output.stdout).unwrap();
    assert_eq!(fields, "Package: podwire\nVersion: 0.1.0\n");
    // For real: dpkg makes links in its own way.
    let install = folder.path().join("install");
    for part in ["var/lib/dpkg/info", "var/lib/dpkg/updates"] {
        std::fs::create_dir_all(install.join(part)).unwrap();
    }
    std::fs::write(install.join("var/lib/dpkg/status"), "").unwrap();
    let root = format!("--root={}", install.display());
    unpack("dpkg", &[&root, "--force-architecture", "--force-not-root", "--unpack", file]);
    is_whole(&install, "usr");
}

#[test]
fn machines_have_debians_names() {
    assert_eq!(deb::architecture("x86_64").unwrap(), "amd64");
    assert_eq!(deb::architecture("aarch64").unwrap(), "arm64");
    assert!(deb::architecture("riscv64").is_err());
}

#[test]
fn every_folder_is_named_once() {
    let folders = tree().folders();
    assert_eq!(folders.first().unwrap(), "usr");
    assert!(folders.contains(&"usr/lib/podwire/cni".to_owned()));
    let mut unique = folders.clone();
    unique.dedup();
    assert_eq!(unique, folders);
    assert!(matches!(tree().entries["usr/lib/podwire/cni/bridge"], Entry::Link { .. }));
}

#[test]
fn a_folder_comes_with_those_below_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("plots/old")).unwrap();
    for name in ["page.md", "plots/a.svg", "plots/old/b.svg"] {
        std::fs::write(folder.path().join(name), name).unwrap();
    }
    let mut tree = Tree::default();
    tree.folder("docs", folder.path()).unwrap();
    let names: Vec<_> = tree.entries.keys().map(String::as_str).collect();
    assert_eq!(names, ["docs/page.md", "docs/plots/a.svg", "docs/plots/old/b.svg"]);
}
