//! The messages that a client sends.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::message::{Kind, Message, code};

/// The longest message that is taken, in bytes: what an Ethernet frame holds.
const LONGEST_MESSAGE: u16 = 1500;

/// Who asks, and for what: what all messages of a lease have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The interface's hardware address.
    pub hardware: [u8; 6],
    /// The client identifier (option 61), its type byte first.
    pub client: Vec<u8>,
    /// Options to ask for, in this order.
    pub requested: Vec<u8>,
    /// Options to tell the server.
    pub provided: Vec<(u8, Vec<u8>)>,
    /// Whether servers are to answer by broadcast.
    pub broadcast: bool,
}

impl Identity {
    fn message(&self, kind: Kind, transaction: u32, seconds: u16) -> Message {
        let mut message = Message::request(kind, transaction, self.hardware);
        message.seconds = seconds;
        message.options.set(code::CLIENT_IDENTIFIER, self.client.clone());
        for (code, value) in &self.provided {
            message.options.set(*code, value.clone());
        }
        message
    }

    fn question(&self, kind: Kind, transaction: u32, seconds: u16) -> Message {
        let mut message = self.message(kind, transaction, seconds);
        message.options.set(code::LONGEST_MESSAGE, LONGEST_MESSAGE.to_be_bytes().to_vec());
        if !self.requested.is_empty() {
            message.options.set(code::PARAMETER_LIST, self.requested.clone());
        }
        message
    }

    pub(super) fn discover(
        &self,
        transaction: u32,
        seconds: u16,
        wanted: Option<Ipv4Addr>,
    ) -> Message {
        let mut message = self.question(Kind::Discover, transaction, seconds);
        message.broadcast = self.broadcast;
        if let Some(address) = wanted {
            message.options.set(code::REQUESTED_ADDRESS, address.octets().to_vec());
        }
        message
    }

    /// Takes the offer of `server`, or asks for an address known from before.
    pub(super) fn request(
        &self,
        transaction: u32,
        seconds: u16,
        address: Ipv4Addr,
        server: Option<Ipv4Addr>,
    ) -> Message {
        let mut message = self.question(Kind::Request, transaction, seconds);
        message.broadcast = self.broadcast;
        message.options.set(code::REQUESTED_ADDRESS, address.octets().to_vec());
        if let Some(server) = server {
            message.options.set(code::SERVER_IDENTIFIER, server.octets().to_vec());
        }
        message
    }

    /// Asks to go on with `address`: neither 50 nor 54 may be set (RFC 2131,
    /// section 4.3.2).
    pub(super) fn extend(
        &self,
        transaction: u32,
        seconds: u16,
        address: Ipv4Addr,
        of_anyone: bool,
    ) -> Message {
        let mut message = self.question(Kind::Request, transaction, seconds);
        message.client = address;
        message.broadcast = self.broadcast && of_anyone;
        message
    }

    /// Gives an address back (RFC 2131, section 4.4.6).
    pub fn release(&self, address: Ipv4Addr, server: Ipv4Addr, transaction: u32) -> Message {
        let mut message = self.message(Kind::Release, transaction, 0);
        message.client = address;
        message.options.set(code::SERVER_IDENTIFIER, server.octets().to_vec());
        // What it was given may be told again, but a release isn't the place.
        message.options.remove(code::HOST_NAME);
        message
    }
}
