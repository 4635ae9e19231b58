//! Rules that choose the routing table (`linux/fib_rules.h`).

use std::fmt;

use ipnet::IpNet;

use crate::attribute::Attributes;
use crate::error::{Error, Malformed, Subject};
use crate::message::{Flags, Requests};
use crate::route::RouteSocket;
use crate::route::change::{ACKNOWLEDGED, Change};
use crate::route::device::NAME_LIMIT;
use crate::route::family::{Family, TABLE_MAIN};

const RTM_NEWRULE: u16 = 32;
const RTM_DELRULE: u16 = 33;
const RTM_GETRULE: u16 = 34;

const FRA_DST: u16 = 1;
const FRA_SRC: u16 = 2;
const FRA_IIFNAME: u16 = 3;
const FRA_PRIORITY: u16 = 6;
const FRA_FWMARK: u16 = 10;
const FRA_TABLE: u16 = 15;
const FRA_FWMASK: u16 = 16;
const FRA_OIFNAME: u16 = 17;

/// `sizeof(struct fib_rule_hdr)`.
const HEADER: usize = 12;
/// `FIB_RULE_INVERT`.
const INVERT: u32 = 2;

/// What a rule does (`FR_ACT_*`): the kernel's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleAction(pub u8);

impl RuleAction {
    /// Looks the packet up in the rule's table.
    pub const TO_TABLE: Self = Self(1);
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The family it's for.
    pub family: Family,
    /// Its rank, low first. `None` lets the kernel choose one before all.
    pub priority: Option<u32>,
    /// The source it's for; any where `None`.
    pub source: Option<IpNet>,
    /// The destination it's for; any where `None`.
    pub destination: Option<IpNet>,
    /// The link that packets came in by, by name.
    pub input: Option<String>,
    /// The link that the socket is bound to, by name.
    pub output: Option<String>,
    /// The mark of packets and the bits of it to compare.
    pub mark: Option<(u32, u32)>,
    /// The table to look in.
    pub table: u32,
    /// What it does.
    pub action: RuleAction,
    /// Whether it's for all packets but those.
    pub inverted: bool,
}

impl Rule {
    /// A rule for everything that looks in a table.
    #[must_use]
    pub const fn new(family: Family, table: u32) -> Self {
        Self {
            family,
            priority: None,
            source: None,
            destination: None,
            input: None,
            output: None,
            mark: None,
            table,
            action: RuleAction::TO_TABLE,
            inverted: false,
        }
    }

    /// A rule for packets from a source.
    #[must_use]
    pub fn from_source(source: IpNet, table: u32) -> Self {
        let family = Family::of(source.addr());
        Self { source: Some(source.trunc()), ..Self::new(family, table) }
    }

    /// Reads an `RTM_NEWRULE` or `RTM_DELRULE` message behind its netlink
    /// header; `None` for a family other than IPv4 and IPv6.
    ///
    /// # Errors
    /// The message breaks the format of `linux/fib_rules.h`.
    pub fn decode(message: &[u8]) -> Result<Option<Self>, Malformed> {
        let short = Malformed("a rule message is shorter than its header");
        let header = *message.first_chunk::<8>().ok_or(short)?;
        let flags = crate::attribute::read_u32(message, 8).ok_or(short)?;
        let [family, destination_length, source_length, _, table, _, _, action] = header;
        let Some(family) = Family::from_number(family) else { return Ok(None) };
        let mut rule = Self::new(family, u32::from(table));
        rule.action = RuleAction(action);
        rule.inverted = flags & INVERT != 0;
        let (mut source, mut destination, mut mark, mut mask) = (None, None, None, u32::MAX);
        for attribute in Attributes::after(message, HEADER)? {
            let attribute = attribute?;
            match attribute.kind {
                FRA_DST => destination = Some(attribute.ip()?),
                FRA_SRC => source = Some(attribute.ip()?),
                FRA_IIFNAME => rule.input = Some(attribute.string()),
                FRA_OIFNAME => rule.output = Some(attribute.string()),
                FRA_PRIORITY => rule.priority = Some(attribute.u32()?),
                FRA_FWMARK => mark = Some(attribute.u32()?),
                FRA_FWMASK => mask = attribute.u32()?,
                FRA_TABLE => rule.table = attribute.u32()?,
                _ => {}
            }
        }
        rule.mark = mark.map(|mark| (mark, mask));
        if source_length > 0 || source.is_some() {
            rule.source = Some(family.prefix(source, source_length)?);
        }
        if destination_length > 0 || destination.is_some() {
            rule.destination = Some(family.prefix(destination, destination_length)?);
        }
        Ok(Some(rule))
    }

