//! The valid attachments of a GC request.

use crate::error::Error;
use crate::json::{Kind, Object, Value, Writer};

/// The key of the specification.
pub(super) const KEY: &str = "cni.dev/valid-attachments";
/// The key that 1.1.0 was first published with (CNI issue 1101); libcni sends
/// both.
pub(super) const FIRST_KEY: &str = "cni.dev/attachments";

/// One attachment that must stay.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValidAttachment {
    /// The container. Not checked: it is only compared.
    pub container_id: String,
    /// The interface inside the container. Not checked either.
    pub ifname: String,
}

/// What a GC request says about the attachments that must stay. A request
/// that doesn't say (key absent) is `Option::None` around this; a plugin must
/// free nothing then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValidAttachments {
    /// `null`: what libcni writes for an empty list, so none must stay.
    Null,
    /// A list, perhaps empty.
    List(Vec<ValidAttachment>),
}

impl ValidAttachments {
    /// The attachments that must stay.
    pub fn as_slice(&self) -> &[ValidAttachment] {
        match self {
            Self::Null => &[],
            Self::List(list) => list,
        }
    }

    /// Whether an attachment must stay.
    pub fn contains(&self, container_id: &str, ifname: &str) -> bool {
        let mut all = self.as_slice().iter();
        all.any(|valid| valid.container_id == container_id && valid.ifname == ifname)
    }

    /// Reads the list of a request; the key of the specification counts before
    /// the one of its first print.
    ///
    /// # Errors
    /// Code 6 for anything but `null` or a list of complete objects: an entry
    /// that can't be read could be one that must stay.
    pub(super) fn from_request(object: &Object<'_>) -> Result<Option<Self>, Error> {
        for key in [KEY, FIRST_KEY] {
            let Some(text) = object.raw(key) else { continue };
            if Kind::of(text) == Kind::Null {
                return Ok(Some(Self::Null));
            }
            let entries = object.array(key)?;
            let list = entries.iter().map(ValidAttachment::from_value).collect::<Result<_, _>>()?;
            return Ok(Some(Self::List(list)));
        }
        Ok(None)
    }
}

impl ValidAttachment {
    fn from_value(value: &Value<'_>) -> Result<Self, Error> {
        let entry = value.object()?;
        let required = |key| {
            let text = entry.text_of(key)?.ok_or_else(|| {
                Error::decode(format!("{}: missing or empty", entry.path_of(key)))
            })?;
            Ok::<_, Error>(text.into_owned())
        };
        Ok(Self { container_id: required("containerID")?, ifname: required("ifname")? })
    }

    /// A list as the request holds it. Never `null`: plugins built on the Go
    /// library can't tell that from nothing.
    pub fn to_json(list: &[Self]) -> String {
        let mut writer = Writer::compact();
        writer.begin_array();
        for entry in list {
            writer.begin_object();
            writer.key("containerID").string(&entry.container_id);
            writer.key("ifname").string(&entry.ifname);
            writer.end_object();
        }
        writer.end_array();
        writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<ValidAttachments>, Error> {
        ValidAttachments::from_request(&Object::parse(text).unwrap())
    }

    #[test]
    fn absent_null_and_empty_are_told_apart() {
        assert_eq!(read("{}").unwrap(), None);
        for key in [KEY, FIRST_KEY] {
            let null = read(&format!("{{\"{key}\":null}}")).unwrap().unwrap();
            assert_eq!(null, ValidAttachments::Null);
            assert!(!null.contains("a", "eth0"));
            let empty = read(&format!("{{\"{key}\":[]}}")).unwrap();
            assert_eq!(empty, Some(ValidAttachments::List(Vec::new())));
        }
    }

    #[test]
    fn the_key_of_the_specification_counts_first() {
        let both = r#"{"cni.dev/attachments":[{"containerID":"b","ifname":"eth0"}],
                       "cni.dev/valid-attachments":[{"containerId":"a","IfName":"eth0"}]}"#;
        let valid = read(both).unwrap().unwrap();
        assert!(valid.contains("a", "eth0"));
        assert!(!valid.contains("b", "eth0") && !valid.contains("a", "eth1"));
        assert_eq!(
            ValidAttachment::to_json(valid.as_slice()),
            r#"[{"containerID":"a","ifname":"eth0"}]"#
        );
    }

    #[test]
    fn an_unreadable_entry_is_refused_rather_than_skipped() {
        for list in [
            "{}",
            "[null]",
            "[{\"containerID\":\"a\"}]",
            "[{\"containerID\":7,\"ifname\":\"e\"}]",
            "\"\"",
        ] {
            let error = read(&format!("{{\"{KEY}\":{list}}}")).unwrap_err();
            assert_eq!(error.code.number(), 6, "{list}");
            assert!(error.msg.starts_with(KEY), "{}", error.msg);
        }
    }
}
