//! Names of the protocol as types that hold only valid ones: they become file
//! names, interface names and programs, so none may leave its folder.
//!
//! The rules and messages are those of the Go validators (CNI `pkg/utils`),
//! which in turn follow specification section 1 and the kernel's
//! `dev_valid_name` (net/core/dev.c).

use std::fmt;

use crate::error::{Error, ErrorCode};

macro_rules! name_type {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The name as owned text.
            pub fn into_string(self) -> String {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                Self::parse(text)
            }
        }
    };
}

name_type! {
    /// The runtime's name for a container (`CNI_CONTAINERID`): an ASCII letter
    /// or digit, then letters, digits, `_`, `.` and `-`.
    ContainerId
}

name_type! {
    /// The name of a network, with the letters of a [`ContainerId`].
    NetworkName
}

name_type! {
    /// The name of an interface inside the container (`CNI_IFNAME`), one the
    /// kernel takes: 1 to 15 bytes, no `/`, `:` or white space.
    IfName
}

name_type! {
    /// The `type` of a plugin: the name of its executable, without a path.
    PluginType
}

impl ContainerId {
    /// Takes a container id.
    ///
    /// # Errors
    /// Code 3 if empty, code 4 if it holds other characters.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::new(ErrorCode::UnknownContainer, "missing containerID"));
        }
        if !is_plain_name(text) {
            return Err(Error::environment("invalid characters in containerID").with_details(text));
        }
        Ok(Self(text.to_owned()))
    }
}

impl NetworkName {
    /// Takes a network name.
    ///
    /// # Errors
    /// Code 7 if empty or holding other characters.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::config("missing network name"));
        }
        if !is_plain_name(text) {
            return Err(
                Error::config("invalid characters found in network name").with_details(text)
            );
        }
        Ok(Self(text.to_owned()))
    }
}

/// The longest interface name, in bytes: `IFNAMSIZ` (linux/if.h) less its NUL.
const IFNAME_LIMIT: usize = 15;

impl IfName {
    /// Takes an interface name.
    ///
    /// # Errors
    /// Code 4, saying which rule it breaks.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::environment("interface name is empty"));
        }
        if text.len() > IFNAME_LIMIT {
            return Err(Error::environment("interface name is too long")
                .with_details("interface name should be less than 16 characters"));
        }
        if text == "." || text == ".." {
            return Err(Error::environment("interface name is . or .."));
        }
        if text.contains(|c: char| c == '/' || c == ':' || c == '\0' || c.is_whitespace()) {
            return Err(Error::environment(
                "interface name contains / or : or whitespace characters",
            ));
        }
        // The two below are ours alone. The kernel takes these names, but they
        // don't mean one interface.
        if text.contains(|c: char| c == '%' || c.is_control()) {
            return Err(Error::environment("interface name contains % or control characters")
                .with_details("the kernel replaces %d by a number of its choice"));
        }
        if text == "all" || text == "default" {
            return Err(Error::environment(format!("interface name \"{text}\" is reserved"))
                .with_details(
                    "its folder under /proc/sys/net holds the settings of other interfaces",
                ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl PluginType {
    /// Takes a plugin type.
    ///
    /// # Errors
    /// Code 7 if it is empty or could name a file outside the plugin folders.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::config("no plugin name provided"));
        }
        if text == "." || text == ".." || text.contains(['/', '\\', '\0']) {
            return Err(Error::config(format!("invalid plugin name: {text}"))
                .with_details("the type is the name of an executable, without a path"));
        }
        Ok(Self(text.to_owned()))
    }
}

/// What names one attachment: the same three also name its record on disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttachmentKey {
    /// The network attached to.
    pub network: NetworkName,
    /// The container attached.
    pub container_id: ContainerId,
    /// The interface inside the container.
    pub ifname: IfName,
}

impl fmt::Display for AttachmentKey {
    /// `network/container/interface`; `/` is in none of the three.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{}", self.network, self.container_id, self.ifname)
    }
}

/// `^[a-zA-Z0-9][a-zA-Z0-9_.\-]*$`
fn is_plain_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal<T: fmt::Debug>(parsed: Result<T, Error>) -> (u32, String) {
        let error = parsed.unwrap_err();
        (error.code.number(), error.to_string())
    }

    #[test]
    fn plain_names_keep_to_their_letters() {
        for text in ["a", "0", "A-b_c.9", &"x".repeat(1000)] {
            assert_eq!(ContainerId::parse(text).unwrap().as_str(), text);
            assert_eq!(NetworkName::parse(text).unwrap().as_str(), text);
        }
        for text in ["-a", ".a", "_a", "a/b", "../a", "a b", "a\n", "é", "a\0", "a:b"] {
            assert_eq!(
                refusal(ContainerId::parse(text)),
                (4, format!("invalid characters in containerID; {text}"))
            );
            assert_eq!(
                refusal(NetworkName::parse(text)),
                (7, format!("invalid characters found in network name; {text}"))
            );
        }
        assert_eq!(refusal(ContainerId::parse("")), (3, "missing containerID".into()));
        assert_eq!(refusal(NetworkName::parse("")), (7, "missing network name".into()));
    }

    #[test]
    fn interface_names_are_those_the_kernel_takes() {
        for text in ["e", "eth0", "br.1", "123456789012345", "é", "a-b@c"] {
            assert_eq!(IfName::parse(text).unwrap().as_str(), text);
        }
        assert_eq!(refusal(IfName::parse("")), (4, "interface name is empty".into()));
        assert_eq!(
            refusal(IfName::parse("1234567890123456")),
            (
                4,
                "interface name is too long; interface name should be less than 16 characters"
                    .into()
            )
        );
        for text in [".", ".."] {
            assert_eq!(refusal(IfName::parse(text)), (4, "interface name is . or ..".into()));
        }
        for text in ["a/b", "a:b", "a b", "a\t", "a\u{2003}", "a\0"] {
            assert_eq!(
                refusal(IfName::parse(text)),
                (4, "interface name contains / or : or whitespace characters".into()),
                "{text:?}"
            );
        }
    }

    #[test]
    fn interface_names_that_mean_no_one_interface_are_refused() {
        for text in ["zz%d", "%d", "%", "a\u{1}", "a\u{7f}"] {
            let (code, message) = refusal(IfName::parse(text));
            assert_eq!(code, 4, "{text:?}");
            assert!(message.contains("% or control characters"), "{text:?}: {message}");
        }
        for text in ["all", "default"] {
            let (code, message) = refusal(IfName::parse(text));
            assert_eq!(code, 4, "{text}");
            assert!(message.contains("is reserved"), "{message}");
        }
        for text in ["all0", "defaults", "default0"] {
            assert_eq!(IfName::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn a_plugin_type_stays_in_its_folder() {
        assert_eq!(PluginType::parse("host-local").unwrap().as_str(), "host-local");
        for text in ["../x", "/bin/sh", "a/b", "..", "."] {
            assert_eq!(
                PluginType::parse(text).unwrap_err().msg,
                format!("invalid plugin name: {text}")
            );
        }
        assert_eq!(refusal(PluginType::parse("")), (7, "no plugin name provided".into()));
    }
}
