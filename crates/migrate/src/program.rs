//! What a file in a plugin directory is, by what it says of itself.
//!
//! Executed without `CNI_COMMAND`, the plugins of the Go project and ours say who
//! they are and which versions they speak, on standard error (skel's about text). One
//! that can't start where this runs is known by what its linker wrote into it.

use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use podwire_sys::process::{ChildSpec, ProcessError, run};

use crate::build_info;

/// How long a program may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(10);
/// More than an about text has, in bytes.
const LIMIT: usize = 4096;
/// A release that nobody wrote down, as the Go plugins word it.
const UNKNOWN: &str = "unknown";

/// What a program is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// There is none.
    Absent,
    /// Ours.
    Podwire {
        /// Its release.
        version: String,
    },
    /// The Go project's plugin of this name.
    Go {
        /// Its release, as `v1.9.1`; `unknown` where who built it left that out.
        version: String,
        /// The newest protocol version that it speaks; empty where it couldn't be asked.
        speaks: String,
    },
    /// Another, or one that doesn't say.
    Foreign {
        /// What it did instead.
        reason: String,
    },
}

impl Program {
    /// Asks the program at a path whether it is the plugin of this name.
    pub fn ask(path: &Path, name: &str) -> Self {
        match std::fs::metadata(path) {
            Err(_) if std::fs::symlink_metadata(path).is_err() => return Self::Absent,
            Err(error) => {
                return Self::Foreign { reason: format!("it can't be followed: {error}") };
            }
            Ok(found) if !found.is_file() => {
                return Self::Foreign { reason: "it is no file".to_owned() };
            }
            Ok(_) => {}
        }
        let mut spec = ChildSpec::new(path);
        spec.inherit_environment = false;
        spec.deadline = Some(PATIENCE);
        (spec.stdout_limit, spec.stderr_limit) = (LIMIT, LIMIT);
        match run(&spec) {
            Ok(outcome) => Self::read(&outcome.stderr.text(), name),
            // The file is there, so what it runs on isn't: its loader.
            Err(ProcessError::Start { source, .. })
                if source.kind() == io::ErrorKind::NotFound
                    && build_info::plugin_at(path).is_some_and(|plugin| plugin == name) =>
            {
                Self::Go { version: UNKNOWN.to_owned(), speaks: String::new() }
            }
            Err(error) => Self::Foreign { reason: format!("it doesn't say what it is: {error}") },
        }
    }

    /// Understands what a program says of itself.
    pub(crate) fn read(about: &str, name: &str) -> Self {
        let mut lines = about.lines();
        let first = lines.next().unwrap_or_default().trim();
        let named = first.strip_prefix("CNI ").and_then(|rest| rest.split_once(" plugin "));
        let Some((plugin, version)) = named else {
            let reason = match first.char_indices().nth(60) {
                _ if first.is_empty() => "it doesn't say what it is".to_owned(),
                Some((end, _)) => format!("it says: {}...", first.get(..end).unwrap_or_default()),
                None => format!("it says: {first}"),
            };
            return Self::Foreign { reason };
        };
        if plugin != name {
            return Self::Foreign { reason: format!("it says that it is the plugin {plugin}") };
        }
        if let Some(version) = lines.clone().find_map(|line| line.strip_prefix("Podwire ")) {
            return Self::Podwire { version: version.trim().to_owned() };
        }
        let versions = lines.find_map(|line| line.strip_prefix("CNI protocol versions supported:"));
        let speaks = versions.and_then(|list| list.rsplit(',').next()).unwrap_or_default().trim();
        let version = version.strip_prefix("version ").unwrap_or(version);
        Self::Go { version: version.to_owned(), speaks: speaks.to_owned() }
    }

    /// The word for programs that read a report.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Podwire { .. } => "podwire",
            Self::Go { .. } => "go",
            Self::Foreign { .. } => "foreign",
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("not there"),
            Self::Podwire { version } => write!(f, "Podwire {version}"),
            Self::Go { version, speaks } => {
                match version.as_str() {
                    UNKNOWN => f.write_str("Go, release not told")?,
                    version => write!(f, "Go {version}")?,
                }
                if speaks.is_empty() { Ok(()) } else { write!(f, ", CNI {speaks}") }
            }
            Self::Foreign { reason } => f.write_str(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn an_about_text_tells_whose_it_is() {
        let go = "CNI bridge plugin v1.9.1\nCNI protocol versions supported: 0.1.0, 1.1.0\n";
        assert_eq!(Program::read(go, "bridge").to_string(), "Go v1.9.1, CNI 1.1.0");
        let debian = "CNI bridge plugin version unknown\nCNI protocol versions supported: 1.0.0\n";
        assert_eq!(Program::read(debian, "bridge").to_string(), "Go, release not told, CNI 1.0.0");
        let ours = "CNI bridge plugin v1.9.1\nPodwire 0.1.0\nCNI protocol versions supported: 1\n";
        assert_eq!(Program::read(ours, "bridge"), Program::Podwire { version: "0.1.0".into() });
        for (about, wanted) in [
            ("", "doesn't say"),
            ("usage: bridge [options]\n", "usage"),
            (go, "the plugin bridge"),
            (&"é".repeat(500), "..."),
        ] {
            let program = Program::read(about, "ptp");
            assert_eq!(program.as_str(), "foreign");
            assert!(program.to_string().contains(wanted), "{program}");
        }
    }

    #[test]
    fn what_is_no_program_is_foreign_or_absent() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::os::unix::fs::symlink("nowhere", path("dangling")).unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        std::fs::write(path("text"), "plain").unwrap();
        std::fs::write(path("script"), "#!/bin/sh\necho CNI script plugin v7 >&2\n").unwrap();
        std::fs::set_permissions(path("script"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let ask = |name: &str| Program::ask(&path(name), name);
        assert_eq!(ask("missing"), Program::Absent);
        for name in ["dangling", "folder", "text"] {
            assert_eq!(ask(name).as_str(), "foreign", "{name}");
        }
        assert_eq!(ask("script"), Program::Go { version: "v7".into(), speaks: String::new() });
    }

    #[test]
    fn a_go_plugin_without_its_loader_is_known_all_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let package = |name: &str, package: &str| {
            let path = directory.path().join(name);
            let mut bytes = b"#!/there/is/no/such/loader\n\xff Go buildinf:\x08\x02".to_vec();
            bytes.extend(format!("path\tgithub.com/containernetworking/{package}\n").bytes());
            std::fs::write(&path, bytes).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            Program::ask(&path, name)
        };
        let known = package("bridge", "plugins/plugins/main/bridge");
        assert_eq!(known, Program::Go { version: "unknown".into(), speaks: String::new() });
        assert_eq!(known.to_string(), "Go, release not told");
        for (name, other) in [("ptp", "plugins/plugins/main/bridge"), ("vlan", "cni/cnitool")] {
            assert_eq!(package(name, other).as_str(), "foreign", "{name}");
        }
    }
}
