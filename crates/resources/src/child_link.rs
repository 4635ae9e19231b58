//! An interface of the container that is a child of another one, or stands
//! alone: macvlan, ipvlan, VLAN, dummy.
//!
//! It is made in the container's namespace under a temporary name, since the
//! kernel looks for the final one among the host's links too, and then gets its
//! name and its owner's mark in one request: see [`Claim`].
//!
//! Nothing of it is on the host, and it goes with the container's namespace or
//! with its parent: garbage collection has nothing to do.

mod claim;
mod explain;
mod parent;

use podwire_netlink::route::link_kind::{IpvlanIsolation, IpvlanMode, LinkKind, MacvlanMode};
use podwire_netlink::route::link_new::{End, NewKind, NewLink};
use podwire_netlink::route::{Link, MacAddress};
use podwire_plugin::{Attachment, Belongs, Difference, Made, Resource};
use podwire_spec::error::{Error, ErrorCode};
use std::os::fd::AsFd;

use crate::bridge::random_mac;
use crate::kernel::{Kernel, refused};

pub use claim::{Claim, Evidence, Refused};
pub use parent::{Parent, ParentName, Place};

/// What is made, with the settings of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildKind {
    /// A MAC address of its own on the parent.
    Macvlan {
        /// How siblings reach each other.
        mode: MacvlanMode,
        /// Room for broadcast packets; the kernel's 1000 if none.
        broadcast_queue_length: Option<u32>,
    },
    /// IP addresses of its own on the parent, whose MAC address it shares.
    Ipvlan {
        /// The layer that decides where packets go; one for all children of a
        /// parent.
        mode: IpvlanMode,
        /// How siblings reach each other; one for all children of a parent.
        isolation: IpvlanIsolation,
    },
    /// A VLAN of the parent, tagged by 802.1Q.
    Vlan {
        /// The VLAN, 0 to 4094.
        id: u16,
    },
    /// Drops what is sent through it. Has no parent.
    Dummy,
}

impl ChildKind {
    /// The kernel's name for the kind.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Macvlan { .. } => "macvlan",
            Self::Ipvlan { .. } => "ipvlan",
            Self::Vlan { .. } => "vlan",
            Self::Dummy => "dummy",
        }
    }

    fn new_kind(self) -> NewKind<'static> {
        match self {
            Self::Macvlan { mode, broadcast_queue_length } => {
                NewKind::Macvlan { mode, broadcast_queue_length }
            }
            Self::Ipvlan { mode, isolation } => NewKind::Ipvlan { mode, isolation },
            Self::Vlan { id } => NewKind::Vlan { id, protocol: <_>::default() },
            Self::Dummy => NewKind::Dummy,
        }
    }

    /// Whether it has a MAC address that is neither its parent's nor asked for.
    const fn has_own_mac(self) -> bool {
        match self {
            Self::Macvlan { mode, .. } => !matches!(mode, MacvlanMode::Passthru),
            Self::Dummy => true,
            Self::Ipvlan { .. } | Self::Vlan { .. } => false,
        }
    }

    /// Whether the kernel holds its MTU to the parent's.
    const fn is_bounded_by_parent(self) -> bool {
        matches!(self, Self::Macvlan { .. } | Self::Vlan { .. })
    }
}

/// The container's interface.
pub struct ChildLink {
    /// Whose it is, and how that is known.
    pub claim: Claim,
    /// What it is.
    pub kind: ChildKind,
    /// What it hangs on; none for a dummy.
    pub parent: Option<Parent>,
    /// Its MTU in bytes; the parent's if none.
    pub mtu: Option<u32>,
    /// Its MAC address; the kind's own way if none.
    pub mac: Option<MacAddress>,
}

impl ChildLink {
    /// The interface of an attachment, everything else left to the kernel.
    pub fn new(attachment: &Attachment, kind: ChildKind, evidence: Evidence) -> Self {
        let claim = Claim::new(attachment, kind.name(), evidence);
        Self { claim, kind, parent: None, mtu: None, mac: None }
    }

    fn create(&self, kernel: &mut Kernel, parent: Option<&Link>) -> Result<Link, Error> {
        let mac = match self.mac {
            None if self.kind.has_own_mac() => Some(random_mac()?),
            mac => mac,
        };
        let place = self.parent.as_ref().map_or(Place::Container, |parent| parent.place);
        self.claim.under_temporary_name(kernel, |kernel, name| {
            let mut end = End::new(name);
            if let Some(mac) = mac {
                end = end.mac(mac);
            }
            if let Some(mtu) = self.mtu {
                end = end.mtu(mtu);
            }
            let new = |end| {
                let new = NewLink::new(end, self.kind.new_kind());
                parent.map_or(new.clone(), |parent| new.parent(parent.index))
            };
            match place {
                Place::Host => {
                    let (socket, sandbox) = kernel.host_and_sandbox()?;
                    Ok(socket.apply(&new(end.namespace(sandbox.as_fd()))))
                }
                Place::Container => Ok(kernel.container()?.apply(&new(end))),
            }
            .map(|made| made.map_err(|error| self.explain(error, parent)))
        })
    }

    fn explain(&self, error: podwire_netlink::Error, parent: Option<&Link>) -> claim::Refused {
        explain::explain(self.kind, error, parent)
    }

