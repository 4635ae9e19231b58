//! Ports that a mapping of the Go plugin holds: its rules come before ours, so a
//! second mapping of such a port would be made and never work.

use std::net::IpAddr;

use podwire_netlink::nft::{
    Comparison, Expression, Family, IpVersion, MetaKey, NftSocket, PayloadBase, Register, Rule,
};
use podwire_netlink::route::link::LinkFlags;
use podwire_plugin::Resource;
use podwire_resources::nft::legacy::xtables;
use podwire_resources::{Kernel, refused};
use podwire_spec::Error;

use super::forwarding::Forwarding;
use super::holder;
use super::layout;
use super::mapping::Mapping;
use super::takeover::{self, GoMappings};

/// What one rule of the Go plugin forwards.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Claim {
    protocol: u8,
    port: u16,
    host_address: Option<IpAddr>,
    target: IpAddr,
    container: String,
    /// Where the rules tell.
    network: Option<String>,
}

/// Makes sure that no mapping of the Go plugin takes the packets of those that are
/// wanted: one of a container that is gone is removed.
///
/// # Errors
/// Code 101 that names a container that is still there.
pub(super) fn make_way(kernel: &mut Kernel, forwarding: &Forwarding) -> Result<(), Error> {
    for claim in claims(kernel.nft()?, forwarding.version)? {
        let wanted = forwarding.mappings.iter().find(|mapping| claim.takes(mapping));
        let Some(mapping) = wanted.filter(|_| !forwarding.is_of(&claim.container)) else {
            continue;
        };
        let network = claim.network.as_deref().unwrap_or("?");
        let name = format!("{network}/{} by the Go plugin", claim.container);
        match state(kernel, forwarding, claim.target)? {
            State::There => {
                return Err(holder::taken(&mapping.host_side(), &name, Some(claim.target)));
            }
            State::Gone => {
                log::warn!("{} is taken over from {name}, which is gone", mapping.host_side());
                let gone = GoMappings {
                    network: claim.network.unwrap_or_default(),
                    container: claim.container,
                    addresses: vec![claim.target],
                    by_container: true,
                };
                gone.remove(kernel)?;
            }
            State::Unknown => {
                log::warn!("{} may still be forwarded to {name}", mapping.host_side());
            }
        }
    }
    Ok(())
}

impl Claim {
    /// Whether it takes the packets of a mapping, to the last one.
    fn takes(&self, mapping: &Mapping) -> bool {
        (self.protocol, self.port) == (mapping.protocol.number(), mapping.host_port)
            && self.host_address.is_none_or(|own| mapping.host_address() == Some(own))
    }

    /// Reads a rule that translates.
    fn read(rule: &Rule, container: &str, network: Option<&str>) -> Option<Self> {
        let mut loaded = Vec::<(Register, Field)>::new();
        let (mut protocol, mut port, mut host_address, mut target) = (None, None, None, None);
        for expression in &rule.expressions {
            match expression {
                Expression::Meta { key: MetaKey::TransportProtocol, destination } => {
                    loaded.push((*destination, Field::Protocol));
                }
                Expression::Payload { base, offset, length, destination } => {
                    loaded.push((*destination, Field::of(*base, *offset, *length)));
                }
                Expression::Compare { comparison: Comparison::Equal, source, value } => {
                    let field = loaded.iter().rev().find(|(register, _)| register == source);
                    match (field.map(|(_, field)| *field), value.as_bytes()) {
                        (Some(Field::Protocol), [number]) => protocol = Some(*number),
                        (Some(Field::Port), [high, low]) => {
                            port = Some(u16::from_be_bytes([*high, *low]));
                        }
                        (Some(Field::Destination), bytes) => host_address = address(bytes),
                        _ => {}
                    }
                }
                Expression::Immediate { value, .. } => {
                    target = target.or_else(|| address(value.as_bytes()));
                }
                Expression::XtTarget { name, revision, info } if name == "DNAT" => {
                    target = xt_target(*revision, info, rule.family == Family::Ipv6);
                }
                _ => {}
            }
        }
        Some(Self {
            protocol: protocol?,
            port: port?,
            host_address,
            target: target?,
            container: container.to_owned(),
            network: network.map(str::to_owned),
        })
    }

