//! Expressions out of attributes; see `expression_encode` for the way in.

use super::expression::{
    Comparison, ConntrackKey, Expression, FibFlags, FibResult, IpVersion, LookupTarget, MetaKey,
    NatFlags, NatKind, PayloadBase, RegisterRange,
};
use super::{Data, Register, Verdict};
use crate::attribute::{Attribute, Attributes};
use crate::error::Malformed;

/// The most attribute kinds that an expression known here has.
const KINDS: usize = 12;

/// The attributes of one expression by kind, the last of each.
struct Values<'a>([Option<Attribute<'a>>; KINDS]);

impl<'a> Values<'a> {
    fn read(attributes: Attributes<'a>) -> Option<Self> {
        let mut values = [None; KINDS];
        for attribute in attributes {
            let attribute = attribute.ok()?;
            if let Some(slot) = values.get_mut(usize::from(attribute.kind)) {
                *slot = Some(attribute);
            }
        }
        Some(Self(values))
    }

    fn get(&self, kind: usize) -> Option<&Attribute<'a>> {
        self.0.get(kind)?.as_ref()
    }

    fn number(&self, kind: usize) -> Option<u32> {
        self.get(kind)?.u32_be().ok()
    }

    fn register(&self, kind: usize) -> Option<Register> {
        Register::from_number(self.number(kind)?)
    }

    fn data(&self, kind: usize) -> Option<Data> {
        match data(self.get(kind)?).ok()? {
            Value::Data(data) => Some(data),
            Value::Verdict(_) => None,
        }
    }

    fn text(&self, kind: usize) -> Option<String> {
        Some(self.get(kind)?.string())
    }

    /// A range of registers that may be absent; `Err` when one is unreadable.
    fn range(&self, least: usize, greatest: usize) -> Result<Option<RegisterRange>, Unreadable> {
        if self.get(least).is_none() {
            return Ok(None);
        }
        let least = self.register(least).ok_or(Unreadable)?;
        let greatest = match self.get(greatest) {
            Some(_) => self.register(greatest).ok_or(Unreadable)?,
            None => least,
        };
        Ok(Some(RegisterRange { least, greatest }))
    }

    /// Flags without those that the kernel sets for an address and a port by itself.
    fn nat_flags(&self, kind: usize) -> NatFlags {
        let flags = NatFlags::from_bits_retain(self.number(kind).unwrap_or(0));
        flags.difference(NatFlags::ADDRESS | NatFlags::PORT)
    }
}

struct Unreadable;

/// What a data attribute holds.
pub(super) enum Value {
    Data(Data),
    Verdict(Verdict),
}

/// Reads a data attribute (`NFTA_DATA_*`).
pub(super) fn data(attribute: &Attribute<'_>) -> Result<Value, Malformed> {
    for inner in attribute.nested() {
        let inner = inner?;
        match inner.kind {
            1 => return Ok(Value::Data(Data::from_bytes(inner.payload))),
            2 => return verdict(inner.nested()).map(Value::Verdict),
            _ => {}
        }
    }
    Err(Malformed("a data attribute with neither a value nor a verdict"))
}

fn verdict(attributes: Attributes<'_>) -> Result<Verdict, Malformed> {
    let (mut code, mut chain) = (None, None);
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.kind {
            1 => code = Some(attribute.u32_be()?.cast_signed()),
            2 => chain = Some(attribute.string()),
            _ => {}
        }
    }
    let code = code.ok_or(Malformed("a verdict without a code"))?;
    Ok(Verdict::from_code(code, chain))
}

/// Reads one element of a rule's list of expressions.
pub(super) fn expression(attribute: &Attribute<'_>) -> Result<Expression, Malformed> {
    let (mut name, mut payload) = (None, [].as_slice());
    for inner in attribute.nested() {
        let inner = inner?;
        match inner.kind {
            1 => name = Some(inner.string()),
            2 => payload = inner.payload,
            _ => {}
        }
    }
    let name = name.ok_or(Malformed("an expression without a name"))?;
    // What can't be understood is kept as it is: a listing mustn't fail for a rule of others.
    let known = Values::read(Attributes::new(payload)).and_then(|values| known(&name, &values));
    Ok(known.unwrap_or_else(|| Expression::Unknown { name, attributes: payload.to_vec() }))
}

