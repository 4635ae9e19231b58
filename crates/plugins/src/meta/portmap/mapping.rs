//! The port mappings of a request (`runtimeConfig.portMappings`).

use std::fmt;
use std::net::IpAddr;

use podwire_spec::Error;
use podwire_spec::address::parse_ip;
use podwire_spec::json::Object;

/// Mappings of one attachment at most: all ports of all protocols.
const MAPPING_LIMIT: usize = 3 * 65_535;

/// A transport protocol with ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Protocol {
    /// RFC 9293.
    Tcp,
    /// RFC 768.
    Udp,
    /// RFC 9260.
    Sctp,
}

impl Protocol {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Tcp, Self::Udp, Self::Sctp];

    /// Reads the name in any case.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.as_str().eq_ignore_ascii_case(text))
    }

    /// The name in lower case.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }

    /// Its number in IP headers (`IPPROTO_*`, linux/in.h).
    pub(super) const fn number(self) -> u8 {
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

/// One port of the host that leads to one of the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapping {
    /// TCP, UDP or SCTP.
    pub(super) protocol: Protocol,
    /// The address of the host that it is for. An unspecified one means all
    /// addresses of its family, none all of both.
    pub(super) host_ip: Option<IpAddr>,
    /// The port of the host.
    pub(super) host_port: u16,
    /// The port of the container.
    pub(super) container_port: u16,
}

impl Mapping {
    /// Reads the mappings of a request; equal ones count once.
    ///
    /// # Errors
    /// Code 6 or 7 that names the key and its value.
    pub(super) fn list(runtime_config: &Object<'_>) -> Result<Vec<Self>, Error> {
        let mut mappings = Vec::<Self>::new();
        for entry in runtime_config.array("portMappings")? {
            if entry.is_null() {
                continue;
            }
            let entry = entry.object()?;
            let mapping = Self::parse(&entry)?;
            if mappings.contains(&mapping) {
                continue;
            }
            if let Some(other) = mappings.iter().find(|other| other.contradicts(&mapping)) {
                return Err(Error::config(format!(
                    "{}: {} is mapped to port {} of the container and again to {}",
                    entry.path(),
                    mapping.host_side(),
                    other.container_port,
                    mapping.container_port
                ))
                .with_details("give each of them a port of the host of its own"));
            }
            if mappings.len() == MAPPING_LIMIT {
                return Err(Error::config("runtimeConfig.portMappings: too many mappings"));
            }
            mappings.push(mapping);
        }
        Ok(mappings)
    }

    fn parse(entry: &Object<'_>) -> Result<Self, Error> {
        let protocol = entry.text_of("protocol")?;
        let protocol = match protocol.as_deref() {
            None => Protocol::Tcp,
            Some(text) => Protocol::parse(text).ok_or_else(|| {
                Error::config(format!(
                    "{}: unknown protocol \"{text}\"; it must be tcp, udp or sctp",
                    entry.path_of("protocol")
                ))
            })?,
        };
        let host_ip = match entry.text_of("hostIP")? {
            None => None,
            Some(text) => Some(parse_ip(&text).ok_or_else(|| {
                Error::config(format!(
                    "{}: expected an IP address, found \"{text}\"",
                    entry.path_of("hostIP")
                ))
            })?),
        };
        Ok(Self {
            protocol,
            host_ip,
            host_port: port(entry, "hostPort")?,
            container_port: port(entry, "containerPort")?,
        })
    }

    /// Whether packets for the one are packets for the other, but go elsewhere.
    fn contradicts(&self, other: &Self) -> bool {
        let overlap = [true, false].iter().any(|v4| self.is_for(*v4) && other.is_for(*v4));
        overlap
            && (self.protocol, self.host_port) == (other.protocol, other.host_port)
            && self.host_address() == other.host_address()
            && self.container_port != other.container_port
    }

    /// The host's side, for people: `tcp port 8080 on 10.0.0.1`.
    pub(super) fn host_side(&self) -> String {
        match self.host_ip {
            Some(address) => format!("{} port {} on {address}", self.protocol, self.host_port),
            None => format!("{} port {}", self.protocol, self.host_port),
        }
    }

    /// Whether the mapping is for packets of this family.
    pub(super) fn is_for(&self, ipv4: bool) -> bool {
        self.host_ip.is_none_or(|address| address.is_ipv4() == ipv4)
    }

    /// The one address that it is for.
    pub(super) fn host_address(&self) -> Option<IpAddr> {
        self.host_ip.filter(|address| !address.is_unspecified())
    }
}

