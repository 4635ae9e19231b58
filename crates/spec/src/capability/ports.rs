//! `portMappings`: ports of the host that lead to the container.

use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::str::FromStr;

use crate::address::parse_ip;
use crate::error::Error;
use crate::json::Object;

/// A transport protocol with ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP
    Tcp,
    /// UDP
    Udp,
    /// SCTP
    Sctp,
}

impl Protocol {
    /// Its name, lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }

    /// Its number in IP headers (IANA protocol numbers).
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Sctp => 132,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Protocol {
    type Err = Error;

    /// Reads a name in any case: Kubernetes writes `TCP`.
    fn from_str(text: &str) -> Result<Self, Error> {
        [Self::Tcp, Self::Udp, Self::Sctp]
            .into_iter()
            .find(|protocol| protocol.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| Error::config(format!("protocol {text:?} is not tcp, udp or sctp")))
    }
}

/// One mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortMapping {
    /// The port of the host.
    pub host_port: NonZeroU16,
    /// The port of the container.
    pub container_port: NonZeroU16,
    /// The protocol; TCP when absent.
    pub protocol: Protocol,
    /// The address of the host; all when absent. An unspecified one
    /// (`0.0.0.0`, `::`) is kept: it says all, of its family.
    pub host_ip: Option<IpAddr>,
}

impl PortMapping {
    /// Reads one mapping.
    ///
    /// # Errors
    /// Code 6, naming the key, for a port that isn't one and an address or
    /// protocol that can't be read.
    pub fn from_object(entry: &Object<'_>) -> Result<Self, Error> {
        const PORT: &str = "a port from 1 to 65535";
        let port = |key| {
            let value = entry.get(key).ok_or_else(|| {
                Error::decode(format!("{}: missing, expected {PORT}", entry.path_of(key)))
            })?;
            let number = value.integer::<u16>().ok().and_then(NonZeroU16::new);
            number.ok_or_else(|| value.mismatch(PORT))
        };
        let host_ip = match entry.get("hostIP") {
            None => None,
            Some(value) => match value.string()? {
                text if text.is_empty() => None,
                text => Some(parse_ip(&text).ok_or_else(|| value.mismatch("an IP address"))?),
            },
        };
        Ok(Self {
            host_port: port("hostPort")?,
            container_port: port("containerPort")?,
            protocol: entry.parsed("protocol", "tcp, udp or sctp")?.unwrap_or(Protocol::Tcp),
            host_ip,
        })
    }
}

/// `portMappings`, `null` entries left out.
///
/// # Errors
/// As [`PortMapping::from_object`].
pub fn port_mappings(object: &Object<'_>) -> Result<Vec<PortMapping>, Error> {
    let entries = object.array("portMappings")?;
    let present = entries.iter().filter(|entry| !entry.is_null());
    present.map(|entry| PortMapping::from_object(&entry.object()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(list: &str) -> Result<Vec<PortMapping>, Error> {
        let text = format!(r#"{{"portMappings":{list}}}"#);
        port_mappings(&Object::parse(&text).unwrap())
    }

    #[test]
    fn mappings_are_read_in_any_case() {
        let list = r#"[{"hostPort":8080,"containerPort":80,"protocol":"tcp"},null,
            {"HostPort":53,"ContainerPort":5353,"Protocol":"UDP","HostIP":"::ffff:10.0.0.1"},
            {"hostPort":1,"containerPort":65535,"protocol":null,"hostIP":""}]"#;
        let mappings = read(list).unwrap();
        assert_eq!(mappings.len(), 3);
        assert_eq!(mappings[0].host_port.get(), 8080);
        assert_eq!(mappings[1].protocol, Protocol::Udp);
        assert_eq!(mappings[1].host_ip.unwrap().to_string(), "10.0.0.1");
        assert_eq!((mappings[2].protocol, mappings[2].host_ip), (Protocol::Tcp, None));
        assert!(read("null").unwrap().is_empty() && read("[]").unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (entry, message) in [
            ("{}", "portMappings[0].hostPort: missing, expected a port from 1 to 65535"),
            (
                r#"{"hostPort":0,"containerPort":1}"#,
                "portMappings[0].hostPort: expected a port from 1 to 65535, found 0",
            ),
            (
                r#"{"hostPort":1,"containerPort":65536}"#,
                "portMappings[0].containerPort: expected a port from 1 to 65535, found 65536",
            ),
            (
                r#"{"hostPort":1,"containerPort":1,"protocol":"icmp"}"#,
                "portMappings[0].protocol: expected tcp, udp or sctp, found \"icmp\"",
            ),
            (
                r#"{"hostPort":1,"containerPort":1,"hostIP":"host"}"#,
                "portMappings[0].hostIP: expected an IP address, found \"host\"",
            ),
            ("7", "portMappings[0]: expected an object, found 7"),
        ] {
            assert_eq!(read(&format!("[{entry}]")).unwrap_err().msg, message);
        }
    }
}
