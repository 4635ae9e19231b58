//! `cargo xtask install`: puts the programs where a runtime looks for them.

use std::path::{Path, PathBuf};

use super::{build, no_more, take_value};
use crate::process::{command, output};
use crate::{Result, workspace};

/// Units of systemd in `deploy`.
const UNITS: [&str; 2] = ["cni-dhcp.socket", "cni-dhcp.service"];

/// Builds, copies `podwire-cni` into the plugin folder, and links it there
/// under the name of every plugin it serves. Each name changes in one step, so
/// a runtime that executes plugins meanwhile finds the old or the new program.
///
/// # Errors
/// When `--cni-bin-dir` is missing, the build fails or a folder can't be written.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    let mut arguments = arguments.to_vec();
    let plugins = take_value(&mut arguments, "--cni-bin-dir")?;
    let programs = take_value(&mut arguments, "--bin-dir")?;
    let units = take_value(&mut arguments, "--unit-dir")?;
    no_more(&arguments)?;
    let plugins = PathBuf::from(plugins.ok_or("--cni-bin-dir DIR is needed, as in /opt/cni/bin")?);

    build::run(&[])?;
    let dist = workspace::dist();
    let names = plugin_names(&dist.join("podwire-cni"))?;
    std::fs::create_dir_all(&plugins)
        .map_err(|error| format!("can't make {}: {error}", plugins.display()))?;
    let multi_call = plugins.join("podwire-cni");
    build::replace(&dist.join("podwire-cni"), &multi_call)?;
    for name in &names {
        link(&multi_call, &plugins.join(name))?;
    }
    println!("  {}: {}", plugins.display(), names.join(" "));

    if let Some(programs) = programs.map(PathBuf::from) {
        std::fs::create_dir_all(&programs)
            .map_err(|error| format!("can't make {}: {error}", programs.display()))?;
        build::replace(&dist.join("podwire"), &programs.join("podwire"))?;
        println!("  {}: podwire", programs.display());
    }
    if let Some(units) = units.map(PathBuf::from) {
        place_units(&workspace::root().join("deploy"), &units, &plugins.canonicalize()?)?;
        println!("  {}: {}", units.display(), UNITS.join(" "));
    }
    Ok(())
}

/// Copies systemd's units from `from`; the daemon will be started from `plugins`.
fn place_units(from: &Path, to: &Path, plugins: &Path) -> Result<()> {
    std::fs::create_dir_all(to).map_err(|error| format!("can't make {}: {error}", to.display()))?;
    let plugins = plugins.to_string_lossy();
    if plugins
        .contains(|character: char| character.is_whitespace() || "%$\"'\\".contains(character))
    {
        return Err(format!("systemd would not read the path {plugins:?} as it stands").into());
    }
    for unit in UNITS {
        let text = std::fs::read_to_string(from.join(unit))?;
        let text = text.replace("ExecStart=/opt/cni/bin/", &format!("ExecStart={plugins}/"));
        let temporary = to.join(format!(".{unit}-{}", std::process::id()));
        std::fs::write(&temporary, text)?;
        std::fs::rename(&temporary, to.join(unit))?;
    }
    Ok(())
}

/// Asks the program which plugins it serves.
fn plugin_names(program: &Path) -> Result<Vec<String>> {
    let program = program.canonicalize()?;
    let listed = output(command(&program.to_string_lossy()).arg("--list-plugins"))?;
    let names: Vec<String> = listed.lines().map(str::trim).map(str::to_owned).collect();
    let plain = |name: &String| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    if names.is_empty() || !names.iter().all(plain) {
        return Err(format!("{} lists no usable plugin names: {names:?}", program.display()).into());
    }
    Ok(names)
}

/// Makes `to` a hard link to `from`, replacing what is there in one step.
fn link(from: &Path, to: &Path) -> Result<()> {
    let temporary = to.with_extension(format!("link-{}", std::process::id()));
    std::fs::hard_link(from, &temporary)?;
    std::fs::rename(&temporary, to)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    use super::{UNITS, build, link, place_units, plugin_names};

    fn program(name: &str, script: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let program = folder.join("podwire-cni");
        let source = folder.join("source");
        std::fs::write(&source, script).unwrap();
        build::replace(&source, &program).unwrap();
        std::fs::remove_file(&source).unwrap();
        program
    }

    fn inode(path: &Path) -> u64 {
        std::fs::metadata(path).unwrap().ino()
    }

    #[test]
    fn an_older_install_is_replaced_and_no_temporary_name_is_left() {
        let multi_call = program("install", "#!/bin/sh\nprintf 'bridge\\nhost-local\\n'\n");
        let folder = multi_call.parent().unwrap();
        std::fs::write(folder.join("bridge"), "an older one").unwrap();
        let names = plugin_names(&multi_call).unwrap();
        assert_eq!(names, ["bridge", "host-local"]);
        for name in &names {
            link(&multi_call, &folder.join(name)).unwrap();
            assert_eq!(inode(&folder.join(name)), inode(&multi_call));
        }
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 3);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn units_start_the_daemon_from_where_it_was_put() {
        let folder = std::env::temp_dir().join(format!("xtask-units-{}", std::process::id()));
        let deploy = crate::workspace::root().join("deploy");
        place_units(&deploy, &folder, Path::new("/usr/lib/cni")).unwrap();
        let service = std::fs::read_to_string(folder.join("cni-dhcp.service")).unwrap();
        assert!(service.contains("\nExecStart=/usr/lib/cni/dhcp daemon\n"), "{service}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), UNITS.len());
        assert!(place_units(&deploy, &folder, Path::new("/opt/my plugins")).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_name_that_leaves_the_folder_is_refused() {
        let multi_call = program("escape", "#!/bin/sh\necho ../../bin/sh\n");
        assert!(plugin_names(&multi_call).is_err());
        std::fs::remove_dir_all(multi_call.parent().unwrap()).unwrap();
    }
}
