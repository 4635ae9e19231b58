//! Addresses from DHCP servers for containers: the daemon that gets leases,
//! renews them while containers run and gives them back, and the way to ask it.
//!
//! The crate knows one attachment's lease, not networks or plugins: what is in
//! a configuration, and what a result looks like, is the plugin's matter
//! (`dhcp` in `podwire-plugins`). IPv4 only: DHCP for IPv6 would be another machine with
//! other messages, and beside it somebody would have to heed router
//! advertisements; none of it is here.
//!
//! From the inside out:
//! - [`message`], [`frame`]: bytes, hostile until decoded;
//! - [`terms`]: what a server agreed to;
//! - [`machine`]: one lease's life as a function of time and messages;
//! - [`record`], [`store`]: what outlives the daemon;
//! - [`protocol`], [`call`]: plugin and daemon;
//! - [`daemon`]: sockets and time, around all of it.
//!
//! What must stay true:
//! - A lease is on the disk before anybody is told of it, and off it only when
//!   it was given back or ran out. A daemon may be killed at any moment.
//! - An address is given back only when its interface is proven gone or the
//!   runtime said so, and taken off the interface when the lease is lost.
//! - A lease at rest costs no descriptor and no thread.
//!
//! ```no_run
//! use podwire_dhcp::call::call;
//! use podwire_dhcp::protocol::{Call, DEFAULT_SOCKET};
//!
//! let reply = call(DEFAULT_SOCKET.as_ref(), &Call::Status, std::time::Duration::ZERO)?;
//! # Ok::<(), podwire_dhcp::call::CallError>(())
//! ```

pub mod call;
pub mod daemon;
pub mod frame;
pub mod fuzzing;
pub mod key;
pub mod machine;
pub mod message;
pub mod metrics;
pub mod protocol;
pub mod record;
pub mod store;
pub mod terms;