    fn encode(&self, requests: &mut Requests, kind: u16, flags: Flags) {
        requests.push(kind, ACKNOWLEDGED | flags, |body| {
            let length = |net: Option<IpNet>| net.map_or(0, |net| net.prefix_len());
            let mut header = [0; HEADER];
            header[0] = self.family.number();
            header[1] = length(self.destination);
            header[2] = length(self.source);
            header[4] = u8::try_from(self.table).unwrap_or(0);
            header[7] = self.action.0;
            header[8..].copy_from_slice(&if self.inverted { INVERT } else { 0 }.to_ne_bytes());
            body.raw(&header);
            for (kind, net) in [(FRA_DST, self.destination), (FRA_SRC, self.source)] {
                match net {
                    Some(net) if Family::of(net.addr()) != self.family => {
                        body.fail("a rule's prefix of another family than the rule");
                    }
                    // The kernel refuses an address of no bits.
                    Some(net) if net.prefix_len() > 0 => body.ip(kind, net.network()),
                    _ => {}
                }
            }
            for (kind, name) in [(FRA_IIFNAME, &self.input), (FRA_OIFNAME, &self.output)] {
                match name {
                    Some(name) if name.len() > NAME_LIMIT => {
                        body.fail("a link's name is longer than 15 bytes");
                    }
                    Some(name) => body.string(kind, name),
                    None => {}
                }
            }
            if let Some(priority) = self.priority {
                body.u32(FRA_PRIORITY, priority);
            }
            if let Some((mark, mask)) = self.mark {
                body.u32(FRA_FWMARK, mark);
                body.u32(FRA_FWMASK, mask);
            }
            if self.table > 255 {
                body.u32(FRA_TABLE, self.table);
            }
        });
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(priority) = self.priority {
            write!(formatter, "{priority}: ")?;
        }
        if self.inverted {
            formatter.write_str("not ")?;
        }
        match self.source {
            Some(source) => write!(formatter, "from {source}")?,
            None => formatter.write_str("from all")?,
        }
        if let Some(destination) = self.destination {
            write!(formatter, " to {destination}")?;
        }
        if let Some(input) = &self.input {
            write!(formatter, " iif {input}")?;
        }
        if let Some(output) = &self.output {
            write!(formatter, " oif {output}")?;
        }
        if let Some((mark, mask)) = self.mark {
            write!(formatter, " mark {mark:#x}/{mask:#x}")?;
        }
        if self.table == TABLE_MAIN {
            formatter.write_str(" table main")
        } else {
            write!(formatter, " table {}", self.table)
        }
    }
}

/// Adds a rule; refused where the same is there (`EEXIST`).
#[derive(Debug, Clone, Copy)]
pub struct AddRule<'a>(
    /// The rule.
    pub &'a Rule,
);

/// Deletes the first rule that has everything this one has set.
#[derive(Debug, Clone, Copy)]
pub struct DeleteRule<'a>(
    /// The rule.
    pub &'a Rule,
);

impl fmt::Display for AddRule<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Display for DeleteRule<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Change for AddRule<'_> {
    fn operation(&self) -> &'static str {
        "adding rule"
    }

    fn encode(&self, requests: &mut Requests) {
        self.0.encode(requests, RTM_NEWRULE, Flags::CREATE | Flags::EXCLUSIVE);
    }
}

impl Change for DeleteRule<'_> {
    fn operation(&self) -> &'static str {
        "deleting rule"
    }

    fn encode(&self, requests: &mut Requests) {
        self.0.encode(requests, RTM_DELRULE, Flags::empty());
    }
}

impl RouteSocket {
    /// The rules of a family, in the order they're tried.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn rules(&mut self, family: Family) -> Result<Vec<Rule>, Error> {
        self.socket.dump(
            Subject::new("listing", &"routing rules"),
            RTM_GETRULE,
            |body| {
                let mut header = [0; HEADER];
                header[0] = family.number();
                body.raw(&header);
            },
            |reply| match reply.kind {
                RTM_NEWRULE => Rule::decode(reply.payload),
                _ => Ok(None),
            },
        )
    }
}
