//! Conditions in the words of iptables.

use podwire_netlink::nft::IpVersion;
use podwire_spec::Error;

use super::{Clause, NamePattern, Property, network, number, protocol, unknown};

/// Reads options and their values. `!` stands before the option, or, as of
/// old, before the value.
pub(super) fn clauses(words: &[String], version: IpVersion) -> Result<Vec<Clause>, Error> {
    let mut words = words.iter().flat_map(|word| word.split_ascii_whitespace());
    let mut clauses = Vec::new();
    let mut negated = false;
    while let Some(option) = words.next() {
        if option == "!" {
            negated = !negated;
            continue;
        }
        let mut value = || {
            let mut value = words.next();
            if value == Some("!") {
                negated = !negated;
                value = words.next();
            }
            value.ok_or_else(|| Error::config(format!("{option} lacks its value")))
        };
        let properties = match option {
            "-s" | "--source" | "--src" => networks(value()?, version, Property::Source)?,
            "-d" | "--destination" | "--dst" => networks(value()?, version, Property::Destination)?,
            "-i" | "--in-interface" => vec![Property::Input(NamePattern::parse(value()?, '+')?)],
            "-o" | "--out-interface" => vec![Property::Output(NamePattern::parse(value()?, '+')?)],
            "-p" | "--protocol" => vec![Property::Protocol(protocol(value()?)?)],
            "--mark" => vec![mark(value()?)?],
            "--comment" => {
                value()?;
                continue;
            }
            "-m" | "--match" => match value()? {
                "comment" | "mark" => continue,
                other => return Err(unknown(&format!("-m {other}"))),
            },
            other => return Err(unknown(other)),
        };
        clauses.push(Clause { negated, properties });
        negated = false;
    }
    if negated {
        return Err(Error::config("\"!\" has nothing behind it"));
    }
    Ok(clauses)
}

fn networks(
    list: &str,
    version: IpVersion,
    property: fn(ipnet::IpNet) -> Property,
) -> Result<Vec<Property>, Error> {
    list.split(',').map(|text| network(text, version).map(property)).collect()
}

fn mark(text: &str) -> Result<Property, Error> {
    let (value, mask) = match text.split_once('/') {
        Some((value, mask)) => (number(value)?, number(mask)?),
        None => (number(text)?, u32::MAX),
    };
    Ok(Property::Mark { value, mask })
}
