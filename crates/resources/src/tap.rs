//! A TAP device in the container: an interface whose other end is a program, as
//! a virtual machine's.

use podwire_netlink::route::link_change::ChangeLink;
use podwire_netlink::route::link_kind::LinkKind;
use podwire_netlink::route::{Link, MacAddress};
use podwire_plugin::{Attachment, Belongs, Difference, Made, Resource};
use podwire_spec::error::{Error, ErrorCode};
use podwire_sys::PathError;
use podwire_sys::selinux;
use podwire_sys::tun;

use crate::bridge::random_mac;
use crate::child_link::{Claim, Evidence, Refused};
use crate::kernel::{Kernel, refused};

/// The container's TAP device.
pub struct Tap {
    claim: Claim,
    /// The user who may attach to it; root alone if none.
    pub owner: Option<u32>,
    /// The group that may attach to it.
    pub group: Option<u32>,
    /// Several queues.
    pub multi_queue: bool,
    /// Its MTU in bytes; the kernel's 1500 if none.
    pub mtu: Option<u32>,
    /// Its MAC address; random if none.
    pub mac: Option<MacAddress>,
    /// The `SELinux` label of whom may attach to it.
    pub label: Option<String>,
    /// The bridge inside the container that it is a port of.
    pub bridge: Option<String>,
}

impl Tap {
    /// The device of an attachment, everything else left to the kernel.
    pub fn new(attachment: &Attachment, evidence: Evidence) -> Self {
        Self {
            claim: Claim::new(attachment, "tun", evidence),
            owner: None,
            group: None,
            multi_queue: false,
            mtu: None,
            mac: None,
            label: None,
            bridge: None,
        }
    }

    /// Makes the device under a temporary name.
    fn create(&self, kernel: &mut Kernel) -> Result<Link, Error> {
        self.claim.under_temporary_name(kernel, |kernel, name| {
            let tap = tun::Tap {
                name,
                owner: self.owner,
                group: self.group,
                multi_queue: self.multi_queue,
            };
            let made = kernel.in_sandbox(|| match &self.label {
                Some(label) => selinux::run_as(label, || tun::create(&tap)),
                None => Ok(tun::create(&tap)),
            })?;
            Ok(match made {
                Err(error) => Err(Refused::Other(refused_label(&error))),
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) if error.kind() == std::io::ErrorKind::ResourceBusy => {
                    Err(Refused::Taken(refused_tap(&error)))
                }
                Ok(Err(error)) => Err(Refused::Other(refused_tap(&error))),
            })
        })
    }

    /// The bridge that the device is to be a port of.
    fn find_bridge(&self, kernel: &mut Kernel) -> Result<Option<Link>, Error> {
        let Some(name) = &self.bridge else { return Ok(None) };
        let there = kernel.container()?.link_by_name(name).map_err(refused)?;
        match there {
            Some(link) if link.is_bridge() => Ok(Some(link)),
            Some(link) => Err(Error::config(format!(
                "bridge: {name:?} in the container is not a bridge but {}",
                if link.kind.is_none() { "a device" } else { link.kind_name() }
            ))),
            None => Err(Error::config(format!("bridge: there is no {name:?} in the container"))
                .with_details("the bridge is looked for in the container's namespace")),
        }
    }

    /// What the device gets once it has its name.
    fn finish(&self, kernel: &mut Kernel, link: &Link, bridge: Option<&Link>) -> Result<(), Error> {
        let mut change = ChangeLink::new(link.device());
        if let Some(mtu) = self.mtu {
            change = change.mtu(mtu);
        }
        if let Some(bridge) = bridge {
            change = change.master(bridge.index);
        }
        if self.mtu.is_none() && bridge.is_none() {
            return Ok(());
        }
        kernel.container()?.apply(&change).map_err(refused)
    }
}

/// Whether a TAP device could be made.
///
/// # Errors
/// Code 50 that says what is missing.
pub fn available() -> Result<(), Error> {
    tun::available().map_err(|error| Error { code: ErrorCode::Unavailable, ..refused_tap(&error) })
}

fn refused_tap(error: &PathError) -> Error {
    let details = match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
            "load the kernel's module tun, and give the plugin /dev/net/tun"
        }
        std::io::ErrorKind::PermissionDenied => {
            "run as root, or with CAP_NET_ADMIN in the network namespace's user namespace"
        }
        _ => "",
    };
    Error::internal(error.to_string()).with_details(details)
}

fn refused_label(error: &std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::Unsupported {
        return Error::config("selinuxContext: SELinux is off on this host")
            .with_details("remove selinuxContext");
    }
    Error::internal(format!("selinuxContext: taking the label: {error}")).with_details(
        "the policy must allow the plugin's domain process { setcurrent dyntransition } to the \
         label's, and back",
    )
}

impl Resource<Kernel> for Tap {
    fn describe(&self) -> String {
        self.claim.describe()
    }

    fn belongs(&self) -> Belongs {
        Belongs::AttachmentAddress
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        self.claim.refuse_taken(kernel)?;
        let bridge = self.find_bridge(kernel)?;
        let mac = match self.mac {
            Some(mac) => mac,
            None => random_mac()?,
        };
        let link = self.create(kernel)?;
        let link = self.claim.take(kernel, link, Some(mac))?;
        if let Err(error) = self.finish(kernel, &link, bridge.as_ref()) {
            self.claim.remove(kernel)?;
            return Err(error);
        }
        kernel.remember_child(link);
        Ok(Made::Created)
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let mut found = Vec::new();
        let Some(link) = self.claim.check(kernel, &mut found)? else { return Ok(found) };
        let name = self.claim.name_inside();
        let mut compare = |what: &str, wanted: String, actual: String| {
            if wanted != actual {
                found.push(Difference::new(format!("{name}, {what}"), wanted, actual));
            }
        };
        if let Some(LinkKind::Tun(there)) = &link.kind {
            let id = |id: Option<u32>| id.map_or("none".to_owned(), |id| id.to_string());
            let word = |on: bool| if on { "on" } else { "off" }.to_owned();
            compare("kind", "tap".to_owned(), if there.tap { "tap" } else { "tun" }.to_owned());
            compare("owner", id(self.owner), id(there.owner));
            compare("group", id(self.group), id(there.group));
            compare("multiple queues", word(self.multi_queue), word(there.multi_queue));
        }
        if let Some(bridge) = &self.bridge {
            let there = kernel.container()?.link_by_name(bridge).map_err(refused)?;
            if there.is_none_or(|bridge| link.master != Some(bridge.index)) {
                found.push(Difference::missing(format!("{name} as a port of {bridge}")));
            }
        }
        Ok(found)
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        self.claim.remove(kernel)
    }
}
