//! Where a device came from, as far as its alias can't tell.
//!
//! The alias holds the device's old name, and moves with it: that is the record
//! of the Go plugin, and enough to bring the device back. What makes the return
//! exact, and what lets a lost device be told from another one, stands in a file
//! that is written before the device is touched. It need not outlive a boot,
//! since a device doesn't stay in a namespace over one.

use std::io;
use std::path::{Path, PathBuf};

use podwire_netlink::route::{Link, MacAddress};
use podwire_plugin::OwnerMark;
use podwire_spec::error::Error;
use podwire_spec::id::{AttachmentKey, IfName};
use podwire_spec::json::{Object, Writer};
use podwire_sys::file::{
    Durability, create_dir_all, read_bounded, regular_files, remove_abandoned_temporaries,
    write_atomic,
};

/// One file per moved device, named by the owner's mark.
pub const DIRECTORY: &str = "/run/podwire/devices";
/// How the files' names end.
const SUFFIX: &str = ".json";
/// More than a record can have.
const LIMIT: usize = 4096;
/// More than a host has devices.
const FILES: usize = 65_536;

/// A device as it was on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// Its name, the one to return under.
    pub(super) name: String,
    /// Its alias, if an administrator gave it one.
    pub(super) alias: Option<String>,
    /// Its index, which it mostly keeps in the container.
    pub(super) index: u32,
    /// Its MAC address.
    pub(super) mac: Option<MacAddress>,
    /// Its MTU in bytes.
    pub(super) mtu: u32,
    /// Whether it was switched on.
    pub(super) up: bool,
    /// Whether it is hardware, which no namespace takes along when it ends.
    pub(super) physical: bool,
    /// Its name in the container.
    pub(super) ifname: String,
    /// The container's namespace, as the runtime named it.
    pub(super) sandbox: String,
}

impl Record {
    /// The record of a device that is about to be moved.
    pub(super) fn of(link: &Link, key: &AttachmentKey, sandbox: String) -> Self {
        Self {
            name: link.name.clone(),
            alias: link.alias.clone(),
            index: link.index,
            mac: link.mac,
            mtu: link.mtu,
            up: link.is_up(),
            physical: link.kind.is_none(),
            ifname: key.ifname.to_string(),
            sandbox,
        }
    }

    /// Whether a link is the device, given that its alias says so. Its MAC
    /// address may be changed inside (tuning), its index on the way: either is
    /// proof. What takes the place of hardware must be hardware: a container can give
    /// any alias and address to a link that it makes.
    pub(super) fn is_of(&self, link: &Link) -> bool {
        let may_be = !self.physical || link.kind.is_none();
        may_be && (link.index == self.index || (self.mac.is_some() && link.mac == self.mac))
    }

    fn to_json(&self) -> String {
        let mut writer = Writer::pretty();
        writer.begin_object();
        writer.key("name").string(&self.name);
        if let Some(alias) = &self.alias {
            writer.key("alias").string(alias);
        }
        writer.key("index").raw(&self.index.to_string());
        if let Some(mac) = self.mac {
            writer.key("mac").string(&mac.to_string());
        }
        writer.key("mtu").raw(&self.mtu.to_string());
        writer.key("up").boolean(self.up);
        writer.key("physical").boolean(self.physical);
        writer.key("ifname").string(&self.ifname);
        writer.key("sandbox").string(&self.sandbox);
        writer.end_object();
        writer.finish()
    }

    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let object = Object::parse(text)?;
        let wanted = |key: &str| Error::config(format!("{key} is missing"));
        let name = |key: &str| -> Result<String, Error> {
            let name = object.string(key)?.ok_or_else(|| wanted(key))?;
            IfName::parse(&name)?;
            Ok(name.into_owned())
        };
        let number = |key: &str| object.integer::<u32>(key)?.ok_or_else(|| wanted(key));
        Ok(Self {
            name: name("name")?,
            alias: object.string("alias")?.map(Into::into),
            index: number("index")?,
            mac: object.string("mac")?.and_then(|text| text.parse().ok()),
            mtu: number("mtu")?,
            up: object.boolean("up")?.unwrap_or(false),
            physical: object.boolean("physical")?.unwrap_or(false),
            ifname: name("ifname")?,
            sandbox: object.string("sandbox")?.unwrap_or_default().into_owned(),
        })
    }

    /// Keeps it. Where we may not write (rootless), the alias must do.
    ///
    /// # Errors
    /// The disk is full or broken: the device could not come home as it was.
    pub(super) fn write(&self, owner: &OwnerMark) -> Result<(), Error> {
        let path = path_of(owner);
        let outcome = create_dir_all(Path::new(DIRECTORY), 0o700).and_then(|()| {
            write_atomic(&path, self.to_json().as_bytes(), 0o600, Durability::Volatile)
        });
        match outcome {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                log::debug!("no record of device {}: {error}", self.name);
                Ok(())
            }
            Err(error) => Err(Error::io(format!(
                "noting in {} how device {} is on the host: {error}",
                path.display(),
                self.name
            ))),
        }
    }
}

