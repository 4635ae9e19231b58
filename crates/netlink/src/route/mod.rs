//! The kernel's network configuration (rtnetlink(7)): links, addresses,
//! routes, rules, neighbours, bridge ports, traffic control.
//!
//! Questions are methods of [`RouteSocket`]. Changes are values that implement
//! [`Change`], so that one can be applied by itself or several in one send:
//!
//! ```no_run
//! use podwire_netlink::route::address::AddAddress;
//! use podwire_netlink::route::link_change::ChangeLink;
//! use podwire_netlink::route::RouteSocket;
//!
//! # fn main() -> Result<(), podwire_netlink::Error> {
//! let mut socket = RouteSocket::open()?;
//! let Some(link) = socket.link_by_name("eth0")? else { return Ok(()) };
//! let address = AddAddress::new(link.device(), "10.1.0.2/24".parse().unwrap()).no_dad();
//! let up = ChangeLink::new(link.device()).up();
//! // One send; a refused change does not stop those behind it.
//! socket.apply_all(&[&address, &up])?;
//! # Ok(())
//! # }
//! ```

pub mod address;
pub mod bridge;
pub mod change;
pub mod device;
pub mod family;
pub mod link;
pub mod link_change;
pub mod link_kind;
pub mod link_new;
pub mod monitor;
pub mod neighbour;
mod route_change;
mod route_query;
pub mod routes;
pub mod rule;
pub mod tc;

pub use address::Address;
pub use change::Change;
pub use device::{Device, MacAddress};
pub use family::{Family, Scope};
pub use link::Link;
pub use monitor::Monitor;
pub use routes::Route;
pub use rule::Rule;

use std::time::Duration;

use crate::error::Error;
use crate::socket::{Protocol, Socket};

/// A socket to one network namespace's configuration.
///
/// It belongs to the namespace in which it was opened, wherever the thread
/// goes afterwards.
#[derive(Debug)]
pub struct RouteSocket {
    pub(crate) socket: Socket,
}

impl RouteSocket {
    /// Opens a socket in the thread's current network namespace.
    ///
    /// # Errors
    /// The process is out of descriptors or memory.
    pub fn open() -> Result<Self, Error> {
        Ok(Self { socket: Socket::open(Protocol::Route)? })
    }

    /// How long one exchange may take, from now on; 10 s unless set.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.socket.set_deadline(deadline);
    }
}