fn port(entry: &Object<'_>, key: &str) -> Result<u16, Error> {
    let number = entry.signed(key)?.unwrap_or(0);
    u16::try_from(number).ok().filter(|port| *port != 0).ok_or_else(|| {
        Error::config(format!("{}: {number} is not a port", entry.path_of(key)))
            .with_details("a port is a number from 1 to 65535")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(mappings: &str) -> Result<Vec<Mapping>, Error> {
        let text = format!("{{\"portMappings\":{mappings}}}");
        Mapping::list(&Object::parse(&text).unwrap().with_path("runtimeConfig"))
    }

    fn refusal(mappings: &str) -> String {
        let error = list(mappings).unwrap_err();
        assert!([6, 7].contains(&error.code.number()), "{error}");
        error.msg
    }

    #[test]
    fn keys_count_in_any_case_as_go_cni_sends_them() {
        let found = list(
            r#"[{"HostPort":8080,"ContainerPort":80,"Protocol":"TCP","HostIP":""},
                {"hostPort":53,"containerPort":53,"protocol":"Udp","hostIP":"10.0.0.1"},
                {"hostPort":7,"containerPort":9,"protocol":"sctp","hostIP":"::"},
                {"hostPort":8,"containerPort":9},null]"#,
        )
        .unwrap();
        let sides: Vec<_> = found.iter().map(Mapping::host_side).collect();
        let expected =
            ["tcp port 8080", "udp port 53 on 10.0.0.1", "sctp port 7 on ::", "tcp port 8"];
        assert_eq!(sides, expected);
    }

    #[test]
    fn no_mappings_come_in_many_shapes() {
        for none in ["null", "[]", "[null]"] {
            assert!(list(none).unwrap().is_empty());
        }
    }

    #[test]
    fn refusals_name_key_and_value() {
        let at = "runtimeConfig.portMappings[0]";
        let port = |key, number: &str| {
            let other = if key == "hostPort" { "containerPort" } else { "hostPort" };
            refusal(&format!("[{{\"{key}\":{number},\"{other}\":1,\"protocol\":\"tcp\"}}]"))
        };
        assert_eq!(port("hostPort", "0"), format!("{at}.hostPort: 0 is not a port"));
        assert_eq!(port("hostPort", "-1"), format!("{at}.hostPort: -1 is not a port"));
        assert_eq!(port("hostPort", "65536"), format!("{at}.hostPort: 65536 is not a port"));
        assert_eq!(port("containerPort", "0"), format!("{at}.containerPort: 0 is not a port"));
        assert!(port("containerPort", "\"80\"").starts_with(&format!("{at}.containerPort: ")));
        let protocol = refusal(r#"[{"hostPort":1,"containerPort":1,"protocol":"icmp"}]"#);
        assert!(protocol.contains("unknown protocol \"icmp\""), "{protocol}");
        let address = refusal(r#"[{"hostPort":1,"containerPort":1,"hostIP":"10.0.0"}]"#);
        assert_eq!(address, format!("{at}.hostIP: expected an IP address, found \"10.0.0\""));
    }

    #[test]
    fn the_same_twice_counts_once_and_a_contradiction_is_refused() {
        let twice = r#"[{"hostPort":1,"containerPort":2},{"hostPort":1,"containerPort":2},
                        {"hostPort":1,"containerPort":2,"protocol":"udp"}]"#;
        assert_eq!(list(twice).unwrap().len(), 2);
        let families = r#"[{"hostPort":1,"containerPort":2,"hostIP":"0.0.0.0"},
                           {"hostPort":1,"containerPort":3,"hostIP":"::"}]"#;
        assert_eq!(list(families).unwrap().len(), 2);
        let both = r#"[{"hostPort":1,"containerPort":2},{"hostPort":1,"containerPort":3}]"#;
        assert_eq!(
            refusal(both),
            "runtimeConfig.portMappings[1]: tcp port 1 is mapped to port 2 of the container and \
             again to 3"
        );
    }

    #[test]
    fn b079_an_address_says_which_family_a_mapping_is_for() {
        let mapping = |address: &str| {
            let list =
                list(&format!(r#"[{{"hostPort":1,"containerPort":2,"hostIP":"{address}"}}]"#));
            list.unwrap().remove(0)
        };
        let of = |mapping: &Mapping| (mapping.is_for(true), mapping.is_for(false));
        assert_eq!(of(&mapping("")), (true, true));
        assert_eq!(of(&mapping("10.0.0.1")), (true, false));
        assert_eq!(of(&mapping("::ffff:10.0.0.1")), (true, false));
        assert_eq!(of(&mapping("fd00::1")), (false, true));
        assert_eq!(of(&mapping("0.0.0.0")), (true, false));
        assert_eq!(of(&mapping("::")), (false, true));
        assert_eq!(mapping("0.0.0.0").host_address(), None);
        assert_eq!(mapping("10.0.0.1").host_address(), Some("10.0.0.1".parse().unwrap()));
    }
}
