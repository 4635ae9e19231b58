//! Netlink for container networking: links, addresses, routes, qdiscs,
//! nftables and conntrack, without child processes.
//!
//! The crate encodes and decodes what it needs of rtnetlink and nfnetlink
//! itself: a short-lived program pays for every page of a general library, and
//! the kernel's extended acknowledgements belong in its errors. It knows
//! nothing of CNI: no networks, no attachments, no owners, only kernel objects
//! and the names that errors need.
//!
//! Sockets block, live in the network namespace they were opened in, and wait
//! for an answer no longer than their deadline. Replies are read as if hostile:
//! bounded, checked, and never a panic.
//!
//! ```no_run
//! use podwire_netlink::error::Subject;
//! use podwire_netlink::message::Flags;
//! use podwire_netlink::socket::{Protocol, Socket};
//!
//! # fn main() -> Result<(), podwire_netlink::Error> {
//! let mut socket = Socket::open(Protocol::Route)?;
//! // RTM_DELLINK by name.
//! let subject = Subject::new("deleting link", &"veth1234");
//! socket.request(subject, 17, Flags::empty(), |body| {
//!     body.raw(&[0; 16]);
//!     body.string(3, "veth1234");
//! })?;
//! # Ok(())
//! # }
//! ```

pub mod attribute;
pub mod conntrack;
pub mod error;
pub mod exchange;
pub mod message;
pub mod nft;
pub mod reply;
pub mod route;
pub mod socket;

pub use error::Error;
