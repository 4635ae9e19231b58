//! The `CNI_*` variables, read once and validated in the order the reference
//! implementation does, so that the same mistake gets the same message.

use std::ffi::OsString;
use std::path::PathBuf;

use podwire_spec::error::{Error, ErrorCode};
use podwire_spec::id::{ContainerId, IfName};
use podwire_spec::operation::Operation;

/// The variables as text; an absent one is empty.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `CNI_COMMAND`.
    pub command: String,
    /// `CNI_CONTAINERID`.
    pub container_id: String,
    /// `CNI_NETNS`.
    pub netns: String,
    /// `CNI_IFNAME`.
    pub ifname: String,
    /// `CNI_ARGS`.
    pub args: String,
    /// `CNI_PATH`.
    pub path: String,
    /// `CNI_NETNS_OVERRIDE`.
    pub netns_override: String,
}

impl Environment {
    /// Reads the variables with `lookup`, which is `std::env::var_os` in a
    /// plugin and a map in a test.
    ///
    /// # Errors
    /// Code 4 when a value isn't valid UTF-8.
    pub fn read(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let text = |name: &str| -> Result<String, Error> {
            lookup(name).unwrap_or_default().into_string().map_err(|value| {
                Error::environment(format!("{name} is not valid UTF-8: {}", value.display()))
            })
        };
        Ok(Self {
            command: text("CNI_COMMAND")?,
            container_id: text("CNI_CONTAINERID")?,
            netns: text("CNI_NETNS")?,
            ifname: text("CNI_IFNAME")?,
            args: text("CNI_ARGS")?,
            path: text("CNI_PATH")?,
            netns_override: text("CNI_NETNS_OVERRIDE")?,
        })
    }

    /// The directories of `CNI_PATH`. An empty component would mean the
    /// current directory and is skipped.
    pub fn search_path(&self) -> Vec<PathBuf> {
        self.path.split(':').filter(|dir| !dir.is_empty()).map(PathBuf::from).collect()
    }

    /// Checks that what the command needs is there and well-formed. A bad
    /// value is reported before a missing one, as in the reference.
    ///
    /// `CNI_PATH` isn't demanded up front: the specification makes it
    /// optional, and only delegation needs it.
    ///
    /// # Errors
    /// Code 4, with the names of what is missing or the value that is bad.
    pub fn validate(&self) -> Result<(), Error> {
        let attachment = match Operation::parse(&self.command) {
            Some(verb) => verb.concerns_attachment(),
            None => false,
        };
        let needs_netns = matches!(self.command.as_str(), "ADD" | "CHECK");
        let mut missing = Vec::new();
        if self.command.is_empty() {
            missing.push("CNI_COMMAND");
        }
        if attachment {
            match self.container_id.as_str() {
                "" => missing.push("CNI_CONTAINERID"),
                id => drop(ContainerId::parse(id).map_err(named("CNI_CONTAINERID", id))?),
            }
            if needs_netns && self.netns.is_empty() {
                missing.push("CNI_NETNS");
            }
            match self.ifname.as_str() {
                "" => missing.push("CNI_IFNAME"),
                name => drop(IfName::parse(name).map_err(named("CNI_IFNAME", name))?),
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        Err(Error::environment(format!("required env variables [{}] missing", missing.join(","))))
    }

    /// Whether the caller says that acting on our own namespace is intended.
    pub fn overrides_netns(&self) -> bool {
        self.netns_override == "1" || self.netns_override.eq_ignore_ascii_case("true")
    }

    /// `unknown CNI_COMMAND` in the words that libcni looks for.
    pub(crate) fn unknown_command(&self) -> Error {
        Error::new(ErrorCode::InvalidEnvironment, format!("unknown CNI_COMMAND: {}", self.command))
            .with_details("it must be ADD, DEL, CHECK, STATUS, GC or VERSION, in upper case")
    }
}

/// Adds to a refusal which variable it is about, and its value.
fn named<'a>(variable: &'a str, value: &'a str) -> impl FnOnce(Error) -> Error + 'a {
    move |error| {
        let given = format!("{variable} is {value:?}");
        let details = match error.details.as_str() {
            "" => given,
            details => format!("{details}; {given}"),
        };
        error.with_details(details)
    }
}