fn known(name: &str, values: &Values<'_>) -> Option<Expression> {
    Some(match name {
        "meta" => {
            let key = MetaKey::from_number(values.number(2)?);
            match values.register(3) {
                Some(source) => Expression::MetaSet { key, source },
                None => Expression::Meta { key, destination: values.register(1)? },
            }
        }
        "payload" => Expression::Payload {
            // Writing to the packet has no destination, so it stays unknown.
            destination: values.register(1)?,
            base: match values.number(2)? {
                0 => PayloadBase::Link,
                1 => PayloadBase::Network,
                2 => PayloadBase::Transport,
                _ => return None,
            },
            offset: values.number(3)?,
            length: values.number(4)?,
        },
        "cmp" => Expression::Compare {
            source: values.register(1)?,
            comparison: match values.number(2)? {
                0 => Comparison::Equal,
                1 => Comparison::NotEqual,
                2 => Comparison::Less,
                3 => Comparison::LessOrEqual,
                4 => Comparison::Greater,
                5 => Comparison::GreaterOrEqual,
                _ => return None,
            },
            value: values.data(3)?,
        },
        "range" => Expression::Range {
            source: values.register(1)?,
            outside: match values.number(2)? {
                0 => false,
                1 => true,
                _ => return None,
            },
            least: values.data(3)?,
            greatest: values.data(4)?,
        },
        "bitwise" => bitwise(values)?,
        "lookup" => lookup(values)?,
        "immediate" => immediate(values)?,
        "fib" => Expression::Fib {
            destination: values.register(1)?,
            result: match values.number(2)? {
                1 => FibResult::OutputIndex,
                2 => FibResult::OutputName,
                3 => FibResult::AddressType,
                _ => return None,
            },
            flags: FibFlags::from_bits_retain(values.number(3)?),
        },
        "ct" => conntrack(values)?,
        "counter" => Expression::Counter {
            bytes: values.get(1)?.u64_be().ok()?,
            packets: values.get(2)?.u64_be().ok()?,
        },
        "nat" => nat(values)?,
        "masq" => {
            Expression::Masquerade { flags: values.nat_flags(1), port: values.range(2, 3).ok()? }
        }
        "redir" => {
            Expression::Redirect { port: values.range(1, 2).ok()?, flags: values.nat_flags(3) }
        }
        "reject" => Expression::Reject {
            kind: values.number(1)?,
            // A TCP reset has none.
            code: values.get(2).and_then(|code| code.u8().ok()).unwrap_or(0),
        },
        "match" => Expression::XtMatch {
            name: values.text(1)?,
            revision: values.number(2)?,
            info: values.get(3)?.payload.to_vec(),
        },
        "target" => Expression::XtTarget {
            name: values.text(1)?,
            revision: values.number(2)?,
            info: values.get(3)?.payload.to_vec(),
        },
        _ => return None,
    })
}

fn bitwise(values: &Values<'_>) -> Option<Expression> {
    // Shifts, and operations on two registers, stay unknown.
    if values.number(6).unwrap_or(0) != 0 {
        return None;
    }
    Some(Expression::Bitwise {
        source: values.register(1)?,
        destination: values.register(2)?,
        mask: values.data(4)?,
        xor: values.data(5)?,
    })
}

fn lookup(values: &Values<'_>) -> Option<Expression> {
    let inverted = values.number(5).unwrap_or(0) & 1 != 0;
    let target = match (values.number(3), inverted) {
        (None, false) => LookupTarget::Present,
        (None, true) => LookupTarget::Absent,
        (Some(0), false) => LookupTarget::Verdict,
        (Some(number), false) => LookupTarget::Value(Register::from_number(number)?),
        (Some(_), true) => return None,
    };
    Some(Expression::Lookup { set: values.text(1)?, source: values.register(2)?, target })
}

fn immediate(values: &Values<'_>) -> Option<Expression> {
    let destination = values.number(1)?;
    Some(match (destination, data(values.get(2)?).ok()?) {
        (0, Value::Verdict(verdict)) => Expression::Verdict(verdict),
        (number, Value::Data(value)) => {
            Expression::Immediate { destination: Register::from_number(number)?, value }
        }
        _ => return None,
    })
}

fn conntrack(values: &Values<'_>) -> Option<Expression> {
    let key = ConntrackKey::from_number(values.number(2)?);
    let direction = match values.get(3) {
        Some(direction) => Some(direction.u8().ok()?),
        None => None,
    };
    Some(match (values.register(4), direction) {
        (Some(source), None) => Expression::ConntrackSet { key, source },
        (Some(_), Some(_)) => return None,
        (None, direction) => {
            Expression::Conntrack { key, direction, destination: values.register(1)? }
        }
    })
}

fn nat(values: &Values<'_>) -> Option<Expression> {
    Some(Expression::Nat {
        kind: match values.number(1)? {
            0 => NatKind::Source,
            1 => NatKind::Destination,
            _ => return None,
        },
        version: match values.number(2)? {
            2 => IpVersion::V4,
            10 => IpVersion::V6,
            _ => return None,
        },
        address: values.range(3, 4).ok()?,
        port: values.range(5, 6).ok()?,
        flags: values.nat_flags(7),
    })
}
