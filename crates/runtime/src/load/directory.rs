//! A configuration directory: what can be used and what can't.

use std::path::{Path, PathBuf};

use podwire_spec::id::NetworkName;

use super::{Kind, Network, Problem, files};
use crate::error::RuntimeError;

/// All that one directory holds.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    /// The directory.
    pub path: PathBuf,
    /// The networks, sorted by file name. Several may have one name.
    pub networks: Vec<Network>,
    /// The files that can't be used, sorted by file name.
    pub problems: Vec<Problem>,
}

impl Directory {
    /// Reads a directory; one that isn't there is empty.
    ///
    /// # Errors
    /// If it is there and can't be listed.
    pub fn read(directory: &Path) -> Result<Self, RuntimeError> {
        let mut found = Self { path: directory.to_owned(), ..Self::default() };
        let paths = files::entries(directory, |path| Kind::of(path).is_some())
            .map_err(RuntimeError::Load)?;
        for path in paths {
            match Network::from_file(&path) {
                Ok(network) => found.networks.push(network),
                // Removed since it was listed.
                Err(problem) if problem.is_gone() => {}
                Err(problem) => found.problems.push(problem),
            }
        }
        Ok(found)
    }

    /// The network of a name, as libcni would choose it.
    ///
    /// # Errors
    /// [`RuntimeError::NetworkNotFound`]; or [`RuntimeError::Load`] with code
    /// 11 if a file that comes first is just being written.
    pub fn take(mut self, name: &str) -> Result<Network, RuntimeError> {
        NetworkName::parse(name)?;
        let chosen = self
            .networks
            .iter()
            .enumerate()
            .filter(|(_, network)| network.name().as_str() == name)
            .min_by_key(|(_, network)| rank(network.path()));
        let Some((index, network)) = chosen else {
            return Err(RuntimeError::NetworkNotFound {
                name: name.to_owned(),
                directory: self.path,
                problems: self.problems,
            });
        };
        let limit = rank(network.path());
        if let Some(problem) = self
            .problems
            .iter()
            .find(|problem| problem.being_written && rank(Some(&problem.path)) < limit)
        {
            return Err(RuntimeError::Load(problem.clone()));
        }
        Ok(self.networks.swap_remove(index))
    }

    /// The first `limit` networks by file name, as go-cni chooses its default
    /// ones; fewer if there are fewer.
    ///
    /// # Errors
    /// [`RuntimeError::Load`] with code 11 if a file among them is just being
    /// written: the next one must not take its place.
    pub fn first_networks(&self, limit: usize) -> Result<&[Network], RuntimeError> {
        let first = self.networks.get(..limit).unwrap_or(&self.networks);
        let is_full = first.len() == limit;
        let last = first.last().and_then(Network::path);
        let in_pen = self.problems.iter().find(|problem| {
            problem.being_written
                && (!is_full || last.is_some_and(|last| problem.path.as_path() < last))
        });
        match in_pen {
            Some(problem) => Err(RuntimeError::Load(problem.clone())),
            None => Ok(first),
        }
    }
}

/// What decides between two files in a lookup by name: the smaller wins.
fn rank(path: Option<&Path>) -> (Option<Kind>, Option<&Path>) {
    (path.and_then(Kind::of), path)
}

#[cfg(test)]
mod tests;
