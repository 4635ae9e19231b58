//! What a caller asks to have attached: names already validated, so that no
//! operation starts with one that can't be right.

use std::path::PathBuf;

use podwire_spec::error::Error;
use podwire_spec::id::{AttachmentKey, ContainerId, IfName, NetworkName};
use podwire_spec::request::CapabilityArguments;

/// One interface of one container, as the caller of the runtime names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The container.
    pub container_id: ContainerId,
    /// The interface inside it.
    pub ifname: IfName,
    /// Path of the container's network namespace. For ADD and CHECK it must
    /// be there. For DEL, `None` means the recorded one, and an empty path
    /// that the caller knows it to be gone.
    pub netns: Option<PathBuf>,
    /// `CNI_ARGS`, in order. Neither part may hold `;`, nor the key `=`:
    /// the protocol has no escaping.
    pub args: Vec<(String, String)>,
    /// The capability arguments: each plugin gets those it declares.
    pub capability_args: CapabilityArguments,
}

impl Attachment {
    /// An attachment without arguments.
    pub fn new(container_id: ContainerId, ifname: IfName) -> Self {
        Self {
            container_id,
            ifname,
            netns: None,
            args: Vec::new(),
            capability_args: CapabilityArguments::default(),
        }
    }

    /// The same, in this namespace.
    #[must_use]
    pub fn with_netns(mut self, netns: impl Into<PathBuf>) -> Self {
        self.netns = Some(netns.into());
        self
    }

    /// What names it within the store.
    pub fn key(&self, network: &NetworkName) -> AttachmentKey {
        AttachmentKey {
            network: network.clone(),
            container_id: self.container_id.clone(),
            ifname: self.ifname.clone(),
        }
    }

    /// Refuses arguments that could not reach a plugin as they are.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        for (key, value) in &self.args {
            if key.is_empty() || key.contains(['=', ';', '\0']) || value.contains([';', '\0']) {
                return Err(Error::environment(format!(
                    "CNI_ARGS pair {key:?}={value:?} can't be written: the key must not be empty \
                     nor hold '=' or ';', the value must not hold ';'"
                )));
            }
        }
        if let Some(netns) = &self.netns
            && netns.to_str().is_none_or(|path| path.contains('\0'))
        {
            return Err(Error::environment(format!(
                "namespace path {}: not UTF-8, or with a NUL byte; it can't be put into a result",
                netns.display()
            )));
        }
        Ok(())
    }

    /// The value of `CNI_ARGS`.
    pub(crate) fn args_text(&self) -> String {
        let mut text = String::new();
        for (key, value) in &self.args {
            if !text.is_empty() {
                text.push(';');
            }
            text.push_str(key);
            text.push('=');
            text.push_str(value);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attachment() -> Attachment {
        Attachment::new(ContainerId::parse("c1").unwrap(), IfName::parse("eth0").unwrap())
    }

    #[test]
    fn args_keep_their_order_and_values_may_hold_equal_signs() {
        let mut attachment = attachment();
        attachment.args = vec![("B".into(), "x=y".into()), ("A".into(), String::new())];
        attachment.validate().unwrap();
        assert_eq!(attachment.args_text(), "B=x=y;A=");
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        for (key, value) in [("", "x"), ("a=b", "x"), ("a;b", "x"), ("a", "x;y"), ("a", "\0")] {
            let mut attachment = attachment();
            attachment.args = vec![(key.into(), value.into())];
            assert!(attachment.validate().is_err(), "{key:?} {value:?}");
        }
        let mut attachment = attachment();
        attachment.netns = Some("/run/\0".into());
        assert!(attachment.validate().unwrap_err().msg.contains("NUL"));
    }
}
