//! The container's interface: found, looked at, and found again later, with the
//! proof that it has gone.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use podwire_netlink::route::RouteSocket;
use podwire_netlink::route::bridge::{PortVlan, VlanFlags};
use podwire_netlink::route::link::Link;
use podwire_netlink::route::link_change::ChangeLink;
use podwire_netlink::route::link_kind::LinkKind;
use podwire_netlink::route::routes::RouteKind;
use podwire_spec::Error;
use podwire_sys::netns::{NetNs, OpenError};

use super::guest_port::GuestPort;
use super::poll::now;
use crate::record::{Device, HostSide, Place, Record};

/// The machine's first process namespace (`PROC_PID_INIT_INO`,
/// `include/linux/proc_ns.h`).
const INITIAL_PROCESSES: &str = "pid:[4026531836]";

/// The daemon's own place in the machine.
#[derive(Debug)]
pub(super) struct Host {
    /// The daemon's namespace, to come back to.
    pub(super) home: NetNs,
    /// The host's configuration.
    pub(super) routes: RouteSocket,
    /// What goes in front of namespaces' paths.
    pub(super) prefix: String,
    /// This boot.
    pub(super) boot: String,
    /// The way into a bridge.
    pub(super) guest_port: GuestPort,
}

/// An interface that was found for a new lease.
#[derive(Debug)]
pub(super) struct Inspected {
    pub(super) place: Place,
    pub(super) hardware: [u8; 6],
    pub(super) host: Option<HostSide>,
    /// Whether answers to its hardware address may go to a sibling.
    pub(super) shares_hardware: bool,
}

/// Where a lease's interface is now.
#[derive(Debug)]
pub(super) enum Whereabouts {
    /// There.
    There {
        /// Its namespace.
        netns: NetNs,
        /// Its name, which may have changed.
        name: String,
    },
    /// Gone for good: its address is in use no more.
    Gone,
    /// Nobody can tell.
    Unknown {
        /// Why.
        why: String,
    },
}

impl Host {
    /// Runs `work` in a namespace.
    pub(super) fn inside<T>(&self, netns: &NetNs, work: impl FnOnce() -> T) -> std::io::Result<T> {
        netns.run_from(&self.home, work)
    }

    fn path(&self, netns: &str) -> PathBuf {
        PathBuf::from(format!("{}{netns}", self.prefix))
    }

    /// Finds the interface for a new lease and puts it up.
    ///
    /// # Errors
    /// What is missing, as a CNI error.
    pub(super) fn inspect(&mut self, netns: &str, ifname: &str) -> Result<Inspected, Error> {
        let path = self.path(netns);
        let namespace = NetNs::open(&path).map_err(|error| {
            Error::namespace(format!("the DHCP daemon can't enter: {error}")).with_details(
                "the daemon must see the namespace under the same path as the plugin; see its \
                 flag -hostprefix",
            )
        })?;
        let failed = |error: &dyn std::fmt::Display| {
            Error::internal(format!("interface {ifname} in {}: {error}", path.display()))
        };
        let link = self
            .inside(&namespace, || -> Result<Option<Link>, podwire_netlink::Error> {
                let mut socket = RouteSocket::open()?;
                let link = socket.link_by_name(ifname)?;
                if let Some(link) = link.as_ref().filter(|link| !link.is_up()) {
                    socket.apply(&ChangeLink::new(link.device()).up())?;
                }
                Ok(link)
            })
            .map_err(|error| failed(&error))?
            .map_err(|error| failed(&error))?
            .ok_or_else(|| failed(&"it doesn't exist"))?;
        let Some(mac) = link.mac else {
            return Err(failed(&"it has no hardware address, and DHCP needs one"));
        };
        let inode = rustix::fs::fstat(&namespace).map_err(|error| failed(&error))?.st_ino;
        Ok(Inspected {
            place: Place {
                netns: netns.to_owned(),
                cookie: namespace.cookie(),
                inode,
                boot: self.boot.clone(),
                index: link.index,
            },
            hardware: mac.0,
            host: self.host_side(&link),
            shares_hardware: matches!(link.kind, Some(LinkKind::Ipvlan { .. })),
        })
    }

    /// The way to the interface's segment that stays when it has gone.
    fn host_side(&mut self, link: &Link) -> Option<HostSide> {
        // Without a namespace number the parent is beside it, in the container.
        link.parent_namespace?;
        let parent = self.routes.link_by_index(link.parent?).ok()??;
        let device = |link: &Link| Device { index: link.index, name: link.name.clone() };
        match link.kind.as_ref()? {
            LinkKind::Veth => {
                // The index may be one of a third namespace: only a pair whose
                // ends name each other counts.
                if !parent.is_veth() || parent.parent != Some(link.index) {
                    return None;
                }
                let segment = match parent.master {
                    Some(master) => self.routes.link_by_index(master).ok()??,
                    None => parent.clone(),
                };
                let port_vlan = self.port_vlan(&segment, parent.index);
                Some(HostSide {
                    device: device(&segment),
                    vlan: None,
                    port_vlan,
                    other_end: Some(device(&parent)),
                })
            }
            LinkKind::Vlan { id, .. } => Some(HostSide {
                device: device(&parent),
                vlan: Some(*id),
                port_vlan: None,
                other_end: None,
            }),
            LinkKind::Macvlan { .. } | LinkKind::Ipvlan { .. } => Some(HostSide {
                device: device(&parent),
                vlan: None,
                port_vlan: None,
                other_end: None,
            }),
            _ => None,
        }
    }

