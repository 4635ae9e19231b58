//! What is kept of a lease on the disk.

use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

use crate::key::Key;
use crate::machine::{Identity, Millis};
use crate::terms::Terms;

/// The form of the files; others are set aside.
pub const FORM: u32 = 1;

/// A lease with all that is needed to go on with it or to give it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// [`FORM`].
    pub form: u32,
    /// Whose it is.
    pub key: Key,
    /// Where the container's interface is.
    pub place: Place,
    /// The way to the interface's segment from the host, if there is one.
    pub host: Option<HostSide>,
    /// What the client tells of itself.
    pub identity: Identity,
    /// The hardware address that the server's answer came from.
    pub server_hardware: Option<[u8; 6]>,
    /// The metric of its routes.
    pub priority: Option<u32>,
    /// How far it has come.
    pub phase: Phase,
}

/// Where a container's interface is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The network namespace, as the runtime named it.
    pub netns: String,
    /// The namespace's cookie, where the kernel gives one.
    pub cookie: Option<u64>,
    /// The namespace's inode, reused only after it has gone.
    pub inode: u64,
    /// The boot it belongs to: no namespace outlives one.
    pub boot: String,
    /// The interface's index in it.
    pub index: u32,
}

/// A device of the host on the segment of a container's interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSide {
    /// The device to send through.
    pub device: Device,
    /// The VLAN to tag frames with.
    pub vlan: Option<u16>,
    /// The VLAN of the container's port, where the device is a bridge that
    /// tells ports apart so.
    pub port_vlan: Option<u16>,
    /// The other end of the container's interface, which goes with it.
    pub other_end: Option<Device>,
}

/// A device of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: String,
}

/// How far a lease has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Servers are being looked for. Never on the disk.
    New,
    /// An offer was taken, and the answer is not known.
    Requested {
        /// The address that was asked for.
        address: Ipv4Addr,
        /// Of whom.
        server: Ipv4Addr,
    },
    /// A server agreed.
    Held {
        /// To what.
        terms: Terms,
        /// When it began.
        since: Millis,
    },
    /// The address had to be given up; another is looked for.
    Lost {
        /// The address that was held.
        address: Ipv4Addr,
    },
}
