//! What lies in a plugin directory, and what would become of it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use podwire_plugin::aside;
use podwire_spec::Error;
use podwire_sys::file::open_plain;

use crate::place::{Place, identity, target};
use crate::program::Program;
use crate::source::Source;

/// Where the Go project's DHCP daemon listens.
const DHCP_SOCKET: &str = "/run/cni/dhcp.sock";

/// What an operator wants to be otherwise.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// Names to be left as they are.
    pub except: BTreeSet<String>,
}

/// What is done with one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The Go plugin is kept aside, and ours takes its place.
    Replace,
    /// Ours is put where there is none.
    Add,
    /// Another build of ours gives way.
    Renew,
    /// Ours is there already.
    Nothing,
    /// It is left as it is.
    Leave {
        /// Why.
        reason: String,
    },
    /// Nobody can tell what it is, so nothing at all is done.
    Refuse {
        /// Why.
        reason: String,
    },
}

impl Step {
    /// The word for it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Replace => "replace",
            Self::Add => "add",
            Self::Renew => "renew",
            Self::Nothing => "nothing",
            Self::Leave { .. } => "leave",
            Self::Refuse { .. } => "refuse",
        }
    }

    /// Why it is so, where that needs a reason.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Leave { reason } | Self::Refuse { reason } => Some(reason),
            _ => None,
        }
    }
}

/// One name of a plugin of ours.
#[derive(Debug, Clone)]
pub struct PluginFile {
    /// The plugin's name.
    pub name: String,
    /// What has that name.
    pub program: Program,
    /// What is kept aside under it.
    pub original: Option<Program>,
    /// Whether a roll-back isn't finished for it: what it says of itself is the
    /// original's word.
    pub forwards: bool,
    /// What would be done.
    pub step: Step,
}

/// A plugin directory as it is.
#[derive(Debug, Clone)]
pub struct Survey {
    /// The directory, links followed.
    pub directory: PathBuf,
    /// The names of our plugins.
    pub files: Vec<PluginFile>,
    /// Other files, which are nobody's business here.
    pub others: Vec<String>,
}

impl Survey {
    /// The names that keep everything from being done.
    pub fn refusals(&self) -> impl Iterator<Item = &PluginFile> {
        self.files.iter().filter(|file| matches!(file.step, Step::Refuse { .. }))
    }

    /// Whether anything would change.
    pub fn is_settled(&self) -> bool {
        self.files.iter().all(|file| matches!(file.step, Step::Nothing | Step::Leave { .. }))
    }
}

/// Looks at a directory; changes nothing.
///
/// # Errors
/// It can't be listed.
pub fn survey(directory: &Path, source: &Source, wishes: &Wishes) -> Result<Survey, Error> {
    of_place(&Place::open(directory)?, source, wishes)
}

pub(crate) fn of_place(place: &Place, source: &Source, wishes: &Wishes) -> Result<Survey, Error> {
    let installed = place.name(aside::PROGRAM);
    if fs::symlink_metadata(&installed).is_ok_and(|found| !found.is_file() && !found.is_symlink()) {
        let text = format!("{} is no file", installed.display());
        return Err(
            Error::environment(text).with_details("Podwire's program goes there: take it away")
        );
    }
    let is_current = same_content(&installed, &source.path);
    let kept = place.kept()?;
    let mut files = Vec::new();
    for name in &source.plugins {
        let path = place.name(name);
        let forwards = target(&path).is_some() && target(&path) == target(&place.forwarder());
        let program = Program::ask(&path, name);
        let is_ours = is_current && identity(&path) == identity(&installed);
        let original = kept.contains(name).then(|| Program::ask(&place.original(name), name));
        let step = if wishes.except.contains(name) {
            Step::Leave { reason: "as you wish".to_owned() }
        } else {
            step(name, &program, forwards, is_ours)
        };
        files.push(PluginFile { name: name.clone(), program, original, forwards, step });
    }
    let is_other = |name: &String| !source.plugins.contains(name) && name != aside::PROGRAM;
    let others = place.names()?.into_iter().filter(is_other).collect();
    let directory = place.name("").components().collect();
    Ok(Survey { directory, files, others })
}

fn step(name: &str, program: &Program, forwards: bool, is_ours: bool) -> Step {
    match program {
        _ if forwards => Step::Renew,
        Program::Absent => Step::Add,
        Program::Podwire { .. } if is_ours => Step::Nothing,
        Program::Podwire { .. } => Step::Renew,
        Program::Go { .. } if name == "dhcp" && Path::new(DHCP_SOCKET).exists() => Step::Leave {
            reason: format!("a daemon at {DHCP_SOCKET} may hold leases: stop it first"),
        },
        Program::Go { .. } => Step::Replace,
        Program::Foreign { reason } => Step::Refuse { reason: reason.clone() },
    }
}

/// Whether two files hold the same bytes.
pub(crate) fn same_content(one: &Path, two: &Path) -> bool {
    let (Ok(one), Ok(two)) = (open_plain(one), open_plain(two)) else { return false };
    let length = |file: &File| file.metadata().map(|found| found.len());
    if !matches!((length(&one), length(&two)), (Ok(one), Ok(two)) if one == two) {
        return false;
    }
    let (mut one, mut two) = (BufReader::new(one), BufReader::new(two));
    let (mut left, mut right) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let Ok(count) = one.read(&mut left) else { return false };
        let (Some(left), Some(right)) = (left.get(..count), right.get_mut(..count)) else {
            return false;
        };
        if count == 0 {
            return true;
        }
        if two.read_exact(right).is_err() || *left != *right {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_compared_to_the_last_byte() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = directory.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let long = vec![7; 200_000];
        let mut other = long.clone();
        *other.last_mut().unwrap() = 8;
        let (one, two) = (write("one", &long), write("two", &long));
        assert!(same_content(&one, &two));
        assert!(!same_content(&one, &write("other", &other)));
        assert!(!same_content(&one, &write("short", b"7")));
        assert!(!same_content(&one, &directory.path().join("missing")));
        // Nobody ever writes into it.
        let pipe = directory.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        assert!(!same_content(&one, &pipe) && !same_content(&pipe, &pipe));
    }

    #[test]
    fn what_cannot_be_told_is_refused() {
        let foreign = Program::Foreign { reason: "a script".into() };
        assert_eq!(step("ptp", &foreign, false, false), Step::Refuse { reason: "a script".into() });
        assert_eq!(step("ptp", &foreign, true, false), Step::Renew);
        assert_eq!(step("ptp", &Program::Absent, false, false), Step::Add);
        let ours = Program::Podwire { version: "0.1.0".into() };
        assert_eq!(step("ptp", &ours, false, true), Step::Nothing);
        assert_eq!(step("ptp", &ours, false, false), Step::Renew);
    }
}
