//! A runtime's command line: ours, or Go's client of libcni.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Outcome;
use crate::bench::{Bench, Container};
use crate::call::Call;
use crate::subject::Subject;

/// Which runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runtime {
    /// `podwire`.
    Podwire,
    /// The Go client.
    Libcni,
}

/// A runtime with its directories.
#[derive(Debug, Clone)]
pub(super) struct Driver {
    pub(super) runtime: Runtime,
    program: PathBuf,
    /// Where `NETWORK.conflist` lies.
    pub(super) configurations: PathBuf,
    plugins: PathBuf,
    pub(super) cache: PathBuf,
}

impl Driver {
    /// A runtime over a subject's plugins.
    pub(super) fn new(
        bench: &Bench<'_>,
        runtime: Runtime,
        subject: Subject,
        configurations: &Path,
        cache: &Path,
    ) -> Outcome<Self> {
        let programs = &bench.options.programs;
        let program = match runtime {
            Runtime::Podwire => programs.podwire.clone(),
            Runtime::Libcni => programs.libcni().ok_or("the Go client is not here")?,
        };
        Ok(Self {
            runtime,
            program,
            configurations: configurations.to_owned(),
            plugins: programs.plugins(subject).ok_or("no plugins")?,
            cache: cache.to_owned(),
        })
    }

    /// `add`, `check` or `del` of a container's interface.
    pub(super) fn call(
        &self,
        verb: &str,
        network: &str,
        container: &Container,
        ifname: &str,
        capabilities: &Value,
    ) -> Call {
        let mut arguments: Vec<String> = vec![verb.to_owned()];
        if self.runtime == Runtime::Podwire {
            arguments.extend([network.to_owned(), container.path.clone()]);
            arguments.extend(["--cap-args".to_owned(), capabilities.to_string()]);
            arguments.extend(["--output".to_owned(), "json".to_owned()]);
        } else {
            arguments.extend(["--network".to_owned(), network.to_owned()]);
            arguments.extend(["--netns".to_owned(), container.path.clone()]);
            arguments.extend(["--capability-args".to_owned(), capabilities.to_string()]);
        }
        arguments.extend(["--container-id".to_owned(), container.id.clone()]);
        arguments.extend(["--ifname".to_owned(), ifname.to_owned()]);
        self.bare(&arguments)
    }

    /// Any other command line, the directories added.
    pub(super) fn bare(&self, arguments: &[String]) -> Call {
        let mut all = arguments.to_vec();
        for (option, directory) in [
            ("--conf-dir", &self.configurations),
            ("--plugin-dir", &self.plugins),
            ("--cache-dir", &self.cache),
        ] {
            all.extend([option.to_owned(), directory.display().to_string()]);
        }
        let all: Vec<_> = all.iter().map(String::as_str).collect();
        Call::program(&self.program, &all)
    }
}