    /// The VLAN of untagged frames from a port of a bridge that heeds VLANs.
    fn port_vlan(&mut self, bridge: &Link, port: u32) -> Option<u16> {
        match &bridge.kind {
            Some(LinkKind::Bridge(settings)) if settings.vlan_filtering == Some(true) => {}
            _ => return None,
        }
        let vlans = self.routes.port_vlans().ok()?;
        let own = |vlan: &&PortVlan| vlan.port == port && vlan.flags.contains(VlanFlags::PVID);
        vlans.iter().find(own).map(|vlan| vlan.id)
    }

    /// Finds a lease's interface again.
    pub(super) fn find(&mut self, record: &Record) -> Whereabouts {
        let place = &record.place;
        if place.boot != self.boot {
            return Whereabouts::Gone;
        }
        let netns = match NetNs::open(self.path(&place.netns)) {
            Ok(netns) => netns,
            Err(OpenError::Io { path, source }) => {
                return Whereabouts::Unknown { why: format!("{}: {source}", path.display()) };
            }
            Err(_) => return self.without_namespace(record),
        };
        let same = match (place.cookie, netns.cookie()) {
            (Some(then), Some(now)) => then == now,
            _ => rustix::fs::fstat(&netns).is_ok_and(|stat| stat.st_ino == place.inode),
        };
        if !same {
            return self.without_namespace(record);
        }
        let found = self.inside(&netns, || RouteSocket::open()?.link_by_index(place.index));
        match found {
            Ok(Ok(Some(link))) => Whereabouts::There { netns, name: link.name },
            Ok(Ok(None)) => Whereabouts::Gone,
            Ok(Err(error)) => Whereabouts::Unknown { why: error.to_string() },
            Err(error) => Whereabouts::Unknown { why: error.to_string() },
        }
    }

    /// Nothing, or another namespace, is at the path. That proves nothing: the
    /// interface may live on in a namespace that a process is still in.
    fn without_namespace(&mut self, record: &Record) -> Whereabouts {
        let lives = |why: &str| Whereabouts::Unknown {
            why: format!("{} is another namespace or none, and {why}", record.place.netns),
        };
        let other_end = record.host.as_ref().and_then(|host| host.other_end.as_ref());
        match other_end {
            Some(end) => match self.routes.link_by_index(end.index) {
                Ok(Some(link)) if link.is_veth() && link.parent == Some(record.place.index) => {
                    lives("the host's end of the pair is still there")
                }
                Ok(_) => Whereabouts::Gone,
                Err(error) => Whereabouts::Unknown { why: error.to_string() },
            },
            None if self.is_inhabited(record.place.inode) => {
                lives("a process is still in the old one")
            }
            None => Whereabouts::Gone,
        }
    }

    /// Sends a frame into a bridge as if from a port of it.
    ///
    /// # Errors
    /// When the kernel makes no such port.
    pub(super) fn send_as_port(
        &mut self,
        bridge: u32,
        vlan: Option<u16>,
        frame: &[u8],
    ) -> Result<(), String> {
        self.guest_port.send(&mut self.routes, bridge, vlan, frame, now())
    }

    /// Whether an address is one of the host's own.
    pub(super) fn has_address(&mut self, address: Ipv4Addr) -> bool {
        let route = self.routes.route_to(IpAddr::V4(address));
        matches!(route, Ok(Some(route)) if route.kind == RouteKind::LOCAL)
    }

    /// Whether a process is in the namespace of an inode, or whether that can't
    /// be told: in a process namespace of its own the daemon sees its own kind
    /// only, unless it was given the host's /proc.
    fn is_inhabited(&self, inode: u64) -> bool {
        let sees_all = std::fs::read_link("/proc/self/ns/pid")
            .is_ok_and(|own| own.as_os_str() == INITIAL_PROCESSES);
        if self.prefix.is_empty() && !sees_all {
            return true;
        }
        let wanted = format!("net:[{inode}]");
        let Ok(processes) = std::fs::read_dir(self.path("/proc")) else { return true };
        processes.flatten().any(|process| {
            std::fs::read_link(process.path().join("ns/net"))
                .is_ok_and(|namespace| namespace.as_os_str() == wanted.as_str())
        })
    }

    /// The device of the host on the interface's segment, if it is still the
    /// one that it was.
    pub(super) fn segment<'a>(&mut self, record: &'a Record) -> Option<(&'a HostSide, Link)> {
        let host = record.host.as_ref()?;
        let found = self.routes.link_by_index(host.device.index).ok()??;
        (found.name == host.device.name && found.is_up()).then_some((host, found))
    }
}

#[cfg(test)]
#[path = "interface_tests.rs"]
mod tests;
