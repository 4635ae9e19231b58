//! Real DHCP servers, the daemon of ours or of Go, and a machine to try them on.
//!
//! ```no_run
//! use podwire_tests::dhcp::{Lab, Server, Settings, Side, Software, Wiring, address_in};
//!
//! let lab = Lab::new(Wiring::Bridge);
//! let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
//! let daemon = lab.daemon(Side::Ours, &[]);
//! let container = lab.container("c1");
//! let mark = server.mark();
//! let result = lab.add(&container, &lab.config());
//! server.acknowledged(mark, address_in(&result));
//! ```

mod daemon;
mod event;
mod lab;
mod leases;
mod random;
mod responder;
mod server;
mod software;
pub mod wire;

pub use daemon::Daemon;
pub use event::Event;
pub use lab::{AddressChange, Lab, Side, Wiring, address_in, address_of, wait_for_address};
pub use leases::Lease;
pub use random::Random;
pub use responder::Responder;
pub use server::{Server, Settings};
pub use software::{Software, with_every_server};
