//! Looking a configuration over before it is used (B118): does it load, are
//! its plugins there, do they speak its version, what looks like a slip.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use podwire_spec::json::{Object, Position};
use podwire_spec::lint;
use podwire_spec::version::SpecVersion;

use super::version::PluginVersion;
use crate::error::RuntimeError;
use crate::load::{Directory, Network, Problem};
use crate::runtime::Runtime;

/// The capabilities that runtimes provide (CNI conventions, and what
/// containerd and CRI-O add).
const KNOWN_CAPABILITIES: [&str; 11] = [
    "aliases",
    "bandwidth",
    "cgroupPath",
    "deviceID",
    "dns",
    "infinibandGUID",
    "io.kubernetes.cri.pod-annotations",
    "ipRanges",
    "ips",
    "mac",
    "portMappings",
];

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It will work, but hardly as meant.
    Warning,
    /// It won't work.
    Error,
}

impl Severity {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One thing found in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The file, if the configuration is of one.
    pub file: Option<PathBuf>,
    /// Where in the file, if there is one place.
    pub position: Option<Position>,
    /// The key it is about, as `plugins[1].type`; empty if it is about the
    /// whole.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to do; empty if the message says all.
    pub hint: String,
}

impl fmt::Display for Finding {
    /// One line: `file:line:column: severity: key: message (hint)`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(formatter, "{}", file.display())?;
            if let Some(position) = self.position {
                write!(formatter, ":{}:{}", position.line, position.column)?;
            }
            formatter.write_str(": ")?;
        }
        write!(formatter, "{}: ", self.severity.as_str())?;
        if !self.key.is_empty() {
            write!(formatter, "{}: ", self.key)?;
        }
        formatter.write_str(&self.message.replace('\n', " "))?;
        if self.hint.is_empty() { Ok(()) } else { write!(formatter, " ({})", self.hint) }
    }
}

impl Runtime {
    /// Looks over a configuration file, or all files of a directory.
    ///
    /// # Errors
    /// If the directory can't be listed; all else is a finding.
    pub fn validate(&self, path: &Path) -> Result<Vec<Finding>, RuntimeError> {
        if !path.is_dir() {
            return Ok(match Network::from_file(path) {
                Ok(network) => self.validate_network(&network),
                Err(problem) => {
                    let mut findings = vec![of_problem(problem)];
                    findings.extend(doubts(path));
                    findings
                }
            });
        }
        let directory = Directory::read(path)?;
        let mut findings: Vec<_> = directory.problems.into_iter().map(of_problem).collect();
        let mut by_name: BTreeMap<&str, Vec<&Network>> = BTreeMap::new();
        for network in &directory.networks {
            findings.extend(self.validate_network(network));
            by_name.entry(network.name().as_str()).or_default().push(network);
        }
        for (name, networks) in by_name {
            if let [first, .., last] = networks.as_slice() {
                findings.push(Finding {
                    severity: Severity::Warning,
                    file: last.path().map(Path::to_owned),
                    position: None,
                    key: "name".to_owned(),
                    message: format!("network {name:?} is configured in more than one file"),
                    hint: format!(
                        "also in {}; of equal names .conflist comes before .conf and .json, then \
                         the first file counts",
                        first.path().unwrap_or(Path::new("another")).display()
                    ),
                });
            }
        }
        findings
            .sort_by(|one, other| (&one.file, one.position).cmp(&(&other.file, other.position)));
        Ok(findings)
    }

    /// Looks over a network that loads: its plugins are asked for their
    /// versions, nothing else is run.
    pub fn validate_network(&self, network: &Network) -> Vec<Finding> {
        let mut findings = network.path().map(doubts).unwrap_or_default();
        let list = network.list();
        let finding = |severity, key: String, message: String, hint: String| Finding {
            severity,
            file: network.path().map(Path::to_owned),
            position: None,
            key,
            message,
            hint,
        };
        for version in self.versions(network) {
            let key = format!(
                "plugins[{}].{}",
                version.index,
                if version.is_ipam { "ipam.type" } else { "type" }
            );
            // Some plugins keep the name of their own address management
            // there, which is no program.
            let severity = if version.is_ipam { Severity::Warning } else { Severity::Error };
            match &version.outcome {
                Err(error) => {
                    findings.push(finding(severity, key, error.to_string(), String::new()));
                }
                Ok(info) if !info.supports(list.version) => {
                    let message = format!(
                        "plugin \"{}\" does not support version {}, only {}",
                        version.plugin,
                        list.version,
                        info.supported.join(", ")
                    );
                    findings.push(finding(
                        severity,
                        key,
                        message,
                        best_common(list.candidates(), &version),
                    ));
                }
                Ok(_) => {}
            }
        }
        for (index, plugin) in list.plugins.iter().enumerate() {
            for capability in plugin.capabilities.keys() {
                if !KNOWN_CAPABILITIES.contains(&capability.as_str()) {
                    findings.push(finding(
                        Severity::Warning,
                        format!("plugins[{index}].capabilities.{capability}"),
                        "no runtime is known to provide this capability".to_owned(),
                        format!("known are {}", KNOWN_CAPABILITIES.join(", ")),
                    ));
                }
            }
            let has_ipam = Object::parse(plugin.text())
                .and_then(|object| object.object("ipam"))
                .is_ok_and(|ipam| ipam.is_some_and(|ipam| !ipam.is_empty()));
            if has_ipam && plugin.ipam_type.is_none() {
                findings.push(finding(
                    Severity::Warning,
                    format!("plugins[{index}].ipam.type"),
                    "missing, so nothing assigns addresses".to_owned(),
                    "name an IPAM plugin, as host-local".to_owned(),
                ));
            }
        }
        findings
    }
}

/// A version to write instead: one the list offers, or the plugin's newest.
fn best_common(candidates: &[SpecVersion], version: &PluginVersion) -> String {
    let Ok(info) = &version.outcome else { return String::new() };
    let common = candidates.iter().copied().find(|candidate| info.supports(*candidate));
    match common.or_else(|| info.known().first().copied()) {
        Some(version) => format!("write \"cniVersion\": \"{version}\", or install a newer plugin"),
        None => "install a newer plugin".to_owned(),
    }
}

fn of_problem(problem: Problem) -> Finding {
    Finding {
        severity: Severity::Error,
        file: Some(problem.path),
        position: problem.position,
        key: String::new(),
        message: problem.reason,
        hint: problem.hint,
    }
}

/// What in a file looks like a slip.
fn doubts(path: &Path) -> Vec<Finding> {
    let Ok(bytes) = crate::load::read_file(path) else { return Vec::new() };
    lint::check(&bytes)
        .into_iter()
        .map(|doubt| Finding {
            severity: Severity::Warning,
            file: Some(path.to_owned()),
            position: doubt.position,
            key: doubt.path,
            message: doubt.message,
            hint: doubt.hint,
        })
        .collect()
}
