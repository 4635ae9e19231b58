//! What plugin and daemon say to each other: one call and one reply on a
//! connection of its own.
//!
//! The client's first line looks like HTTP's `CONNECT`, as that of Go's RPC
//! does: a daemon of the other kind then refuses at once instead of waiting for
//! more, and the refusal can say what to restart. After it, each side sends one
//! JSON document behind its length in four bytes, big end first.

use serde::{Deserialize, Serialize};

use crate::key::Key;
use crate::terms::Terms;

/// Where the daemon listens unless it is told otherwise; the Go plugin's path.
pub const DEFAULT_SOCKET: &str = "/run/cni/dhcp.sock";

/// The line by which a client of this version asks for it.
pub const GREETING: &str = "CONNECT /podwire/dhcp/1 HTTP/1.0";
/// What greetings of any version begin with.
pub const GREETING_OF_ANY_VERSION: &str = "CONNECT /podwire/dhcp/";
/// The line by which clients of Go's RPC ask (net/rpc of Go).
pub const GREETING_OF_GO: &str = "CONNECT /_goRPC_ ";
/// The line by which the daemon agrees.
pub const WELCOME: &str = "HTTP/1.0 200 podwire dhcp 1";

/// The longest greeting with its blank line, in bytes.
pub const LONGEST_GREETING: usize = 4096;
/// The longest document, in bytes: room for a list of 20,000 attachments.
pub const LONGEST_DOCUMENT: usize = 1 << 20;

/// What the daemon is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    /// Get a lease, or tell the one that is held.
    Allocate(Box<Allocate>),
    /// Tell the lease that is held.
    Look(Key),
    /// Give a lease back. None is fine.
    Release(Key),
    /// Give back all leases of a network but these.
    Collect {
        /// The network.
        network: String,
        /// What lives: the marks' second halves.
        valid: Vec<String>,
    },
    /// Are you there?
    Status,
}

/// What is needed to get a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocate {
    /// Whose it will be.
    pub key: Key,
    /// The network namespace's path, absolute.
    pub netns: String,
    /// Who the client is.
    pub client: Client,
    /// Options to ask for, in this order.
    pub requested: Vec<u8>,
    /// Options to tell the server.
    pub provided: Vec<(u8, Vec<u8>)>,
    /// Whether servers are to answer by broadcast.
    pub broadcast: bool,
    /// The metric of routes that come with an address that changes later.
    pub priority: Option<u32>,
    /// How long the caller waits, in milliseconds.
    pub patience: u64,
}

/// Who a client is to a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Client {
    /// These bytes.
    Identifier(Vec<u8>),
    /// Its hardware address, with its type in front.
    Hardware,
}

/// What the daemon answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The lease that is held.
    Lease(Box<Terms>),
    /// It is done.
    Done,
    /// No lease is held.
    Unknown,
    /// It can't be done.
    Failed {
        /// The number of a CNI error code.
        code: u32,
        /// What failed.
        message: String,
        /// What to do.
        details: String,
    },
}

/// A document behind its length.
///
/// # Errors
/// When it would be too long.
pub fn encode<T: Serialize>(document: &T) -> Result<Vec<u8>, std::io::Error> {
    let text = serde_json::to_vec(document)?;
    let length = u32::try_from(text.len()).ok().filter(|_| text.len() <= LONGEST_DOCUMENT);
    let length = length.ok_or_else(|| {
        std::io::Error::other(format!("a document of more than {LONGEST_DOCUMENT} bytes"))
    })?;
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend(text);
    Ok(bytes)
}

/// The length that stands in front of a document; `None` while it isn't whole.
///
/// # Errors
/// When the document would be too long.
pub fn length(bytes: &[u8]) -> Result<Option<usize>, std::io::Error> {
    let Some(four) = bytes.first_chunk::<4>() else { return Ok(None) };
    match usize::try_from(u32::from_be_bytes(*four)) {
        Ok(length) if length <= LONGEST_DOCUMENT => Ok(Some(length)),
        _ => Err(std::io::Error::other(format!(
            "a document of more than {LONGEST_DOCUMENT} bytes was announced"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_stands_behind_its_length() {
        let bytes = encode(&Reply::Done).unwrap();
        assert_eq!(bytes, b"\0\0\0\x06\"Done\"");
        assert_eq!(length(&bytes[..3]).unwrap(), None);
        assert_eq!(length(&bytes).unwrap(), Some(6));
        assert!(length(&[0xff; 4]).is_err());
        assert!(encode(&vec![0_u8; LONGEST_DOCUMENT]).is_err());
    }
}
