//! The file that keeps an interface's original attributes.
//!
//! Path and keys are the Go plugin's. It knows no network, which garbage
//! collection must; so ours has two keys more, which Go's reader passes over: the
//! owner mark, and which namespace the interface was in.

use std::io;
use std::path::{Path, PathBuf};

use podwire_netlink::route::MacAddress;
use podwire_plugin::OwnerMark;
use podwire_spec::error::Error;
use podwire_spec::id::AttachmentKey;
use podwire_spec::json::Object;
use podwire_sys::PathError;
use podwire_sys::file::{self, Durability};
use podwire_sys::netns::Identity;

use super::Attributes;

/// Longer than any such file.
const LIMIT: usize = 16 << 10;

/// The name's end.
pub(super) const SUFFIX: &str = ".json";

/// Where files go that can't be read, below the directory.
const QUARANTINE: &str = "quarantine";

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) attributes: Attributes,
    /// None in one of the Go plugin.
    pub(super) owner: Option<OwnerMark>,
    /// Where the interface was; a namespace's path may be a stranger's later.
    pub(super) sandbox: Option<Identity>,
}

/// The file of one attachment.
pub(super) struct Backup {
    directory: PathBuf,
    path: PathBuf,
}

impl Backup {
    pub(super) fn new(directory: &Path, key: &AttachmentKey) -> Self {
        let name = format!("{}_{}{SUFFIX}", key.container_id, key.ifname);
        Self { directory: directory.to_owned(), path: directory.join(name) }
    }

    pub(super) fn path(&self) -> std::path::Display<'_> {
        self.path.display()
    }

    /// What it holds, if it is there.
    pub(super) fn read(&self) -> Result<Option<Stored>, Error> {
        read(&self.path)
    }

    /// The same; what can't be understood is put where nobody trips over it.
    pub(super) fn read_or_set_aside(&self) -> Result<Option<Stored>, Error> {
        let error = match self.read() {
            Ok(stored) => return Ok(stored),
            Err(error) => error,
        };
        let kept = file::quarantine(&self.path, &self.directory.join(QUARANTINE))
            .map_err(|trouble| Error::io(format!("{error}, and {trouble}")))?;
        log::warn!("nothing is set back: {error}; kept as {}", kept.display());
        Ok(None)
    }

    /// Readable for root alone, in a directory for root alone.
    pub(super) fn write(&self, stored: &Stored) -> Result<(), Error> {
        let text = stored.to_json();
        let write = || {
            if let Some(above) = self.directory.parent() {
                file::create_dir_all(above, 0o755)?;
            }
            file::create_dir_all(&self.directory, 0o700)?;
            file::write_atomic(&self.path, text.as_bytes(), 0o600, Durability::Durable)
        };
        write().map_err(|error| {
            failed(&error).context(format!("keeping the originals as {}", self.path.display()))
        })
    }

    /// Removes it, and what killed writers have left beside it.
    pub(super) fn remove(&self) -> Result<(), Error> {
        sweep(&self.directory);
        remove(&self.path)
    }
}

/// Removes half-written files whose writers are no more.
pub(super) fn sweep(directory: &Path) {
    if let Err(error) = file::remove_abandoned_temporaries(directory) {
        log::warn!("half-written files stay: {error}");
    }
}

/// Removes such a file; one that is gone is fine.
pub(super) fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io(format!("removing {}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

/// Reads such a file.
pub(super) fn read(path: &Path) -> Result<Option<Stored>, Error> {
    let bytes = match file::read_bounded(path, LIMIT) {
        Ok(bytes) => bytes,
        Err(error) if error.is_missing() || error.kind() == io::ErrorKind::InvalidFilename => {
            return Ok(None);
        }
        Err(error) => return Err(failed(&error)),
    };
    let context = |error: Error| error.context(format!("backup {}", path.display()));
    let text = String::from_utf8(bytes).map_err(|_| context(Error::decode("it is not UTF-8")))?;
    Stored::parse(&text).map(Some).map_err(context)
}

fn failed(error: &PathError) -> Error {
    Error::io(error.to_string())
}

impl Stored {
    /// As the Go plugin writes it: one space of indent, keys without a value
    /// left out.
    fn to_json(&self) -> String {
        let Attributes { mac, promiscuous, mtu, all_multicast, transmit_queue_length } =
            &self.attributes;
        let lines = [
            mac.map(|mac| format!("\"mac\": \"{mac}\"")),
            promiscuous.map(|on| format!("\"promisc\": {on}")),
            mtu.map(|mtu| format!("\"mtu\": {mtu}")),
            all_multicast.map(|on| format!("\"allmulti\": {on}")),
            transmit_queue_length.map(|length| format!("\"txQLen\": {length}")),
            self.owner.map(|owner| format!("\"podwire\": \"{owner}\"")),
            self.sandbox.as_ref().map(|sandbox| format!("\"podwireSandbox\": \"{sandbox}\"")),
        ];
        let lines: Vec<_> = lines.into_iter().flatten().map(|line| format!(" {line}")).collect();
        format!("{{\n{}\n}}", lines.join(",\n"))
    }

    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let object = Object::parse(text)?;
        let mac: Option<MacAddress> = object.parsed("mac", "a MAC address")?;
        let owner = object.text_of("podwire")?;
        Ok(Self {
            attributes: Attributes {
                mac,
                promiscuous: object.boolean("promisc")?,
                mtu: object.integer("mtu")?.filter(|mtu| *mtu != 0),
                all_multicast: object.boolean("allmulti")?,
                transmit_queue_length: object.integer("txQLen")?,
            },
            owner: owner.and_then(|text| OwnerMark::from_comment(&text)),
            sandbox: object.text_of("podwireSandbox")?.and_then(|text| text.parse().ok()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_laid_out_as_go_does() {
        let owner = OwnerMark::from_comment("43d91f8451058a70-f4d01f2ef4b92245");
        let attributes = Attributes {
            mac: Some(MacAddress([2, 0, 0, 0, 0, 1])),
            promiscuous: Some(false),
            mtu: Some(1500),
            all_multicast: Some(true),
            transmit_queue_length: Some(0),
        };
        let boot = "00000000-1111-2222-3333-444444444444";
        let sandbox = Some(format!("{boot}:7").parse().unwrap());
        let stored = Stored { attributes, owner, sandbox };
        let text = stored.to_json();
        assert_eq!(
            text,
            "{\n \"mac\": \"02:00:00:00:00:01\",\n \"promisc\": false,\n \"mtu\": 1500,\n \
             \"allmulti\": true,\n \"txQLen\": 0,\n \"podwire\": \
             \"43d91f8451058a70-f4d01f2ef4b92245\",\n \
             \"podwireSandbox\": \"00000000-1111-2222-3333-444444444444:7\"\n}"
        );
        assert_eq!(Stored::parse(&text).unwrap(), stored);
        let go = Stored::parse("{\n \"mtu\": 1500\n}").unwrap();
        let mtu_only = Attributes { mtu: Some(1500), ..Attributes::default() };
        assert_eq!(go, Stored { attributes: mtu_only, owner: None, sandbox: None });
    }

    #[test]
    fn hostile_files_are_refused() {
        for text in ["", "[]", "{\"mtu\":-1}", "{\"mac\":\"x\"}", "{\"promisc\":1}"] {
            assert!(Stored::parse(text).is_err(), "{text}");
        }
    }
}
