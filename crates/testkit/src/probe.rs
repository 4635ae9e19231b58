//! Packets through what a plugin built: who reaches whom, and seen as whom.

mod addresses;
mod echo;
mod http;
mod ping;

pub use addresses::addresses_here;
pub use echo::{Connection, TcpEcho, UdpEcho, tcp_connect, udp_exchange};
pub use http::http_page;
pub use ping::ping;

use std::time::Duration;

/// How long an answer may take that should come.
pub const ANSWER: Duration = Duration::from_secs(5);
/// How long is waited for an answer that should not come.
pub const SILENCE: Duration = Duration::from_millis(500);
