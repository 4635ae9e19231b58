//! Doors to what reads files and programs' words, for fuzzing. No part of the API.

use std::path::Path;

use podwire_runtime::Runtime;
use podwire_spec::Error;

use crate::place::Place;
use crate::uses::{Uses, in_files, recorded_types};
use crate::{Program, Source, Survey, Wishes, build_info, rollback, survey};

/// Understands what a program says that should be the plugin of this name, and what a
/// linker would have written into it.
pub fn about(text: &str, name: &str) -> Program {
    let _ = build_info::plugin_in(text.as_bytes());
    Program::read(text, name)
}

/// Understands what a program says that should hold our plugins.
///
/// # Errors
/// It doesn't.
pub fn source(path: &Path, version: &str, plugins: &str) -> Result<Source, Error> {
    Source::read(path, version, || Ok(plugins.to_owned()))
}

/// Looks at a plugin directory, for both ways. Returns what is there, and the names that
/// are ours.
///
/// # Errors
/// It can't be listed.
pub fn directory(path: &Path, source: &Source) -> Result<(Survey, Vec<String>), Error> {
    let found = survey::survey(path, source, &Wishes::default())?;
    let place = Place::open(path)?;
    let _ = rollback::verify(&place, &place.kept()?);
    Ok((found, rollback::own_names(&place)?))
}

/// Looks at configurations and records; says which types the records name.
///
/// # Errors
/// A folder can't be listed.
pub fn files(runtime: &Runtime) -> Result<(Uses, usize), Error> {
    let types = recorded_types(runtime.store())?;
    Ok((in_files(runtime)?, types.map_or(0, |types| types.len())))
}
