//! Conditions in the words of nft.

use std::iter::Peekable;

use podwire_netlink::nft::IpVersion;
use podwire_spec::Error;

use super::{Clause, NamePattern, Property, network, number, protocol, unknown};

/// Reads statements; the Go plugin joins the words with blanks, so where one
/// word ends says nothing.
pub(super) fn clauses(words: &[String], version: IpVersion) -> Result<Vec<Clause>, Error> {
    let text = words.join(" ");
    let mut spaced = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '{' | '}' | ',' => spaced.extend([' ', letter, ' ']),
            '"' => {}
            _ => spaced.push(letter),
        }
    }
    let mut words = spaced.split_ascii_whitespace().peekable();
    let mut clauses = Vec::new();
    while let Some(word) = words.next() {
        let selector = match word {
            "ip" | "ip6" | "meta" => {
                let field = words.next().unwrap_or_default();
                format!("{word} {field}")
            }
            other => other.to_owned(),
        };
        let (ip, negated) =
            (if version == IpVersion::V4 { "ip" } else { "ip6" }, negation(&mut words));
        let values = values(&mut words, &selector)?;
        let all = |read: &dyn Fn(&str) -> Result<Property, Error>| {
            values.iter().map(|value| read(value)).collect::<Result<Vec<_>, _>>()
        };
        let properties = match selector.as_str() {
            "ip saddr" | "ip6 saddr" if selector.starts_with(&format!("{ip} ")) => {
                all(&|value| network(value, version).map(Property::Source))
            }
            "ip daddr" | "ip6 daddr" if selector.starts_with(&format!("{ip} ")) => {
                all(&|value| network(value, version).map(Property::Destination))
            }
            "iif" | "iifname" | "meta iif" | "meta iifname" => {
                all(&|value| NamePattern::parse(value, '*').map(Property::Input))
            }
            "oif" | "oifname" | "meta oif" | "meta oifname" => {
                all(&|value| NamePattern::parse(value, '*').map(Property::Output))
            }
            "meta l4proto" => all(&|value| protocol(value).map(Property::Protocol)),
            "mark" | "meta mark" => {
                all(&|value| Ok(Property::Mark { value: number(value)?, mask: u32::MAX }))
            }
            other => return Err(unknown(other)),
        }?;
        clauses.push(Clause { negated, properties });
    }
    Ok(clauses)
}

fn negation<'a>(words: &mut Peekable<impl Iterator<Item = &'a str>>) -> bool {
    match words.peek() {
        Some(&"!=") => words.next().is_some(),
        Some(&"==") => {
            words.next();
            false
        }
        _ => false,
    }
}

/// One value, or several in braces.
fn values<'a>(
    words: &mut Peekable<impl Iterator<Item = &'a str>>,
    selector: &str,
) -> Result<Vec<&'a str>, Error> {
    let lacking = || Error::config(format!("{selector:?} lacks its value"));
    let first = words.next().ok_or_else(lacking)?;
    if first != "{" {
        return Ok(vec![first]);
    }
    let mut values = Vec::new();
    loop {
        match words.next().ok_or_else(lacking)? {
            "}" if values.is_empty() => return Err(lacking()),
            "}" => return Ok(values),
            "," => {}
            value => values.push(value),
        }
    }
}