/// The record of an attachment's device. One that can't be understood is as good as
/// none: the alias still tells the name.
///
/// # Errors
/// The disk is broken: another try may still read it, and it must not be removed.
pub(super) fn find(owner: &OwnerMark) -> Result<Option<Record>, Error> {
    let path = path_of(owner);
    let bytes = match read_bounded(&path, LIMIT) {
        Ok(bytes) => bytes,
        Err(error) if error.is_missing() => return Ok(None),
        Err(error)
            if error.errno().is_some() && error.kind() != io::ErrorKind::PermissionDenied =>
        {
            return Err(Error::io(format!("the record of a moved device: {error}")));
        }
        Err(error) => {
            log::warn!("going on without the device's record: {error}");
            return Ok(None);
        }
    };
    let parsed = Record::parse(&String::from_utf8_lossy(&bytes));
    Ok(parsed.map_err(|error| log::warn!("going on without {}: {error}", path.display())).ok())
}

/// The same where one that can't be read says as much as none.
pub(super) fn read(owner: &OwnerMark) -> Option<Record> {
    find(owner).unwrap_or_else(|error| {
        log::warn!("going on without it: {error}");
        None
    })
}

/// Removes half-written records whose writers are no more.
pub(super) fn sweep() {
    if let Err(error) = remove_abandoned_temporaries(Path::new(DIRECTORY)) {
        log::warn!("half-written files stay: {error}");
    }
}

/// Forgets an attachment's device, and what killed writers have left.
pub(super) fn remove(owner: &OwnerMark) {
    sweep();
    let path = path_of(owner);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            log::warn!("{} stays: {error}", path.display());
        }
        _ => {}
    }
}

/// The owners of all records.
pub(super) fn owners() -> Vec<OwnerMark> {
    let names = regular_files(Path::new(DIRECTORY), FILES).unwrap_or_default();
    let mark =
        |name: std::ffi::OsString| OwnerMark::from_comment(name.to_str()?.strip_suffix(SUFFIX)?);
    names.into_iter().filter_map(mark).collect()
}

/// Names of the devices that other owners have.
pub(super) fn names_of_others(owner: &OwnerMark) -> Vec<String> {
    let others = owners().into_iter().filter(|other| other != owner);
    others.filter_map(|other| read(&other)).map(|record| record.name).collect()
}

/// The record of a device of the host that has another name than it had.
pub(super) fn of_stray(link: &Link) -> Option<Record> {
    let old = link.alias.as_ref().filter(|alias| **alias != link.name)?;
    let mut records = owners().into_iter().filter_map(|owner| read(&owner));
    records.find(|record| record.name == *old && record.is_of(link))
}

/// Forgets that others have a device which is on the host.
pub(super) fn remove_others(owner: &OwnerMark, name: &str) {
    for other in owners().iter().filter(|other| *other != owner) {
        if read(other).is_some_and(|record| record.name == name) {
            remove(other);
        }
    }
}

fn path_of(owner: &OwnerMark) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{owner}{SUFFIX}"))
}

#[cfg(test)]
mod tests {
    use podwire_netlink::route::link_kind::LinkKind;
    use podwire_spec::id::{ContainerId, NetworkName};

    use super::*;

    #[test]
    fn a_record_survives_its_file() {
        let record = Record {
            name: "enp1s0".to_owned(),
            alias: Some("uplink \"A\"".to_owned()),
            index: 7,
            mac: Some(MacAddress([2, 0, 0, 0, 0, 9])),
            mtu: 9000,
            up: true,
            physical: true,
            ifname: "net1".to_owned(),
            sandbox: "/run/netns/a".to_owned(),
        };
        assert_eq!(Record::parse(&record.to_json()).unwrap(), record);
        let bare = Record { alias: None, mac: None, up: false, ..record };
        assert_eq!(Record::parse(&bare.to_json()).unwrap(), bare);
    }

    /// What has no kind is hardware to the kernel; see `default_device_exit_net` of
    /// net/core/dev.c.
    #[test]
    fn hardware_is_told_by_having_no_kind() {
        // A link message with nothing but an index.
        let mut message = [0; 16];
        message[4] = 7;
        let hardware = Link { name: "enp1s0".to_owned(), ..Link::decode(&message).unwrap() };
        let virtual_one = Link { kind: Some(LinkKind::Ifb), ..hardware.clone() };
        let key = AttachmentKey {
            network: NetworkName::parse("n").unwrap(),
            container_id: ContainerId::parse("c1").unwrap(),
            ifname: IfName::parse("net1").unwrap(),
        };
        let record = |link: &Link| Record::of(link, &key, String::new());
        assert!(record(&hardware).physical && !record(&virtual_one).physical);
        assert!(record(&hardware).is_of(&hardware));
        assert!(!record(&hardware).is_of(&virtual_one), "in place of hardware");
        assert!(record(&virtual_one).is_of(&virtual_one));
        let moved = Link { index: 9, ..hardware.clone() };
        assert!(!record(&hardware).is_of(&moved), "neither index nor address");
        let mac = Some(MacAddress([2, 0, 0, 0, 0, 9]));
        let [before, after] = [7, 9].map(|index| Link { index, mac, ..hardware.clone() });
        assert!(record(&before).is_of(&after), "the address is proof");
    }

    #[test]
    fn a_broken_record_is_an_error() {
        for text in ["", "{}", "[]", r#"{"name":"../x","index":1,"mtu":1,"ifname":"a"}"#] {
            assert!(Record::parse(text).is_err(), "{text}");
        }
    }
}
