//! What the guest finds in its first and only file system: a shell, the
//! programs that tests use, the kernel's modules, and the tests. Everything
//! is where it is on this machine, so that paths compiled into tests hold.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::cpio::Archive;
use super::guest;
use super::kernel::Kernel;
use super::selection::Test;
use crate::process::{command, output};
use crate::{Result, workspace};

/// Programs of this machine that tests call. Whatever else a shell needs,
/// busybox does.
const PROGRAMS: &[&str] = &[
    "bridge",
    "conntrack",
    "ip",
    "ip6tables",
    "ip6tables-legacy",
    "ip6tables-nft",
    "ip6tables-save",
    "iperf3",
    "iptables",
    "iptables-legacy",
    "iptables-nft",
    "iptables-restore",
    "iptables-save",
    "modprobe",
    "nft",
    "nsenter",
    "ping",
    "prlimit",
    "setpriv",
    // Busybox's own would run its own `ip`.
    "sh",
    "strace",
    "sysctl",
    "tc",
    "tcpdump",
    "unshare",
];

/// Folders and files of this machine that those programs read.
const DATA: &[&str] = &[
    "/etc/group",
    "/etc/iproute2",
    "/etc/passwd",
    "/etc/protocols",
    "/etc/services",
    "/usr/share/iproute2",
    "/usr/lib/x86_64-linux-gnu/xtables",
];

/// Our own programs that tests execute, beside the test programs' folder.
const OURS: &[&str] = &["podwire", "examples/hosts-file"];

/// The plugins as they ship: several times quicker in emulation than what is built
/// for debugging.
const PLUGINS: &str = "podwire-cni";

/// The test programs that find them.
const BESIDE_GO: &[&str] = &["/vm_interop_", "/vm_crash"];

/// Go plugins that test programs named `vm_interop_` compare ours with and take
/// over from: the release, as `cargo xtask peers` names it, and its plugins. One
/// named `bridge` is what tests know a release by.
const PEERS: &[(&str, &[&str])] = &[
    ("sid", &["bridge", "dummy", "host-local", "ipvlan", "static", "vlan", "vrf"]),
    ("debian", &["bridge", "host-local", "ipvlan", "vlan", "vrf"]),
];

/// A merged /usr, as Debian has it.
const LINKS: &[(&str, &str)] =
    &[("bin", "usr/bin"), ("sbin", "usr/sbin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")];

/// Folders that must be there though nothing is in them.
const FOLDERS: &[&str] = &["dev", "etc", "proc", "root", "run", "sys", "tmp", "var/lib", "vmtest"];

enum Content {
    Folder,
    /// A file of this machine.
    Copy(PathBuf),
    /// Text, executable.
    Text(String),
    Link(String),
}

/// By path without the leading slash; sorted, so that folders come before what
/// is in them.
#[derive(Default)]
struct Tree(BTreeMap<String, Content>);

/// Writes the image for a kernel and these tests.
///
/// # Errors
/// When something that belongs in it isn't on this machine.
pub(super) fn write(kernel: &Kernel, tests: &[Test], place: &Path) -> Result<()> {
    let mut tree = Tree::default();
    for folder in FOLDERS {
        tree.folder(folder);
    }
    for (name, target) in LINKS {
        tree.folder(target);
        tree.0.insert((*name).to_owned(), Content::Link((*target).to_owned()));
    }
    tree.insert("init", Content::Text(include_str!("init.sh").to_owned()));
    busybox(&mut tree)?;
    for name in PROGRAMS {
        let program = find(name)?;
        tree.insert(&format!("usr/bin/{name}"), Content::Copy(program.clone()));
        tree.libraries(&program)?;
    }
    // The kernel calls it by this path.
    tree.insert("usr/sbin/modprobe", Content::Copy(find("modprobe")?));
    for path in DATA.iter().map(Path::new).filter(|path| path.exists()) {
        tree.copy_below(path, path)?;
    }
    let release = kernel.modules.file_name().ok_or("modules without a release")?;
    tree.copy_below(&kernel.modules, &Path::new("/usr/lib/modules").join(release))?;
    add_tests(&mut tree, tests)?;
    let is_beside_go = |test: &Test| {
        let program = test.program.display().to_string();
        BESIDE_GO.iter().any(|name| program.contains(name))
    };
    if tests.iter().any(is_beside_go) {
        add_peers(&mut tree)?;
    }
    tree.insert("vmtest/tests", Content::Text(guest::write_list(tests)));
    debug_assert_eq!(guest::LIST, "/vmtest/tests");
    tree.write(place)
}

fn busybox(tree: &mut Tree) -> Result<()> {
    let program = find("busybox")?;
    for applet in output(command("busybox").arg("--list"))?.lines() {
        tree.insert(&format!("usr/bin/{applet}"), Content::Link("busybox".to_owned()));
    }
    tree.insert("usr/bin/busybox", Content::Copy(program));
    Ok(())
}

