//! The program that takes the places.

use std::path::{Path, PathBuf};
use std::time::Duration;

use podwire_spec::Error;
use podwire_spec::id::PluginType;
use podwire_sys::process::{ChildSpec, run};

/// How long the program may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A `podwire-cni` that was asked what it holds.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its file.
    pub path: PathBuf,
    /// Its release.
    pub version: String,
    /// The plugins that it holds.
    pub plugins: Vec<String>,
}

impl Source {
    /// Asks the program at a path.
    ///
    /// # Errors
    /// It isn't there, doesn't run here, or isn't `podwire-cni`.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::read(path, &ask(path, "--version")?, || ask(path, "--list-plugins"))
    }

    /// Understands what the program says.
    pub(crate) fn read(
        path: &Path,
        said: &str,
        names: impl FnOnce() -> Result<String, Error>,
    ) -> Result<Self, Error> {
        let Some(version) = said.trim().strip_prefix("podwire-cni ") else {
            return Err(unusable(
                path,
                &format!("asked for its version it says {:?}", said.trim()),
            ));
        };
        let names = names()?;
        let plugins: Vec<String> = names.lines().map(|name| name.trim().to_owned()).collect();
        let is_plain = |name: &String| PluginType::parse(name).is_ok() && !name.starts_with('.');
        if plugins.is_empty() || !plugins.iter().all(is_plain) {
            return Err(unusable(path, "it lists no usable plugin names"));
        }
        Ok(Self { path: path.to_owned(), version: version.to_owned(), plugins })
    }
}

fn ask(path: &Path, question: &str) -> Result<String, Error> {
    // Under the name of a plugin it would answer as that plugin.
    let path = path.canonicalize().map_err(|error| unusable(path, &error.to_string()))?;
    let mut spec = ChildSpec::new(&path);
    spec.arguments = vec![question.into()];
    spec.inherit_environment = false;
    spec.deadline = Some(PATIENCE);
    let outcome = run(&spec).map_err(|error| unusable(&path, &error.to_string()))?;
    if !outcome.exit.is_success() {
        return Err(unusable(&path, &format!("{question}: {}", outcome.exit)));
    }
    Ok(outcome.stdout.text().into_owned())
}

fn unusable(path: &Path, reason: &str) -> Error {
    Error::environment(format!("{} is no podwire-cni that works here: {reason}", path.display()))
        .with_details("name the program with --from")
}