    /// What the kernel would refuse with less of an explanation.
    fn validate(&self, parent: &Link) -> Result<(), Error> {
        if let Some(mtu) = self.mtu.filter(|mtu| *mtu > parent.mtu)
            && self.kind.is_bounded_by_parent()
        {
            return Err(Error::config(format!(
                "invalid MTU {mtu}, must be [0, master MTU({})]",
                parent.mtu
            ))
            .with_details(format!("set mtu to at most that of {}, or leave it out", parent.name)));
        }
        if matches!(self.kind, ChildKind::Vlan { .. }) && !parent.is_up() {
            return Err(Error::internal(format!(
                "master {} is down: a VLAN of it can't be switched on",
                parent.name
            ))
            .with_details(format!("ip link set {} up", parent.name)));
        }
        Ok(())
    }
}

/// Whether an ADD could be served: the kernel has the kind, and the parent is
/// there, as far as that can be known before there is a container.
///
/// # Errors
/// Code 50 that says what is missing.
pub fn could_serve(
    kernel: &mut Kernel,
    kind: ChildKind,
    parent: Option<&Parent>,
) -> Result<(), Error> {
    let unavailable = |error| Error { code: ErrorCode::Unavailable, ..error };
    supported(kernel, kind).map_err(unavailable)?;
    match parent {
        Some(parent) if parent.place == Place::Host => {
            parent.find(kernel).map(drop).map_err(unavailable)
        }
        _ => Ok(()),
    }
}

/// Asks for a link that no kernel makes, with a group's MAC address and no
/// parent: the refusal tells whether the kind is known.
fn supported(kernel: &mut Kernel, kind: ChildKind) -> Result<(), Error> {
    const NAME: &str = "podwire-probe";
    const GROUP: MacAddress = MacAddress([1, 0, 0, 0, 0, 0]);
    match kernel.host()?.apply(&NewLink::new(End::new(NAME).mac(GROUP), kind.new_kind())) {
        Err(error) if error.is_unsupported() => Err(explain::unsupported(kind, &error)),
        Err(error) if error.is_permission() => Err(refused(error)),
        Err(_) => Ok(()),
        Ok(()) => {
            let made = kernel.host_link(NAME)?;
            crate::kernel::delete(kernel, &made)
        }
    }
}

impl Resource<Kernel> for ChildLink {
    fn describe(&self) -> String {
        self.claim.describe()
    }

    fn belongs(&self) -> Belongs {
        Belongs::AttachmentAddress
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        self.claim.refuse_taken(kernel)?;
        let parent = self.parent.as_ref().map(|parent| parent.find(kernel)).transpose()?;
        if let Some(parent) = &parent {
            self.validate(parent)?;
        }
        let link = self.create(kernel, parent.as_ref())?;
        // A passthru macvlan is born with its parent's address, whatever is
        // asked for; the kernel gives the parent its own back at the end.
        let mac = self.mac.filter(|mac| link.mac != Some(*mac));
        let link = self.claim.take(kernel, link, mac)?;
        kernel.remember_child(link);
        Ok(Made::Created)
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let mut found = Vec::new();
        let Some(link) = self.claim.check(kernel, &mut found)? else { return Ok(found) };
        self.compare_kind(&link, &mut found);
        // Where the version has no field for it, tuning may have changed it.
        if let Some(mtu) = self.mtu.filter(|mtu| *mtu != link.mtu)
            && matches!(self.kind, ChildKind::Vlan { .. })
            && self.claim.evidence.mtu().is_none()
        {
            let name = format!("{}, MTU", self.claim.name_inside());
            found.push(Difference::new(name, mtu.to_string(), link.mtu.to_string()));
        }
        if let Some(parent) = &self.parent {
            parent.compare(kernel, &self.claim, &link, &mut found)?;
        }
        Ok(found)
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        self.claim.remove(kernel)
    }
}

impl ChildLink {
    fn compare_kind(&self, link: &Link, found: &mut Vec<Difference>) {
        let name = self.claim.name_inside();
        let mut compare = |what: &str, wanted: String, actual: String| {
            if wanted != actual {
                found.push(Difference::new(format!("{name}, {what}"), wanted, actual));
            }
        };
        match (&self.kind, &link.kind) {
            (
                ChildKind::Macvlan { mode, broadcast_queue_length },
                Some(LinkKind::Macvlan { mode: there, broadcast_queue_length: length }),
            ) => {
                let word = |mode| format!("{mode:?}").to_lowercase();
                compare("macvlan mode", word(*mode), word(*there));
                if let (Some(wanted), Some(actual)) = (broadcast_queue_length, length) {
                    compare("broadcast queue length", wanted.to_string(), actual.to_string());
                }
            }
            (
                ChildKind::Ipvlan { mode, isolation },
                Some(LinkKind::Ipvlan { mode: there, isolation: actual }),
            ) => {
                let word = |mode| format!("{mode:?}").to_lowercase();
                compare("ipvlan mode", word(*mode), word(*there));
                let word = |isolation| format!("{isolation:?}").to_lowercase();
                compare("ipvlan flag", word(*isolation), word(*actual));
            }
            (ChildKind::Vlan { id }, Some(LinkKind::Vlan { id: there, .. })) => {
                compare("VLAN", id.to_string(), there.to_string());
            }
            _ => {}
        }
    }
}