/// The test programs and ours, without what only a debugger reads.
fn add_tests(tree: &mut Tree, tests: &[Test]) -> Result<()> {
    let stripped = workspace::target().join("vm/stripped");
    std::fs::create_dir_all(&stripped)?;
    let debug = workspace::target().join("debug");
    // This program's file may have been replaced by a build meanwhile.
    let own = stripped.join("xtask.whole");
    super::super::build::replace(Path::new("/proc/self/exe"), &own)?;
    let mut programs = vec![(own, "/vmtest/xtask".to_owned())];
    for name in OURS {
        let program = debug.join(name);
        programs.push((program.clone(), program.display().to_string()));
    }
    for test in tests {
        programs.push((test.program.clone(), test.program.display().to_string()));
        tree.folder(&test.folder.display().to_string());
    }
    programs.sort();
    programs.dedup();
    for (program, place) in programs {
        let name = program.file_name().ok_or("a program without a name")?;
        let small = stripped.join(name);
        run_strip(&program, &small)?;
        tree.libraries(&program)?;
        tree.insert(&place, Content::Copy(small));
    }
    let shipped = workspace::dist().join(PLUGINS);
    tree.insert(&debug.join(PLUGINS).display().to_string(), Content::Copy(shipped));
    Ok(())
}

/// The Go plugins, where tests look for them: in the usual place, whatever this
/// machine's is.
fn add_peers(tree: &mut Tree) -> Result<()> {
    let root = workspace::root();
    // Tests name the place from here.
    tree.folder(&root.join("crates/testkit").display().to_string());
    for (release, names) in PEERS {
        for name in *names {
            let program = workspace::peers().join(release).join(name);
            if !program.is_file() {
                let shown = program.display();
                return Err(format!("no {shown}; run `cargo xtask peers`").into());
            }
            tree.libraries(&program)?;
            let place = root.join("target/peers").join(release).join(name);
            tree.insert(&place.display().to_string(), Content::Copy(program));
        }
    }
    Ok(())
}

fn run_strip(program: &Path, small: &Path) -> Result<()> {
    let modified = |path: &Path| std::fs::metadata(path).and_then(|found| found.modified());
    let original = modified(program)
        .map_err(|error| format!("{}: {error}; is it built?", program.display()))?;
    if modified(small).is_ok_and(|copy| copy > original) {
        return Ok(());
    }
    output(command("strip").arg("--strip-debug").arg("-o").args([small, program])).map(drop)
}

/// The path of a program of this machine.
fn find(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(more)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
        .ok_or_else(|| format!("no program `{name}`; run `cargo xtask setup`").into())
}

/// Every file below a folder.
///
/// # Errors
/// When the folder can't be read.
pub(super) fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            match entry.file_type()? {
                kind if kind.is_dir() => waiting.push(entry.path()),
                // Links to files are followed, those to folders aren't.
                _ if entry.path().is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    Ok(files)
}

impl Tree {
    fn insert(&mut self, path: &str, content: Content) {
        let path = path.trim_start_matches('/');
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.folder(folder);
        }
        self.0.insert(path.to_owned(), content);
    }

    fn folder(&mut self, path: &str) {
        let path = path.trim_matches('/');
        for (end, _) in path.match_indices('/') {
            self.0.entry(path.get(..end).unwrap_or(path).to_owned()).or_insert(Content::Folder);
        }
        self.0.entry(path.to_owned()).or_insert(Content::Folder);
    }

    /// Copies a file, or all below a folder, of this machine.
    fn copy_below(&mut self, from: &Path, to: &Path) -> Result<()> {
        if from.is_file() {
            self.insert(&to.display().to_string(), Content::Copy(from.to_owned()));
            return Ok(());
        }
        for file in files_below(from)? {
            let to = to.join(file.strip_prefix(from)?);
            self.insert(&to.display().to_string(), Content::Copy(file));
        }
        Ok(())
    }

    /// Adds the shared libraries that a program is loaded with.
    fn libraries(&mut self, program: &Path) -> Result<()> {
        // It fails for static programs.
        let listed = command("ldd").arg(program).output()?;
        for line in String::from_utf8(listed.stdout)?.lines() {
            // `name => /path (0x...)` or `/path (0x...)`.
            let path = line.split_whitespace().find(|word| word.starts_with('/'));
            let Some(path) = path.map(Path::new) else { continue };
            let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { continue };
            // /lib is /usr/lib, here and there.
            let place = folder.canonicalize()?.join(name);
            self.insert(&place.display().to_string(), Content::Copy(path.to_owned()));
        }
        Ok(())
    }

    fn write(&self, place: &Path) -> Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let file = std::io::BufWriter::new(std::fs::File::create(place)?);
        let mut archive = Archive::new(file);
        for (path, content) in &self.0 {
            match content {
                Content::Folder => archive.directory(path)?,
                Content::Link(target) => archive.symlink(path, target)?,
                Content::Text(text) => archive.file(path, 0o755, text.as_bytes())?,
                Content::Copy(from) => {
                    let broken = |error| format!("{}: {error}", from.display());
                    let mode = std::fs::metadata(from).map_err(broken)?.permissions().mode();
                    let bytes = std::fs::read(from).map_err(broken)?;
                    archive.file(path, mode & 0o777, &bytes)?;
                }
            }
        }
        archive.finish()?;
        Ok(())
    }
}
