//! `cargo xtask build`: the programs that ship, static and stripped.

use std::path::Path;

use super::no_more;
use crate::process::{cargo, command, output, run as run_process};
use crate::{Result, workspace};

/// The target that the programs ship for.
#[cfg(target_arch = "x86_64")]
pub(super) const MUSL: &str = "x86_64-unknown-linux-musl";
/// The target that the programs ship for.
#[cfg(target_arch = "aarch64")]
pub(super) const MUSL: &str = "aarch64-unknown-linux-musl";

/// What to fall back on where the musl target can't be had.
#[cfg(target_arch = "x86_64")]
const GNU: &str = "x86_64-unknown-linux-gnu";
/// What to fall back on where the musl target can't be had.
#[cfg(target_arch = "aarch64")]
const GNU: &str = "aarch64-unknown-linux-gnu";

/// The programs, each with the most bytes it may have. All plugins in one
/// file of 3 MB is a promise; the other limit only catches accidents.
const PROGRAMS: &[(&str, u64)] = &[("podwire-cni", 3_000_000), ("podwire", 12_000_000)];

/// Builds into `target/dist` and prints the sizes.
///
/// # Errors
/// When the build fails, a program isn't static, or it is too large.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    no_more(arguments)?;
    let target = shipped_target();
    if target == GNU {
        println!("  WARNING: the target {MUSL} isn't installed (`cargo xtask setup` adds it).");
        println!("  WARNING: building for {GNU}: larger, and every call starts 0.3 ms later.");
    }
    let mut build = cargo();
    build.args(["build", "--quiet", "--profile", "dist", "--target", target]);
    build.args(["--package", "podwire-plugins", "--package", "podwire", "--bins"]);
    let flags = remap();
    if target == GNU {
        let own = "-C target-feature=+crt-static -C relocation-model=static";
        build.env("RUSTFLAGS", format!("{own} {}", flags.join(" ")));
    } else {
        // Comes on top of those in .cargo/config.toml.
        let flags: Vec<_> = flags.iter().map(|flag| format!("{flag:?}")).collect();
        build.args(["--config", &format!("target.{target}.rustflags=[{}]", flags.join(","))]);
    }
    run_process(&mut build)?;

    let built = workspace::target().join(target).join("dist");
    let dist = workspace::dist();
    std::fs::create_dir_all(&dist)?;
    for (program, limit) in PROGRAMS {
        let to = dist.join(program);
        replace(&built.join(program), &to)?;
        let size = std::fs::metadata(&to)?.len();
        println!("  {} {size} bytes, {target}", to.display());
        if asks_for_a_loader(&to)? {
            return Err(format!("{program} isn't static: it asks for a program loader").into());
        }
        if size > *limit {
            return Err(format!("{program} has {size} bytes, more than the {limit} allowed").into());
        }
    }
    Ok(())
}

/// Where the checkout and cargo's folder lie isn't written into the programs, so that
/// one commit gives the same bytes everywhere.
fn remap() -> Vec<String> {
    let home = std::env::var_os("HOME").map(std::path::PathBuf::from).unwrap_or_default();
    let cargo = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), Into::into);
    [(workspace::root(), "/podwire"), (cargo, "/cargo")]
        .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()))
        .into()
}

/// The target of the programs: musl, or gnu where that can't be had.
pub(super) fn shipped_target() -> &'static str {
    if has_musl() { MUSL } else { GNU }
}

fn has_musl() -> bool {
    output(command("rustup").args(["target", "list", "--installed"]))
        .is_ok_and(|list| list.lines().any(|line| line == MUSL))
}

/// Copies a program to a name that may be running at this moment: a new file
/// takes the name in one step, and the old one lives on for those who run it.
///
/// # Errors
/// When the source can't be read or the folder can't be written.
pub(super) fn replace(from: &Path, to: &Path) -> Result<()> {
    let (Some(folder), Some(name)) = (to.parent(), to.file_name()) else {
        return Err(format!("{} isn't a file name", to.display()).into());
    };
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}", std::process::id()));
    let temporary = folder.join(temporary);
    std::fs::copy(from, &temporary).map_err(|error| {
        format!("can't copy {} to {}: {error}", from.display(), temporary.display())
    })?;
    super::setup::make_executable(&temporary)?;
    std::fs::File::open(&temporary)?.sync_all()?;
    std::fs::rename(&temporary, to)?;
    Ok(())
}

/// Whether an ELF file has a `PT_INTERP` segment, which means that it is
/// linked dynamically (ELF-64 object file format, program header).
fn asks_for_a_loader(program: &Path) -> Result<bool> {
    const PT_INTERP: u64 = 3;
    let bytes = std::fs::read(program)?;
    let number = |at: usize, length: usize| -> Result<u64> {
        let field = bytes.get(at..at + length).ok_or("not an ELF file: too short")?;
        Ok(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    };
    let table = usize::try_from(number(0x20, 8)?)?;
    let entry_size = usize::try_from(number(0x36, 2)?)?;
    for index in 0..usize::try_from(number(0x38, 2)?)? {
        if number(table + index * entry_size, 4)? == PT_INTERP {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::{asks_for_a_loader, replace};

    #[test]
    fn a_program_of_the_system_asks_for_a_loader() {
        assert!(asks_for_a_loader(std::path::Path::new("/bin/ls")).unwrap());
    }

    #[test]
    fn a_running_program_can_be_replaced() {
        let folder = std::env::temp_dir().join(format!("xtask-replace-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let program = folder.join("cat");
        replace(std::path::Path::new("/bin/cat"), &program).unwrap();
        let mut running = std::process::Command::new(&program)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        replace(std::path::Path::new("/bin/cat"), &program).unwrap();
        drop(running.stdin.take());
        assert!(running.wait().unwrap().success());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no temporary file is left");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
