//! Tables, chains, rules, sets and elements out of the kernel's messages.

use super::expression_decode::{Value, data, expression};
use super::{
    BaseChain, Chain, ChainKind, Data, Element, ElementValue, Family, Hook, ListedSet, Policy,
    Rule, SetFlags, Table, UserData,
};
use crate::attribute::{Attribute, Attributes};
use crate::error::Malformed;

/// `sizeof(struct nfgenmsg)` (linux/netfilter/nfnetlink.h).
pub(super) const NFGENMSG: usize = 4;

/// Reads the payload of one message as every kind of answer that a listing has:
/// for tests that feed it what no kernel sends.
pub fn read_everything(payload: &[u8]) {
    let _ = table(payload);
    let _ = chain(payload);
    let _ = rule(payload).map(|rule| rule.map(|rule| rule.comment()));
    if let Ok(Some(set)) = set(payload) {
        let _ = (set.comment(), set.id().to_string());
    }
    for element in elements(payload).unwrap_or_default() {
        let _ = (element.comment(), element.userdata.entries().count());
    }
}

/// The family in a message's header, and its attributes. `None` for a family that nftables
/// didn't have when this was written.
pub(super) fn split(payload: &[u8]) -> Result<Option<(Family, Attributes<'_>)>, Malformed> {
    let attributes = Attributes::after(payload, NFGENMSG)?;
    let number = payload.first().copied().unwrap_or_default();
    Ok(Family::from_number(number).map(|family| (family, attributes)))
}

fn userdata(attribute: &Attribute<'_>) -> UserData {
    UserData::from_bytes(attribute.payload)
}

/// Reads an answer to `NFT_MSG_GETTABLE`.
pub(super) fn table(payload: &[u8]) -> Result<Option<Table>, Malformed> {
    let Some((family, attributes)) = split(payload)? else { return Ok(None) };
    let mut table = Table {
        family,
        name: String::new(),
        flags: 0,
        userdata: UserData::new(),
        handle: None,
        uses: None,
    };
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.kind {
            1 => table.name = attribute.string(),
            2 => table.flags = attribute.u32_be()?,
            3 => table.uses = Some(attribute.u32_be()?),
            4 => table.handle = Some(attribute.u64_be()?),
            6 => table.userdata = userdata(&attribute),
            _ => {}
        }
    }
    Ok(Some(table))
}

/// Reads an answer to `NFT_MSG_GETCHAIN`.
pub(super) fn chain(payload: &[u8]) -> Result<Option<Chain>, Malformed> {
    let Some((family, attributes)) = split(payload)? else { return Ok(None) };
    let mut chain = Chain {
        family,
        table: String::new(),
        name: String::new(),
        base: None,
        userdata: UserData::new(),
        handle: None,
        uses: None,
    };
    let (mut hook, mut kind, mut policy) = (None, None, None);
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.kind {
            1 => chain.table = attribute.string(),
            2 => chain.handle = Some(attribute.u64_be()?),
            3 => chain.name = attribute.string(),
            4 => hook = place(attribute.nested())?,
            5 => {
                policy = match attribute.u32_be()? {
                    0 => Some(Policy::Drop),
                    1 => Some(Policy::Accept),
                    _ => None,
                }
            }
            6 => chain.uses = Some(attribute.u32_be()?),
            7 => kind = ChainKind::parse(&attribute.string()),
            12 => chain.userdata = userdata(&attribute),
            _ => {}
        }
    }
    if let (Some((hook, priority)), Some(kind)) = (hook, kind) {
        chain.base = Some(BaseChain { kind, hook, priority, policy });
    }
    Ok(Some(chain))
}

fn place(attributes: Attributes<'_>) -> Result<Option<(Hook, i32)>, Malformed> {
    let (mut hook, mut priority) = (None, 0);
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.kind {
            1 => hook = Hook::from_number(attribute.u32_be()?),
            2 => priority = attribute.u32_be()?.cast_signed(),
            _ => {}
        }
    }
    Ok(hook.map(|hook| (hook, priority)))
}

/// Reads an answer to `NFT_MSG_GETRULE`.
pub(super) fn rule(payload: &[u8]) -> Result<Option<Rule>, Malformed> {
    let Some((family, attributes)) = split(payload)? else { return Ok(None) };
    let mut rule = Rule {
        family,
        table: String::new(),
        chain: String::new(),
        expressions: Vec::new(),
        userdata: UserData::new(),
        xt_protocol: None,
        handle: None,
    };
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.kind {
            1 => rule.table = attribute.string(),
            2 => rule.chain = attribute.string(),
            3 => rule.handle = Some(attribute.u64_be()?),
            4 => {
                for element in attribute.nested() {
                    rule.expressions.push(expression(&element?)?);
                }
            }
            7 => rule.userdata = userdata(&attribute),
            _ => {}
        }
    }
    Ok(Some(rule))
}

/// Reads an answer to `NFT_MSG_GETSET`.
pub(super) fn set(payload: &[u8]) -> Result<Option<ListedSet>, Malformed> {
    let Some((family, attributes)) = split(payload)? else { return Ok(None) };
    let mut set = ListedSet {
        family,
        table: String::new(),
        name: String::new(),
        flags: SetFlags::empty(),
        key_type: 0,
        key_length: 0,
        value_type: None,
        value_length: None,
        size: None,
        userdata: UserData::new(),
        handle: None,
    };
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.kind {
            1 => set.table = attribute.string(),
            2 => set.name = attribute.string(),
            3 => set.flags = SetFlags::from_bits_retain(attribute.u32_be()?),
            4 => set.key_type = attribute.u32_be()?,
            5 => set.key_length = attribute.u32_be()?,
            6 => set.value_type = Some(attribute.u32_be()?),
            7 => set.value_length = Some(attribute.u32_be()?),
            9 => {
                let size = attribute.nested().find_kind(1)?;
                set.size = size.map(|size| size.u32_be()).transpose()?;
            }
            13 => set.userdata = userdata(&attribute),
            16 => set.handle = Some(attribute.u64_be()?),
            _ => {}
        }
    }
    Ok(Some(set))
}

/// Reads an answer to `NFT_MSG_GETSETELEM`: the elements in one message.
pub(super) fn elements(payload: &[u8]) -> Result<Vec<Element>, Malformed> {
    let list = Attributes::after(payload, NFGENMSG)?.find_kind(3)?;
    let Some(list) = list else { return Ok(Vec::new()) };
    list.nested().map(|item| element(&item?)).collect()
}

pub(super) fn element(attribute: &Attribute<'_>) -> Result<Element, Malformed> {
    let mut element = Element::default();
    for inner in attribute.nested() {
        let inner = inner?;
        match inner.kind {
            1 => element.key = key(&inner)?,
            2 => {
                element.value = Some(match data(&inner)? {
                    Value::Data(data) => ElementValue::Data(data),
                    Value::Verdict(verdict) => ElementValue::Verdict(verdict),
                });
            }
            3 => element.interval_end = inner.u32_be()? & 1 != 0,
            6 => element.userdata = userdata(&inner),
            10 => element.key_end = Some(key(&inner)?),
            _ => {}
        }
    }
    Ok(element)
}

fn key(attribute: &Attribute<'_>) -> Result<Data, Malformed> {
    match data(attribute)? {
        Value::Data(data) => Ok(data),
        Value::Verdict(_) => Err(Malformed("a verdict in place of an element's key")),
    }
}
