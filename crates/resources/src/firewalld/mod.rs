//! Sources of firewalld's zones: addresses that firewalld treats as a zone
//! says, until it is reloaded.
//!
//! firewalld is spoken to over the D-Bus system bus (`bus`). It knows no
//! owners, so whose a source is stands in a set of ours, by which the old
//! owner of an address leaves its new one's source alone (B020), and DEL
//! without prevResult and garbage collection find what to remove.

mod bus;
mod message;
mod sources;

use std::net::IpAddr;

use ipnet::IpNet;
use podwire_spec::error::Error;

use bus::Bus;
use message::{Answer, Call, Value};

pub use sources::{Sources, StaleSources};

/// Reads a message of a bus, for nothing but to see whether it can be read.
pub(crate) fn read_message(message: &[u8], serial: u32) -> Result<(), Error> {
    message::decode(message, serial).map(drop)
}

/// How many sockets the address of a bus names.
pub(crate) fn sockets_of(address: &str) -> usize {
    bus::addresses(address).len()
}

/// firewalld's name on the bus.
const NAME: &str = "org.fedoraproject.FirewallD1";

/// A firewalld that answers.
#[derive(Debug)]
pub struct Firewalld {
    bus: Bus,
}

/// Refusals that mean that a source isn't there.
const ABSENT: [&str; 4] = ["UNKNOWN_SOURCE", "NOT_ENABLED", "INVALID_ZONE", "ZONE_CONFLICT"];

impl Firewalld {
    /// The firewalld of this host; `None` if none is running.
    ///
    /// # Errors
    /// There is a D-Bus system bus that doesn't answer.
    pub fn find() -> Result<Option<Self>, Error> {
        let Some(mut bus) = Bus::connect()? else { return Ok(None) };
        Ok(bus.has_owner(NAME)?.then_some(Self { bus }))
    }

    fn zone_method(
        &mut self,
        member: &str,
        zone: &str,
        address: IpAddr,
    ) -> Result<Result<Option<Value>, String>, Error> {
        let source = IpNet::from(address).to_string();
        let answer = self.bus.call(&Call {
            destination: NAME,
            path: "/org/fedoraproject/FirewallD1",
            interface: "org.fedoraproject.FirewallD1.zone",
            member,
            arguments: &[zone, &source],
        })?;
        Ok(match answer {
            Answer::Return(value) => Ok(value),
            // Its own errors carry their kind at the text's beginning; those
            // of the bus, in their name.
            Answer::Error(name, text) if name.starts_with(NAME) => Err(text),
            Answer::Error(name, text) => Err(format!("{name}: {text}")),
        })
    }

    /// Makes an address a source of a zone; says whether it wasn't one.
    ///
    /// # Errors
    /// firewalld refuses: no such zone, a source of another zone.
    pub fn add_source(&mut self, zone: &str, address: IpAddr) -> Result<bool, Error> {
        match self.zone_method("addSource", zone, address)? {
            Ok(_) => Ok(true),
            Err(text) if text.starts_with("ZONE_ALREADY_SET") => Ok(false),
            Err(text) => Err(refusal("add", zone, address, &text)),
        }
    }

    /// Removes a source from a zone; one that isn't there is fine.
    ///
    /// # Errors
    /// firewalld refuses.
    pub fn remove_source(&mut self, zone: &str, address: IpAddr) -> Result<(), Error> {
        match self.zone_method("removeSource", zone, address)? {
            Err(text) if !ABSENT.iter().any(|kind| text.starts_with(kind)) => {
                Err(refusal("remove", zone, address, &text))
            }
            _ => Ok(()),
        }
    }

    /// Whether an address is a source of a zone.
    ///
    /// # Errors
    /// firewalld refuses: no such zone.
    pub fn has_source(&mut self, zone: &str, address: IpAddr) -> Result<bool, Error> {
        match self.zone_method("querySource", zone, address)? {
            Ok(value) => Ok(value == Some(Value::Truth(true))),
            Err(text) => Err(refusal("look for", zone, address, &text)),
        }
    }
}

fn refusal(doing: &str, zone: &str, address: IpAddr, text: &str) -> Error {
    let details = if text.starts_with("INVALID_ZONE") {
        "firewalldZone must name a zone that `firewall-cmd --get-zones` lists"
    } else if text.starts_with("ZONE_CONFLICT") {
        "the address is a source of another zone: `firewall-cmd --get-active-zones` shows which"
    } else {
        ""
    };
    Error::internal(format!("firewalld refused to {doing} source {address} in zone {zone}: {text}"))
        .with_details(details)
}
