//! Putting our plugins in the places of the Go project's.

use std::path::Path;

use podwire_plugin::aside;
use podwire_spec::Error;
use podwire_sys::file::create_dir_all;

use crate::place::{Place, remove, remove_folder};
use crate::program::Program;
use crate::source::Source;
use crate::survey::{Step, Survey, Wishes, of_place, same_content};

/// What was done.
#[derive(Debug, Clone)]
pub struct Exchanged {
    /// The directory as it was found, with the steps that were taken.
    pub survey: Survey,
}

/// Puts the plugins of `source` into a directory: each in one step, the Go plugins
/// kept aside. Run again it does what is left to do, and nothing where nothing is.
///
/// # Errors
/// Code 7 naming every file of which nobody can tell what it is, and then nothing
/// was changed; code 11 when another runs; else what the file system said, and then
/// each name still leads to a program that works, old or new.
pub fn migrate(directory: &Path, source: &Source, wishes: &Wishes) -> Result<Exchanged, Error> {
    let place = Place::open(directory)?;
    let survey = of_place(&place, source, wishes)?;
    let refused: Vec<_> = survey
        .refusals()
        .map(|file| format!("{}: {}", file.name, file.step.reason().unwrap_or_default()))
        .collect();
    if !refused.is_empty() {
        return Err(Error::config(format!(
            "nothing was changed: not all of {} can be told: {}",
            survey.directory.display(),
            refused.join("; ")
        ))
        .with_details("leave them as they are with --except NAME, or take them away"));
    }
    if survey.is_settled() {
        return Ok(Exchanged { survey });
    }
    let _lock = place.lock()?;
    place.sweep()?;
    // The directory may have changed before the lock was ours.
    let survey = of_place(&place, source, wishes)?;
    if survey.refusals().next().is_some() {
        return Err(Error::try_again("the plugin directory is being changed by somebody else"));
    }
    if place.kept()?.is_empty() {
        let ours = survey
            .files
            .iter()
            .filter(|file| matches!(file.program, Program::Podwire { .. }) && !file.forwards);
        place.note_before(&ours.map(|file| file.name.as_str()).collect::<Vec<_>>())?;
    }
    let installed = place.name(aside::PROGRAM);
    if !same_content(&installed, &source.path) {
        place.copy(&source.path, &installed)?;
    }
    for file in &survey.files {
        let path = place.name(&file.name);
        match file.step {
            Step::Replace => {
                create_dir_all(&place.originals(), 0o755)
                    .map_err(|error| Error::io(error.to_string()))?;
                place.keep(&file.name)?;
                // Kept for certain before it can be lost.
                place.sync()?;
                place.link(&installed, &path)?;
            }
            Step::Add | Step::Renew => place.link(&installed, &path)?,
            Step::Nothing | Step::Leave { .. } | Step::Refuse { .. } => {}
        }
    }
    // Of a roll-back that was not finished; whoever runs it goes on with it.
    if survey.files.iter().all(|file| !file.forwards || file.step == Step::Renew) {
        remove(&place.forwarder())?;
        remove_folder(&place.forward())?;
    }
    place.sync()?;
    Ok(Exchanged { survey })
}
