//! `ips` and `ipRanges`: the addresses a container shall have.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::address::{parse_cidr, parse_ip};
use crate::error::Error;
use crate::json::{Kind, Object, Value};

/// An address asked for, with or without the prefix of its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestedIp {
    /// The address.
    pub address: IpAddr,
    /// The length of the prefix, in bits.
    pub prefix: Option<u8>,
}

impl RequestedIp {
    /// Reads `10.1.2.3` or `10.1.2.3/24`.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(network) = parse_cidr(text) {
            return Some(Self { address: network.addr(), prefix: Some(network.prefix_len()) });
        }
        parse_ip(text).map(|address| Self { address, prefix: None })
    }

    /// Address and prefix, if there is one.
    pub fn network(self) -> Option<IpNet> {
        IpNet::new(self.address, self.prefix?).ok()
    }
}

/// `ips`, also as `args.cni.ips` has it, `null` and empty entries left out.
///
/// # Errors
/// Code 6, naming the entry that isn't an address.
pub fn ips(object: &Object<'_>) -> Result<Vec<RequestedIp>, Error> {
    let mut requested = Vec::new();
    for entry in object.array("ips")? {
        if entry.is_null() {
            continue;
        }
        let text = entry.string()?;
        if !text.is_empty() {
            let ip = RequestedIp::parse(&text);
            requested.push(ip.ok_or_else(|| entry.mismatch("an IP address, with or without /n"))?);
        }
    }
    Ok(requested)
}

/// A range of addresses, as `ipRanges` and the `ranges` of host-local have it.
/// Whether its parts fit together is for the plugin to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpRange {
    /// The subnet; bits beside the prefix are kept.
    pub subnet: IpNet,
    /// The first address to give.
    pub range_start: Option<IpAddr>,
    /// The last address to give.
    pub range_end: Option<IpAddr>,
    /// The gateway of the subnet.
    pub gateway: Option<IpAddr>,
}

impl IpRange {
    /// Reads a range.
    ///
    /// # Errors
    /// Code 6, naming the key, if `subnet` is missing or a value can't be read.
    pub fn from_object(entry: &Object<'_>) -> Result<Self, Error> {
        const SUBNET: &str = "a subnet, as 10.1.0.0/16";
        let Some(value) = entry.get("subnet") else {
            let path = entry.path_of("subnet");
            return Err(Error::decode(format!("{path}: missing, expected {SUBNET}")));
        };
        let subnet = parse_cidr(&value.string()?).ok_or_else(|| value.mismatch(SUBNET))?;
        let address = |key| -> Result<Option<IpAddr>, Error> {
            Ok(entry.parsed::<IpAddr>(key, "an IP address")?.map(|address| address.to_canonical()))
        };
        Ok(Self {
            subnet,
            range_start: address("rangeStart")?,
            range_end: address("rangeEnd")?,
            gateway: address("gateway")?,
        })
    }
}

/// `ipRanges`: sets of ranges, an address from each set.
///
/// Runtimes also send the ranges without sets around them; these are taken as
/// one set a family, for a set can't hold both.
///
/// # Errors
/// As [`IpRange::from_object`].
pub fn ip_ranges(object: &Object<'_>) -> Result<Vec<Vec<IpRange>>, Error> {
    let mut sets = Vec::new();
    let (mut loose_v4, mut loose_v6) = (Vec::new(), Vec::new());
    for entry in object.array("ipRanges")? {
        match entry.kind() {
            Kind::Null => {}
            Kind::Array => {
                let ranges = entry.array()?;
                let present = ranges.iter().filter(|range| !range.is_null());
                let set = present.map(range).collect::<Result<Vec<_>, _>>()?;
                if !set.is_empty() {
                    sets.push(set);
                }
            }
            _ => match range(&entry)? {
                range if range.subnet.addr().is_ipv4() => loose_v4.push(range),
                range => loose_v6.push(range),
            },
        }
    }
    sets.extend([loose_v4, loose_v6].into_iter().filter(|set| !set.is_empty()));
    Ok(sets)
}

fn range(value: &Value<'_>) -> Result<IpRange, Error> {
    IpRange::from_object(&value.object()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(list: &str) -> Result<Vec<usize>, Error> {
        let text = format!(r#"{{"IPRanges":{list}}}"#);
        let sets = ip_ranges(&Object::parse(&text).unwrap())?;
        Ok(sets.iter().map(Vec::len).collect())
    }

    #[test]
    fn ranges_come_nested_or_flat() {
        let (v4, v6) = (r#"{"subnet":"10.1.0.0/16"}"#, r#"{"Subnet":"fd00::/64","gateway":""}"#);
        assert_eq!(sets(&format!("[[{v4},null,{v4}],[{v6}],null,[]]")).unwrap(), [2, 1]);
        assert_eq!(sets(&format!("[{v4},{v6},{v4}]")).unwrap(), [2, 1]);
        assert_eq!(sets("null").unwrap(), [0; 0]);
        let message = |list| sets(list).unwrap_err().msg;
        assert_eq!(
            message("[[{}]]"),
            "ipRanges[0][0].subnet: missing, expected a subnet, as 10.1.0.0/16"
        );
        assert_eq!(message("[7]"), "ipRanges[0]: expected an object, found 7");
        assert_eq!(
            message(r#"[[{"subnet":"10.1.0.0/16","rangeStart":"10.1"}]]"#),
            "ipRanges[0][0].rangeStart: expected an IP address, found \"10.1\""
        );
    }

    #[test]
    fn addresses_come_with_a_prefix_or_without() {
        let text = r#"{"ips":["10.2.2.20",null,"","2001:db8::5/64","::ffff:10.0.0.1/120"]}"#;
        let requested = ips(&Object::parse(text).unwrap()).unwrap();
        assert_eq!(requested.len(), 3);
        assert_eq!(requested[0].network(), None);
        assert_eq!(requested[1].network().unwrap().to_string(), "2001:db8::5/64");
        assert_eq!(requested[2].network().unwrap().to_string(), "10.0.0.1/24");
        let error = ips(&Object::parse(r#"{"ips":["10.2.2.300"]}"#).unwrap()).unwrap_err();
        assert!(error.msg.starts_with("ips[0]: expected an IP address"));
    }
}
