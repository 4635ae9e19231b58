//! The way back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use podwire_plugin::aside;
use podwire_runtime::store::Store;
use podwire_spec::Error;
use podwire_sys::file::{create_dir_all, regular_files};

use crate::place::{Place, identity, remove, remove_folder, target};
use crate::program::Program;
use crate::remains::{Remains, clear_tables, remains};
use crate::running::wait_for;
use crate::uses::recorded_types;

/// Where our DHCP daemon keeps its leases.
const LEASES: &str = "/var/lib/cni/podwire/dhcp";
/// How long calls that run may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a roll-back did, and what it waits for.
#[derive(Debug, Clone, Default)]
pub struct RolledBack {
    /// The plugins whose originals are in their places again.
    pub restored: Vec<String>,
    /// Those that make nothing new any more, but still delete what they made.
    pub forwarding: Vec<String>,
    /// Plugins that stay whole, since attachments need them: those that had no original,
    /// and `dhcp` while its daemon has leases.
    pub needed: Vec<String>,
    /// Plugins that had no original and are gone.
    pub removed: Vec<String>,
    /// Plugins that were Podwire's before the exchange, and still are.
    pub as_before: Vec<String>,
    /// What is left of ours in the kernel.
    pub remains: Remains,
    /// Calls of ours that still run.
    pub running: Vec<u32>,
}

impl RolledBack {
    /// Whether nothing of ours is left, neither files nor objects.
    pub fn is_finished(&self) -> bool {
        self.forwarding.is_empty() && self.needed.is_empty()
    }
}

/// Brings the originals back. Those that our objects have no need of are in their
/// places at once; the others do everything but deleting, until it is called again
/// with none of our objects left. `store` tells which attachments there are.
///
/// # Errors
/// There are no originals, or one isn't what it was, and then nothing was changed;
/// code 11 when another runs; else what file system or kernel said.
pub fn rollback(directory: &Path, store: &Store) -> Result<RolledBack, Error> {
    let place = Place::open(directory)?;
    let kept = place.kept()?;
    let own = own_names(&place)?;
    if kept.is_empty() && own.is_empty() {
        return finish(&place).map(|()| RolledBack::default());
    }
    if kept.is_empty() {
        return Err(Error::environment(format!(
            "{} holds Podwire's plugins, but no originals are kept there",
            directory.display()
        ))
        .with_details("it was not migrated: install other plugins over these as they came"));
    }
    verify(&place, &kept)?;
    let _lock = place.lock()?;
    place.sweep()?;
    let programs = programs(&place, &own);
    let installed = place.name(aside::PROGRAM);
    if place.names()?.iter().any(|name| name == aside::PROGRAM) {
        create_dir_all(&place.forward(), 0o755).map_err(|error| Error::io(error.to_string()))?;
        place.link(&installed, &place.forwarder())?;
    }

    let mut done = RolledBack::default();
    let (kept_own, added): (Vec<_>, Vec<_>) = own.into_iter().partition(|name| kept.contains(name));
    let (lasting, simple): (Vec<_>, Vec<_>) =
        kept_own.into_iter().partition(|name| Remains::PLUGINS.contains(&name.as_str()));
    let forwarder = PathBuf::from(aside::FOLDER).join(aside::FORWARD).join(aside::PROGRAM);
    for name in &lasting {
        if !forwards(&place, name) {
            place.symlink(&forwarder, &place.name(name))?;
        }
    }
    for name in simple {
        if name == "dhcp" && holds_leases() {
            done.needed.push(name);
            continue;
        }
        place.restore(&name)?;
        done.restored.push(name);
    }
    place.sync()?;

    // From here on nothing new is made by ours, once those that run have ended.
    done.running = wait_for(&programs, PATIENCE);
    done.remains = remains()?;
    for name in lasting {
        if done.running.is_empty() && !done.remains.need(&name) {
            place.restore(&name)?;
            done.restored.push(name);
        } else {
            done.forwarding.push(name);
        }
    }
    let types = recorded_types(store)?;
    let before = place.before()?;
    for name in added {
        if before.contains(&name) {
            done.as_before.push(name);
        } else if done.running.is_empty()
            && types.as_ref().is_some_and(|types| !types.contains(&name))
        {
            remove(&place.name(&name))?;
            done.removed.push(name);
        } else {
            done.needed.push(name);
        }
    }
    done.restored.sort_unstable();
    if done.is_finished() && done.remains.is_empty() {
        clear_tables()?;
    }
    if done.is_finished() { finish(&place) } else { place.sync() }?;
    Ok(done)
}

/// Whether our DHCP daemon has leases: it and the Go plugin don't understand each
/// other, so that one's DEL would fail.
fn holds_leases() -> bool {
    !regular_files(Path::new(LEASES), 1 << 16).is_ok_and(|leases| leases.is_empty())
}

/// The names that are ours, or lead to ours.
pub(crate) fn own_names(place: &Place) -> Result<Vec<String>, Error> {
    let installed = identity(&place.name(aside::PROGRAM));
    let mut names = Vec::new();
    for name in place.names()? {
        if name == aside::PROGRAM {
            continue;
        }
        let path = place.name(&name);
        let is_installed = installed.is_some() && identity(&path) == installed;
        // One that was renewed half-way is another file.
        let is_ours = || {
            place.kept().is_ok_and(|kept| kept.contains(&name))
                && matches!(Program::ask(&path, &name), Program::Podwire { .. })
        };
        if is_installed || forwards(place, &name) || is_ours() {
            names.push(name);
        }
    }
    Ok(names)
}

fn forwards(place: &Place, name: &str) -> bool {
    let forwarder = target(&place.forwarder());
    forwarder.is_some() && target(&place.name(name)) == forwarder && place.name(name).is_symlink()
}

/// The originals must be what they were when they were put aside.
pub(crate) fn verify(place: &Place, kept: &[String]) -> Result<(), Error> {
    let mut broken = Vec::new();
    for name in kept {
        let program = Program::ask(&place.original(name), name);
        if !matches!(program, Program::Go { .. }) {
            broken.push(format!("{name}: {program}"));
        }
    }
    if broken.is_empty() {
        return Ok(());
    }
    Err(Error::config(format!(
        "nothing was changed: what is kept in {} can't be put back: {}",
        place.originals().display(),
        broken.join("; ")
    ))
    .with_details("put the right programs there, or take these away"))
}

/// Which files are ours, to know them when they run.
fn programs(place: &Place, own: &[String]) -> BTreeSet<(u64, u64)> {
    let mut programs: BTreeSet<_> =
        own.iter().filter_map(|name| target(&place.name(name))).collect();
    programs.extend(target(&place.name(aside::PROGRAM)));
    programs.extend(target(&place.forwarder()));
    programs
}

/// Removes what is ours but for plugins: there are none any more.
fn finish(place: &Place) -> Result<(), Error> {
    if !place.folder().is_dir() {
        return Ok(());
    }
    place.sweep()?;
    if identity(&place.name(aside::PROGRAM)) == identity(&place.forwarder()) {
        remove(&place.name(aside::PROGRAM))?;
    }
    for name in place.kept()? {
        remove(&place.original(&name))?;
    }
    remove(&place.forwarder())?;
    place.forget_before()?;
    for folder in [place.originals(), place.forward()] {
        remove_folder(&folder)?;
    }
    remove(&place.folder().join("lock"))?;
    remove_folder(&place.folder())?;
    place.sync()
}
