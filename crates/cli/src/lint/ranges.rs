//! The ranges of host-local: do they parse, do two of them overlap?

use std::net::IpAddr;

use ipnet::IpNet;
use podwire_spec::address::{parse_cidr, parse_ip};
use podwire_spec::json::{Kind, Object, Value};

/// Something wrong with a range: the part of the text, its path, what is
/// wrong, what to do.
pub(super) type Doubt<'a> = (&'a str, String, String, String);

/// The most ranges that are compared, each with every other.
const RANGES_LIMIT: usize = 256;

/// One range: the addresses from `first` to `last`.
struct Range<'a> {
    text: &'a str,
    path: String,
    first: IpAddr,
    last: IpAddr,
}

/// Looks through `ipam`: the old single range, and all sets of `ranges`.
pub(super) fn check<'a>(ipam: &Object<'a>) -> Vec<Doubt<'a>> {
    let mut doubts = Vec::new();
    let mut ranges: Vec<Range<'a>> = Vec::new();
    let mut objects = Vec::new();
    if ipam.get("subnet").is_some() {
        objects.push(ipam.clone());
    }
    for set in ipam.array("ranges").unwrap_or_default() {
        match set.kind() {
            Kind::Array => {
                let entries = set.array().unwrap_or_default();
                objects.extend(entries.iter().filter_map(|entry| entry.object().ok()));
            }
            _ => doubts.push((
                set.text(),
                set.path().to_owned(),
                "a set of ranges is an array of its own".to_owned(),
                "write [[{\"subnet\": ...}]]".to_owned(),
            )),
        }
    }
    for object in objects.iter().take(RANGES_LIMIT) {
        match range(object) {
            Ok(range) => {
                if let Some(other) = ranges.iter().find(|other| overlap(other, &range)) {
                    doubts.push((
                        range.text,
                        range.path.clone(),
                        format!("overlaps with {}", other.path),
                        "give each address to one range only".to_owned(),
                    ));
                }
                ranges.push(range);
            }
            Err(doubt) => doubts.extend(doubt),
        }
    }
    doubts
}

fn overlap(one: &Range<'_>, other: &Range<'_>) -> bool {
    one.first.is_ipv4() == other.first.is_ipv4()
        && one.first <= other.last
        && other.first <= one.last
}

/// Reads a range. An error without a doubt is one that the keys' types are to
/// blame for, or the runtime's values.
fn range<'a>(object: &Object<'a>) -> Result<Range<'a>, Option<Doubt<'a>>> {
    let subnet_value = object.get("subnet").ok_or(None)?;
    let subnet = text_of(&subnet_value)?;
    let subnet: IpNet = parse_cidr(&subnet).ok_or_else(|| {
        let message = format!("expected a subnet, as 10.1.0.0/24, found {subnet:?}");
        Some((subnet_value.text(), subnet_value.path().to_owned(), message, String::new()))
    })?;
    let bound = |key: &str, default: IpAddr| {
        let Some(value) = object.get(key) else { return Ok(default) };
        let text = text_of(&value)?;
        if text.is_empty() {
            return Ok(default);
        }
        let problem = match parse_ip(&text) {
            Some(address) if subnet.contains(&address) => return Ok(address),
            Some(_) => format!("{text} is not in the subnet {subnet}"),
            None => format!("expected an IP address, as 10.1.0.9, found {text:?}"),
        };
        Err(Some((value.text(), value.path().to_owned(), problem, String::new())))
    };
    let first = bound("rangeStart", subnet.network())?;
    let last = bound("rangeEnd", subnet.broadcast())?;
    if first > last {
        let message = format!("the range begins at {first}, after its end {last}");
        return Err(Some((object.text(), object.path().to_owned(), message, String::new())));
    }
    Ok(Range { text: object.text(), path: object.path().to_owned(), first, last })
}

/// A string; another type is told with its place.
fn text_of<'a>(value: &Value<'a>) -> Result<std::borrow::Cow<'a, str>, Option<Doubt<'a>>> {
    value
        .string()
        .map_err(|error| Some((value.text(), value.path().to_owned(), error.msg, String::new())))
}