    /// Reads a rule of legacy xtables, as words.
    fn read_words(words: &[String], container: &str, network: &str) -> Option<Self> {
        let value = |option: &str| {
            let at = words.iter().position(|word| word == option)?;
            words.get(at + 1).map(String::as_str)
        };
        let protocol = super::mapping::Protocol::parse(value("-p")?)?.number();
        let host_address = value("-d").and_then(|text| text.split('/').next()?.parse().ok());
        let target = value("--to-destination")?;
        let target = target.rsplit_once(':')?.0.trim_matches(['[', ']']);
        Some(Self {
            protocol,
            port: value("--dport")?.parse().ok()?,
            host_address,
            target: target.parse().ok()?,
            container: container.to_owned(),
            network: Some(network.to_owned()),
        })
    }
}

/// What a register was loaded with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Protocol,
    Port,
    Destination,
    Other,
}

impl Field {
    /// Of a packet: the destination port of TCP, UDP and SCTP, the destination of
    /// IPv4 (RFC 791, section 3.1) and IPv6 (RFC 8200, section 3).
    fn of(base: PayloadBase, offset: u32, length: u32) -> Self {
        match (base, offset, length) {
            (PayloadBase::Transport, 2, 2) => Self::Port,
            (PayloadBase::Network, 16, 4) | (PayloadBase::Network, 24, 16) => Self::Destination,
            _ => Self::Other,
        }
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// The address of `struct nf_nat_range2` and its forerunners
/// (`include/uapi/linux/netfilter/nf_nat.h`): revision 0 is of IPv4 and counts its
/// ranges first.
fn xt_target(revision: u32, info: &[u8], is_v6: bool) -> Option<IpAddr> {
    let start = if revision == 0 { 8 } else { 4 };
    let length = if is_v6 { 16 } else { 4 };
    address(info.get(start..start + length)?)
}

/// All that the Go plugin forwards, by either backend. Cheap where it made nothing:
/// its chain and its table are asked for by name.
fn claims(socket: &mut NftSocket, version: IpVersion) -> Result<Vec<Claim>, Error> {
    let mut claims = Vec::new();
    let entries = takeover::entries(socket, version)?;
    if !entries.is_empty() {
        let table = takeover::host_table(version);
        for rule in socket.table_rules(table).map_err(refused)? {
            let entry = entries.iter().find(|entry| entry.chain == rule.chain);
            claims.extend(
                entry.and_then(|entry| Claim::read(&rule, &entry.container, Some(&entry.network))),
            );
        }
    }
    let table = takeover::go_table(layout::family(version));
    for rule in socket.table_rules(table).map_err(refused)? {
        let owner = rule.comment().filter(|_| takeover::is_owned(&rule));
        claims.extend(owner.and_then(|owner| Claim::read(&rule, &owner, None)));
    }
    let legacy = xtables::rules(version, "nat")?.unwrap_or_default();
    let entries = takeover::legacy_entries(&legacy);
    for words in &legacy {
        let [command, chain, ..] = words.as_slice() else { continue };
        let entry = entries.iter().find(|entry| command == "-A" && entry.chain == *chain);
        claims.extend(
            entry.and_then(|entry| Claim::read_words(words, &entry.container, &entry.network)),
        );
    }
    Ok(claims)
}

/// What is known of a container that the Go plugin maps to.
enum State {
    There,
    Gone,
    Unknown,
}

/// A container is gone when its address is ours by now, or nothing leads to it any
/// more, or only an interface behind which nobody is: a bridge without ports.
fn state(kernel: &mut Kernel, forwarding: &Forwarding, target: IpAddr) -> Result<State, Error> {
    if target == forwarding.address {
        return Ok(State::Gone);
    }
    let host = kernel.host()?;
    let Some(route) = host.route_to(target).map_err(refused)? else { return Ok(State::Gone) };
    let Some(index) = route.output.filter(|_| route.gateway.is_none()) else {
        // A router may know more than this host.
        return Ok(State::Unknown);
    };
    let link = host.link_by_index(index).map_err(refused)?;
    Ok(if link.is_some_and(|link| link.flags.contains(LinkFlags::LOWER_UP)) {
        State::There
    } else {
        State::Gone
    })
}

#[cfg(test)]
#[path = "go_holder_tests.rs"]
mod tests;
