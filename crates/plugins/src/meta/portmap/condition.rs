//! `conditionsV4` and `conditionsV6`: what packets must be like to be
//! forwarded, in the words of iptables or of nft.
//!
//! The Go plugin hands the words to the tool that its backend runs. Here the
//! usual forms of both are read and become expressions, and no tool is run;
//! the words of either are understood whatever `backend` says (B122).
//!
//! | iptables | nft |
//! |---|---|
//! | `[!] -s NET[,NET]`, `--source`, `--src` | `ip saddr [!=] NET` or `{ NET, NET }` |
//! | `[!] -d NET[,NET]`, `--destination`, `--dst` | `ip daddr [!=] NET` |
//! | `[!] -i NAME[+]`, `--in-interface` | `iifname [!=] NAME[*]`, `iif` |
//! | `[!] -o NAME[+]`, `--out-interface` | `oifname [!=] NAME[*]`, `oif` |
//! | `[!] -p PROTOCOL`, `--protocol` | `meta l4proto [!=] PROTOCOL` |
//! | `-m mark [!] --mark VALUE[/MASK]` | `meta mark [!=] VALUE` |
//! | `-m comment --comment TEXT` | |

mod iptables;
mod nft;

use std::net::IpAddr;

use ipnet::IpNet;
use podwire_netlink::nft::{Comparison, Data, Field, IpVersion, Rule};
use podwire_spec::Error;
use podwire_spec::address::{parse_cidr, parse_ip};

use super::mapping::Protocol;

/// Alternatives at most: lists multiply.
const ALTERNATIVE_LIMIT: usize = 256;

/// Conditions of one family: a packet must meet all of one alternative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    alternatives: Vec<Vec<Match>>,
}

/// One property that a packet must have, or must not have.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Match {
    negated: bool,
    what: Property,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Property {
    Source(IpNet),
    Destination(IpNet),
    Input(NamePattern),
    Output(NamePattern),
    Protocol(u8),
    Mark { value: u32, mask: u32 },
}

/// An interface's name, or what names begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NamePattern {
    text: String,
    is_prefix: bool,
}

impl Condition {
    /// Reads the words; there must be one at least.
    ///
    /// # Errors
    /// Code 7 with the word that isn't understood.
    pub(super) fn parse(words: &[String], version: IpVersion) -> Result<Self, Error> {
        let iptables = words.first().is_some_and(|word| word.trim_start().starts_with(['-', '!']));
        let clauses = if iptables {
            iptables::clauses(words, version)
        } else {
            nft::clauses(words, version)
        }?;
        Self::from_clauses(clauses)
    }

    fn from_clauses(clauses: Vec<Clause>) -> Result<Self, Error> {
        let mut alternatives = vec![Vec::new()];
        for Clause { negated, properties } in clauses {
            if negated {
                // None of several: each of them not.
                for alternative in &mut alternatives {
                    let each = properties.iter().cloned();
                    alternative.extend(each.map(|what| Match { negated, what }));
                }
                continue;
            }
            let mut multiplied = Vec::new();
            for alternative in &alternatives {
                for what in &properties {
                    let mut more: Vec<Match> = alternative.clone();
                    more.push(Match { negated, what: what.clone() });
                    multiplied.push(more);
                }
            }
            if multiplied.len() > ALTERNATIVE_LIMIT {
                return Err(Error::config("the lists multiply to too many alternatives"));
            }
            alternatives = multiplied;
        }
        Ok(Self { alternatives })
    }

    /// The conditions put into rules: one for each alternative.
    pub(super) fn rules(&self, begin: &Rule) -> Vec<Rule> {
        let rule = |alternative: &Vec<Match>| {
            alternative.iter().fold(begin.clone(), |rule, one| one.extend(rule))
        };
        self.alternatives.iter().map(rule).collect()
    }
}

/// One option with its list of values: any of them, or none of them.
struct Clause {
    negated: bool,
    properties: Vec<Property>,
}

impl Match {
    fn extend(&self, rule: Rule) -> Rule {
        let comparison = if self.negated { Comparison::NotEqual } else { Comparison::Equal };
        match &self.what {
            Property::Source(net) => rule.source(comparison, *net),
            Property::Destination(net) => rule.destination(comparison, *net),
            Property::Input(name) => rule.field(Field::InputInterface, comparison, name.data()),
            Property::Output(name) => rule.field(Field::OutputInterface, comparison, name.data()),
            Property::Protocol(number) => {
                rule.field(Field::TransportProtocol, comparison, Data::new().protocol(*number))
            }
            Property::Mark { value, mask } => rule.mark(comparison, *value, *mask),
        }
    }
}

impl NamePattern {
    /// Reads a name that may end in a sign for "anything".
    fn parse(text: &str, wildcard: char) -> Result<Self, Error> {
        let prefix = text.strip_suffix(wildcard);
        let name = prefix.unwrap_or(text);
        let usable = !name.is_empty() && name.len() < 16 && !name.contains(['/', ' ', '\0']);
        if !usable {
            return Err(Error::config(format!("{text:?} is not an interface name")));
        }
        Ok(Self { text: name.to_owned(), is_prefix: prefix.is_some() })
    }

    fn data(&self) -> Data {
        if self.is_prefix {
            Data::from_bytes(self.text.as_bytes())
        } else {
            Data::new().interface_name(&self.text)
        }
    }
}

/// An address or network of the family; one that is everything is of no use
/// and taken for a mistake.
fn network(text: &str, version: IpVersion) -> Result<IpNet, Error> {
    let net = parse_cidr(text).or_else(|| parse_ip(text).map(IpNet::from)).ok_or_else(|| {
        Error::config(format!("{text:?} is neither an IP address nor a network as 10.0.0.0/8"))
    })?;
    let is_v4 = matches!(net.addr(), IpAddr::V4(_));
    if is_v4 != (version == IpVersion::V4) {
        return Err(Error::config(format!("{text} is of the other IP version")));
    }
    if net.prefix_len() == 0 {
        return Err(Error::config(format!("{text} is every address: leave it out")));
    }
    Ok(net.trunc())
}

fn protocol(text: &str) -> Result<u8, Error> {
    Protocol::parse(text)
        .map(Protocol::number)
        .or_else(|| text.parse().ok().filter(|number| *number != 0))
        .ok_or_else(|| Error::config(format!("unknown protocol {text:?}")))
}

/// A number as in C: decimal, or hexadecimal behind 0x.
fn number(text: &str) -> Result<u32, Error> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
    .ok_or_else(|| Error::config(format!("{text:?} is not a number of 32 bits")))
}

/// The error for a word that has no translation.
fn unknown(word: &str) -> Error {
    Error::config(format!("{word:?} can't be translated")).with_details(
        "known are -s, -d, -i, -o, -p, -m mark --mark and -m comment of iptables, each with !, and \
         saddr, daddr, iifname, oifname, meta l4proto and meta mark of nft, each with !=",
    )
}

#[cfg(test)]
#[path = "condition_tests.rs"]
mod tests;
