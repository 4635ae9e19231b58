//! Whose lease it is.

use std::fmt;

use podwire_plugin::OwnerMark;
use podwire_spec::Error;
use podwire_spec::id::{AttachmentKey, ContainerId, IfName, NetworkName};
use serde::{Deserialize, Serialize};

/// The longest client identifier's text: with its type byte, what one option
/// holds.
const LONGEST_CLIENT: usize = 254;

/// One container's interface on one network, as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The network's name.
    pub network: String,
    /// The container's id.
    pub container: String,
    /// The interface's name in the container.
    pub ifname: String,
}

impl Key {
    /// The attachment's mark, which names its files.
    ///
    /// # Errors
    /// When one of the three isn't what the specification allows.
    pub fn mark(&self) -> Result<OwnerMark, Error> {
        let network = NetworkName::parse(&self.network)?;
        ContainerId::parse(&self.container)?;
        IfName::parse(&self.ifname)?;
        Ok(OwnerMark::new(&network, &self.container, &self.ifname))
    }

    /// The client identifier that the Go plugin sends, by which a server gives
    /// the same address to both: a zero byte and the three names.
    pub fn compatible_client(&self) -> Vec<u8> {
        let text = format!("{}/{}/{}", self.container, self.network, self.ifname);
        let mut client = vec![0];
        client.extend(text.bytes().take(LONGEST_CLIENT));
        client
    }

    /// A client identifier of 34 bytes, for servers that take no longer ones:
    /// a zero byte and the attachment's mark.
    ///
    /// # Errors
    /// As [`Key::mark`].
    pub fn short_client(&self) -> Result<Vec<u8>, Error> {
        let mut client = vec![0];
        client.extend(self.mark()?.to_string().bytes());
        Ok(client)
    }
}

impl From<&AttachmentKey> for Key {
    fn from(key: &AttachmentKey) -> Self {
        Self {
            network: key.network.to_string(),
            container: key.container_id.to_string(),
            ifname: key.ifname.to_string(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} of container {} on network {}",
            self.ifname, self.container, self.network
        )
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn key(container: &str) -> Key {
        Key { network: "n1".into(), container: container.into(), ifname: "eth0".into() }
    }

    #[test]
    fn client_identifiers_are_the_go_plugins_or_short() {
        assert_eq!(key("c1").compatible_client(), b"\0c1/n1/eth0");
        let long = key(&"x".repeat(300)).compatible_client();
        assert_eq!(long.len(), 255);
        let short = key("c1").short_client().unwrap();
        assert_eq!(short, b"\x0043d91f8451058a70-f4d01f2ef4b92245");
        assert_ne!(short, key("c2").short_client().unwrap());
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for bad in ["../c1", "", "a/b"] {
            assert!(key(bad).mark().is_err(), "{bad}");
        }
        assert!(key("c1").mark().is_ok());
    }
}
