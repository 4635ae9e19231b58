//! The environment variables that cnitool reads, so that scripts made for it
//! work unchanged.

use std::ffi::OsString;
use std::path::PathBuf;

/// What the environment says; a flag says it stronger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Environment {
    /// `NETCONFPATH`: where networks are configured.
    pub(crate) configuration_directory: Option<PathBuf>,
    /// `CNI_PATH`: where plugins lie, separated by colons.
    pub(crate) plugin_directories: Vec<PathBuf>,
    /// `CNI_ARGS`.
    pub(crate) args: Option<String>,
    /// `CAP_ARGS`: the capability arguments, a JSON object.
    pub(crate) capability_args: Option<String>,
    /// `CNI_IFNAME`.
    pub(crate) ifname: Option<String>,
}

impl Environment {
    /// Reads the process's variables.
    pub(crate) fn of_process() -> Self {
        Self::from_lookup(|name| std::env::var_os(name))
    }

    /// Takes variables from a lookup. One that is set and empty counts as not
    /// set, as newer cnitools have it; none of these means anything empty.
    pub(crate) fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let value = |name| lookup(name).filter(|value| !value.is_empty());
        // What isn't UTF-8 is refused with its name where it is parsed.
        let text = |name| value(name).map(|value| value.to_string_lossy().into_owned());
        Self {
            configuration_directory: value("NETCONFPATH").map(PathBuf::from),
            plugin_directories: value("CNI_PATH")
                .map(|list| {
                    let entries = std::env::split_paths(&list);
                    entries.filter(|entry| !entry.as_os_str().is_empty()).collect()
                })
                .unwrap_or_default(),
            args: text("CNI_ARGS"),
            capability_args: text("CAP_ARGS"),
            ifname: text("CNI_IFNAME"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_of_cnitool_are_read() {
        let environment = Environment::from_lookup(|name| match name {
            "NETCONFPATH" => Some("/conf".into()),
            "CNI_PATH" => Some("/a::/b:".into()),
            "CNI_ARGS" => Some("A=b".into()),
            "CAP_ARGS" => Some("{}".into()),
            "CNI_IFNAME" => Some("eth1".into()),
            _ => None,
        });
        assert_eq!(environment.configuration_directory, Some("/conf".into()));
        assert_eq!(environment.plugin_directories, [PathBuf::from("/a"), "/b".into()]);
        assert_eq!(environment.ifname.as_deref(), Some("eth1"));
        assert_eq!(environment.args.as_deref(), Some("A=b"));
    }

    #[test]
    fn set_and_empty_is_not_set() {
        assert_eq!(Environment::from_lookup(|_| Some("".into())), Environment::default());
    }
}
